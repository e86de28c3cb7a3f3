// Checks: what must hold of a source for a graph to be right, and how to say that it does not.
#pragma once

#include <optional>
#include <span>

#include "core/guards/source.h"
#include "core/ir/dim.h"

namespace tenon::guards {

enum class CheckKind : std::uint8_t {
  // Checks that make others safe come first: see GuardTree.
  exists,           // the source can be reached (an attribute, a key)
  type,             // type(value) is `expected` (an object)
  identity,         // value is `expected` (an object)
  constant,         // value has the type and value of `expected`; floats by their bits
  length,           // len(value)
  keys,             // the keys of a dict, in order
  has_key,          // `expected` is a key
  lacks_key,        // `expected` is no key; of an object: it has no such attribute
  dtype,            // of a tensor: a string, as in the text form
  shape,            // a list of sizes; None for one that may be anything
  strides,          // likewise, in elements
  device,           // a string, "cpu", "cuda:0"
  requires_grad,    // a bool
  global_state,     // `expected` is the state's value
  same_object,      // value is the value of others[0]
  distinct,         // the values of this source and `others` are pairwise different objects
  relation,         // `relation` holds of the integers at `others`
  other,            // something that only the frontend understands, named by `expected` (a string)
};

/// A comparison of two symbolic integers.
struct Relation {
  enum class Operator : std::uint8_t { equal, not_equal, less, less_equal, multiple_of };

  Operator op = Operator::equal;
  ir::Dim left, right;
  friend bool operator==(const Relation&, const Relation&) = default;

  /// Whether it holds for values of the symbols. An overflow, or a multiple of 0, does not hold.
  bool holds(std::span<const std::int64_t> symbols) const;
};

struct Check {
  CheckKind kind = CheckKind::exists;
  SourceId source;
  Fact expected;
  std::vector<SourceId> others;      // same_object, distinct; relation: the source of each symbol, by SymbolId
  std::optional<Relation> relation;
  friend bool operator==(const Check&, const Check&) = default;

  /// Whether it needs several sources.
  bool is_cross() const { return kind == CheckKind::same_object || kind == CheckKind::distinct || kind == CheckKind::relation; }
};

/// What a check demands: `type(x) is <int>`, `x.scale == 3`, `x.shape == [*, 4]`.
std::string describe(const SourceTable& sources, const Check& check);

/// What a failed check expected and what the call had: "x.shape[0] was 3, is 5". `found`: the value now, of the form of `expected`;
/// for has_key and lacks_key whether the key is there, for cross checks ignored.
std::string explain(const SourceTable& sources, const Check& check, const Fact& found);

}  // namespace tenon::guards
