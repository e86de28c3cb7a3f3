// The Python heap as one capture sees it: which objects are older than the call and where they were found, which were born in it,
// and what must be undone when it ends.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "python/heap/type_traits.h"

namespace tenon::python {

/// Every object is one of three: *known* (older than the call, found at a source, guarded), *born here*, or unknown. A mutable unknown
/// breaks the graph. Atoms (numbers, strings, …) have no identity and are only guarded by value.
class Heap {
 public:
  Heap(Recorder& recorder, GuardSet& guards) : recorder_(recorder), guards_(guards), types_(recorder) {}
  ~Heap() { rollback(); }

  GuardSet& guards() { return guards_; }
  SourceTable& sources() { return guards_.sources(); }
  const TypeTraits& traits(PyObject* object) { return types_.of(object); }
  const TypeTraits& traits(PyTypeObject* type) { return types_.of(type); }

  // ---- reads
  /// The program reads `object`, which it finds at `source`: guards it, and gives what the program must see (a stand-in for a tensor).
  Ref enter(SourceId source, PyObject* object);
  /// A value that was made in this capture by C code (or is a part of such a value): gives what the program must see.
  Ref adopt(Ref value);
  /// Declares an object as born here.
  const Ref& born(const Ref& object) {
    born_.insert(object.get());
    return object;
  }
  /// Where a known object was found; none for objects that were born here, for atoms and stand-ins.
  SourceId source_of(PyObject* object) const;
  bool is_born(PyObject* object) const { return born_.count(object) != 0; }
  bool is_stand_in(PyObject* object) { return types_.of(object).role == Recorder::Role::stand_in; }

  /// dict[key] past any override: the value as the program sees it, or empty when missing. The read is guarded.
  Ref dict_item(PyObject* dict, PyObject* key);
  /// Whether the key is there. Guarded.
  bool dict_contains(PyObject* dict, PyObject* key);
  /// list[index] or tuple[index] or deque[index], with 0 <= index < length.
  Ref sequence_item(PyObject* sequence, Py_ssize_t index);
  /// The length of a container. Guarded.
  Py_ssize_t length(PyObject* container);
  /// The `__dict__` of an instance, module or function, made known; null when it has none.
  PyObject* attributes_of(PyObject* object);
  /// The attribute as the type finds it along its bases, unbound; null when missing. Guarded.
  PyObject* type_attribute(PyTypeObject* type, PyObject* name);
  /// A part of a function, method, cell (see SourceKind) as the program sees it. `value` may be null only for empty cells.
  Ref part(SourceKind kind, PyObject* owner, PyObject* value);
  /// Makes a container that is part of a known object known too, without counting as a read by the program.
  void make_known(PyObject* object, SourceId source);

  /// The program has seen that two objects are not one.
  void found_different(PyObject* left, PyObject* right);

  /// C code is going to read all of it: guards length or keys and all items, recursively.
  void expose(PyObject* object, int depth = 0);
  /// The same value with stand-ins instead of real tensors inside lists, tuples and dicts: for calls of recorded operations.
  Ref substitute(PyObject* object, int depth = 0);

  /// The real tensor and its source behind a stand-in that is an input; null for results of operations.
  PyObject* real_of(PyObject* stand_in) const {
    const auto found = reals_.find(stand_in);
    return found == reals_.end() ? nullptr : found->second;
  }

  // ---- writes
  /// Whether the program may change the object in place: it was born here. Else breaks the graph, naming `what`.
  void require_writable(PyObject* object, const char* what);
  /// Adds a step that takes back a change of real state.
  void on_rollback(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  /// Takes back all changes, last first.
  void rollback();

  /// The real tensors that were replaced, in the order of Recorder::input.
  const std::vector<SourceId>& inputs() const { return inputs_; }

 private:
  struct Known {
    Ref object;
    SourceId source;
    Ref stand_in;
  };
  Ref enter_known(SourceId source, const Known& known);
  Ref enter_tensor(SourceId source, PyObject* object);
  void enter_function(SourceId source, PyObject* object);
  void enter_bound_builtin(SourceId source, PyObject* object);
  void expose_known(PyObject* object, SourceId source, const TypeTraits& traits);

  Recorder& recorder_;
  GuardSet& guards_;
  TypeTable types_;
  std::unordered_map<PyObject*, Known> known_;
  /// Addresses, not references: finalizers must run when the program drops an object. An address that is used again belongs to an
  /// object made later in the same capture, because older objects keep theirs: it is born here too.
  std::unordered_set<PyObject*> born_;
  std::unordered_set<PyObject*> exposed_;
  std::unordered_map<PyObject*, PyObject*> reals_;  // stand-in -> real; both held by known_
  std::vector<std::function<void()>> undo_;
  std::vector<SourceId> inputs_;
};

}  // namespace tenon::python
