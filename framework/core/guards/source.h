// Sources: the paths by which a later call finds again what a capture read, such as `arg[0].layers["conv"].weight`.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/ids.h"
#include "core/guards/fact.h"

namespace tenon::guards {

using SourceId = Index<struct SourceTag>;

/// How a value is reached. Core does not know how to take a step; the frontend does.
enum class SourceKind : std::uint8_t {
  // roots
  argument,      // key: position, or name of a keyword
  local,         // key: name
  global,        // key: name
  object,        // key: an object that is the same in every call
  global_state,  // key: name, such as "grad_mode"
  // parts of a parent
  attribute,       // key: name
  item,            // key: position, string, or object
  instance_dict,   // the attributes that the object itself holds
  type_attribute,  // key: name; as the type finds it along its bases
  member,          // key: a descriptor
  type_of,
  length,
  keys,             // of a dict, in order
  closure_cell,     // key: position
  cell_contents,
  default_value,    // key: position, or name of a keyword-only parameter
  bound_self,       // of a method
  bound_function,
  weak_target,
  upcoming,         // key: position; the value that an iterator will give after that many others
  tensor_property,  // key: "dtype", "shape", "strides", "device", "requires_grad", …
};

/// Whether a source of that kind starts a path.
constexpr bool is_root(SourceKind kind) { return kind <= SourceKind::global_state; }

struct Source {
  SourceKind kind = SourceKind::argument;
  SourceId parent;  // none for roots
  Fact key;         // none, int, string or object, as the kind says
  friend bool operator==(const Source&, const Source&) = default;
};

/// All sources of one code object, each path once. A parent has a smaller id than its children.
class SourceTable {
 public:
  /// The id of a path, made when it is new. Throws (internal) when a root has a parent, or a part has none.
  SourceId add(Source source);
  SourceId root(SourceKind kind, Fact key) { return add({kind, {}, std::move(key)}); }
  SourceId part(SourceKind kind, SourceId parent, Fact key = {}) { return add({kind, parent, std::move(key)}); }

  const Source& operator[](SourceId id) const { return sources_[id.value]; }
  std::size_t size() const { return sources_.size(); }
  /// The root of the path.
  SourceId root_of(SourceId id) const;
  /// Whether `ancestor` is on the path of `id`, or is `id` itself.
  bool is_within(SourceId id, SourceId ancestor) const;

  /// Names for arguments by position; without one, argument 2 is `arg[2]`.
  void name_arguments(std::vector<std::string> names) { argument_names_ = std::move(names); }
  /// The path as an expression: `self.layers["conv"].weight`, `len(x)`, `type(x)`.
  std::string describe(SourceId id) const;

 private:
  std::deque<Source> sources_;
  std::unordered_multimap<std::uint64_t, SourceId> ids_;
  std::vector<std::string> argument_names_;
};

}  // namespace tenon::guards
