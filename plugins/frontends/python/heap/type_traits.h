// What the evaluator must know of an object's type before it lets a program touch the object.
#pragma once

#include <string_view>
#include <unordered_map>

#include "python/guards/recorder.h"
#include "python/objects/library_types.h"

namespace tenon::python {

enum class Container : std::uint8_t { none, list, tuple, dict, set, frozen_set, deque };

struct TypeTraits {
  bool atom = false;      // immutable, without parts, compared by value: int, str, None, dtype, …
  bool identity = false;  // immutable as far as programs go, or a definition: guarded by identity (functions, types, modules, …)
  bool iterator = false;  // a C iterator: advancing one that is older than the call breaks
  Container container = Container::none;
  bool exact = false;     // exactly the built-in container, not a subclass
  bool python_class = false;  // made by a class statement
  bool hidden = false;        // holds in C what no guard looks at: bytearray, datetime, Decimal, views of dicts, and subclasses of such
  Recorder::Role role = Recorder::Role::other;
};

/// Answers per type, remembered for one capture.
class TypeTable {
 public:
  explicit TypeTable(Recorder& recorder) : recorder_(recorder) {}
  const TypeTraits& of(PyTypeObject* type);
  const TypeTraits& of(PyObject* object) { return of(Py_TYPE(object)); }

 private:
  Recorder& recorder_;
  std::unordered_map<PyTypeObject*, TypeTraits> known_;
};

/// Whether a class and all its bases but `object` were made by class statements: their instances are `__dict__` and slots, nothing else.
bool is_plain_class(PyTypeObject* type);

/// Whether objects of a class are a number or a text besides, which C code reads without asking.
bool holds_plain_value(PyTypeObject* type);

/// The name of the module that a Python function is written in; its `__module__` may be another's, which functools.wraps copies.
std::string_view written_in(PyObject* function);

/// Whether that is in the package that its `__module__` names.
bool is_written_where_it_says(PyObject* function);

/// Whether it is a scalar of NumPy, whose operators give scalars of NumPy for Python's numbers.
bool is_scalar_of_numpy(PyObject* object);

/// `array.flags`, which C code reads and writes in the array.
bool are_flags_of_array(PyObject* object);

/// Breaks the graph where a special method is an object that runs Python code of its own when it is called or bound: what that does would not be seen.
void require_no_method_object(PyObject* found);

/// Whether an attribute found on a type is made of a Python function: a property, or a method of the class.
inline bool is_python_descriptor(PyObject* found) {
  return Py_TYPE(found) == &PyProperty_Type || Py_TYPE(found) == &PyClassMethod_Type || Py_TYPE(found) == &PyStaticMethod_Type;
}

/// Whether an attribute found on a type is a Python function (so that C code calling it would run the user's bytecode).
inline bool is_python_function(PyObject* found) {
  if (found == nullptr || PyFunction_Check(found)) return found != nullptr;
  require_no_method_object(found);
  return false;
}

}  // namespace tenon::python
