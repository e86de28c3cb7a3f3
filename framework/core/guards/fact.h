// What a guard found when its graph was captured: a value that can be compared and told.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tenon::guards {

/// An object of the frontend. `id` is its identity, as long as the frontend keeps the object alive; `text` names it in messages.
struct ObjectKey {
  std::uint64_t id = 0;
  std::string text;
  friend bool operator==(const ObjectKey& a, const ObjectKey& b) { return a.id == b.id; }
};

struct Fact;
using FactList = std::vector<Fact>;

/// None, a number, a string, an object, or a list of such. Floats are equal when their bits are.
struct Fact {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, ObjectKey, FactList> value;

  Fact() = default;
  Fact(bool v) : value(v) {}
  Fact(int v) : value(std::int64_t{v}) {}
  Fact(std::int64_t v) : value(v) {}
  Fact(double v) : value(v) {}
  Fact(const char* v) : value(std::string(v)) {}
  Fact(std::string v) : value(std::move(v)) {}
  Fact(ObjectKey v) : value(std::move(v)) {}
  Fact(FactList v) : value(std::move(v)) {}

  bool is_none() const { return value.index() == 0; }
  /// As Python would write it: `None`, `True`, `3`, `2.0`, `"conv"`, `<Linear>`, `[3, 4]`.
  std::string to_string() const;
  friend bool operator==(const Fact& a, const Fact& b);
};

}  // namespace tenon::guards
