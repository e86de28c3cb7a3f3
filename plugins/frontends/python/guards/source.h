// Sources: the paths by which a later call finds again what a capture read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/dim.h"
#include "python/objects/ref.h"

namespace tenon::python {

enum class SourceKind : std::uint8_t {
  constant,           // the object itself: the compiled callable, and everything that is guarded by identity
  argument,           // the call's value number `index`: positional ones, then keywords in the order of their names
  instance_dict,      // parent.__dict__
  dict_item,          // parent[key], past any override
  dict_value,         // the value number `index` of the dict parent, in its order
  list_item,          // parent[index]; negative from the end
  tuple_item,         // parent[index]
  sequence_item,      // parent[index] through the sequence protocol (deque)
  chosen_item,        // parent[place], of a list, tuple or dict, where numbers that vary say the place
  member,             // what the C descriptor `key` gives for the parent
  attribute,          // getattr(parent, key); only where that runs no Python code
  type_attribute,     // the attribute `key` as the type `parent` finds it along its bases, unbound
  function_defaults,  // parent.__defaults__
  function_kwdefaults,
  function_closure,   // a tuple of cells
  cell_contents,
  method_function,    // parent.__func__
  method_self,        // parent.__self__, of a Python method or of a bound C function
  called,             // parent(), of a weak reference or of a function that only reads a state
  cached_result,      // what the functools.lru_cache parent holds under the key
  class_dict,         // the attributes that the type parent has itself, as a dict
  proxied,            // what the types.MappingProxyType parent shows
  upcoming,           // the item that the iterator gives after `index` others; it is not advanced
  handled_exception,  // what is being handled where the segment begins, or None; has no parent
};

/// Names a source; 0 is none.
struct SourceId {
  std::uint32_t value = 0;
  explicit operator bool() const { return value != 0; }
  friend bool operator==(SourceId, SourceId) = default;
};

/// A place in a sequence, as an expression over the positions of `numbers`, which hold ints.
struct ChosenPlace {
  std::vector<SourceId> numbers;
  ir::Dim index;
  friend bool operator==(const ChosenPlace&, const ChosenPlace&) = default;
};

struct Source {
  SourceKind kind;
  SourceId parent;
  std::int64_t index = 0;  // argument and item positions
  Ref key;                 // constant: the object; dict_item, attribute, type_attribute: the key; member: the descriptor
  std::shared_ptr<const ChosenPlace> place = {};  // chosen_item
};

/// All sources of one capture, each path once. A parent always comes before its children.
class SourceTable {
 public:
  SourceTable();

  SourceId constant(PyObject* object);
  SourceId argument(std::int64_t index);
  /// A path below `parent` that needs no key.
  SourceId part(SourceKind kind, SourceId parent);
  SourceId item(SourceKind kind, SourceId parent, std::int64_t index);
  SourceId chosen_item(SourceId parent, ChosenPlace place);
  /// A path with a key. Keys are one when they are the same object, or equal strings, or equal numbers of one type.
  SourceId keyed(SourceKind kind, SourceId parent, PyObject* key);

  const Source& operator[](SourceId id) const { return sources_[id.value]; }
  std::size_t size() const { return sources_.size(); }
  /// Visits every object that is held, for the garbage collector.
  int traverse(visitproc visit, void* arg) const {
    for (const Source& source : sources_) Py_VISIT(source.key.get());
    if (index_) Py_VISIT(index_->key_numbers.get());
    return 0;
  }

  /// The same sources, of which there will be no more.
  SourceTable closed_copy() const;
  /// Forgets what only new sources need: there will be none.
  void close() {
    index_.reset();
    sources_.shrink_to_fit();
  }

  /// Whether the path starts at an argument (its objects differ from call to call), not at a constant.
  bool from_argument(SourceId id) const;

  /// Names for the arguments in messages ("x"), by index; others print as `arg[2]`.
  void name_arguments(std::vector<std::string> names) { argument_names_ = std::move(names); }
  /// Writes the path as a Python expression: `self.layers["conv"].weight`.
  std::string describe(SourceId id) const;

 private:
  struct Shape {
    SourceKind kind;
    std::uint32_t parent;
    std::int64_t index;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  struct ShapeHash {
    std::size_t operator()(const Shape& shape) const;
  };
  SourceId intern(Source source, const Shape& shape);
  std::int64_t key_number(PyObject* key);
  std::string variable_of_cell(SourceId cell) const;

  /// By which a path is found that is there already.
  struct Index {
    std::vector<std::shared_ptr<const ChosenPlace>> places;
    std::unordered_map<Shape, std::uint32_t, ShapeHash> ids;
    Ref key_numbers;  // dict: (type, key) or identity -> number, so that equal keys are one
  };
  std::vector<Source> sources_;
  std::unique_ptr<Index> index_ = std::make_unique<Index>();  // null once the table is closed
  std::vector<std::string> argument_names_;
};

/// Writes a place as a Python expression.
std::string describe(const SourceTable& sources, const ChosenPlace& place);
/// An object as Python shows it, for messages: "nothing" for null, and cut after a length that a line can bear.
std::string shown(PyObject* object);
/// The UTF-8 of a name; "?" where it has none.
std::string name_text(PyObject* name);

}  // namespace tenon::python
