// Reads of CPython objects whose layout or meaning depends on the version. Nothing outside compat/ asks for PY_VERSION_HEX.
#pragma once

#include <Python.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "python/objects/ref.h"

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "The Python frontend knows the bytecode and object layouts of CPython 3.11, 3.12 and 3.13 only."
#endif
#ifdef Py_GIL_DISABLED
#error "The Python frontend needs a CPython build with the GIL."
#endif

namespace tenon::python::compat {

/// Whether `dict_version` changes with every change of a dict. Not on 3.13: stores into inline values of an instance do not bump it
/// (python/cpython#125608), and later versions have none.
inline constexpr bool kHasDictVersions = PY_VERSION_HEX < 0x030D0000;

/// A number that is unique to the present contents of a dict: keys, and identities of values.
inline std::uint64_t dict_version(PyObject* dict) {
#if PY_VERSION_HEX < 0x030D0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const std::uint64_t tag = reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
#if PY_VERSION_HEX >= 0x030C0000
  return tag >> 8;  // the low byte holds watchers
#else
  return tag;
#endif
#else
  (void)dict;
  return 0;
#endif
}

/// Where a dict keeps what `dict_version` reads; null where that says nothing.
inline const void* dict_version_place(PyObject* dict) {
#if PY_VERSION_HEX < 0x030D0000
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
#else
  (void)dict;
  return nullptr;
#endif
}

/// A number that is unique to the attributes of a type and of its bases; 0 when CPython has given none.
inline std::uint32_t type_version(PyTypeObject* type) {
  return PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG) ? type->tp_version_tag : 0;
}

/// The attribute as the type finds it along its bases, unbound and borrowed; null (no exception) when there is none.
inline PyObject* type_lookup(PyTypeObject* type, PyObject* name) { return _PyType_Lookup(type, name); }

/// The keys of a dict or set, with the hashes that they had when they came in. Throws nothing; on an error (out of memory) there are none.
std::vector<std::pair<Ref, Py_hash_t>> hashed_keys(PyObject* container);

/// Whether two dicts have a key in common: what PyDict_Merge does not refuse, and calls must.
inline bool share_a_key(PyObject* left, PyObject* right) {
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(right, &position, &key, &value))
    if (PyDict_Contains(left, key) == 1) return true;
  PyErr_Clear();
  return false;
}

/// The `__dict__` of an instance or module, borrowed; made when CPython keeps the values inline. Null (no exception) when it has none.
PyObject* instance_dict(PyObject* object);

/// Where objects of this one's type keep their `__dict__`, which exists. Null where the place depends on more than the type.
PyObject** instance_dict_place(PyObject* object);

/// Takes the exception that is set, normalised, with its traceback attached.
Ref take_exception();
/// Sets an exception object as raised. Keeps its traceback and context.
void set_exception(Ref exception);

/// The exception that is being handled (`sys.exception()`), or empty.
Ref handled_exception();
void set_handled_exception(PyObject* exception_or_null);

/// The traceback of an exception; where it has none, one entry that names no frame of the program is made first. `exception` must not be set.
Ref traceback_of(PyObject* exception);

/// The attributes that a type itself defines, borrowed.
PyObject* type_dict(PyTypeObject* type);

/// The dict that a view (`keys()`, `values()`, `items()`) looks at, borrowed.
PyObject* dict_of_view(PyObject* view);
/// What a types.MappingProxyType shows, borrowed.
PyObject* mapping_of_proxy(PyObject* proxy);

/// The dict that an iterator of keys, values or items walks over, borrowed; null when it is at its end.
PyObject* dict_of_iterator(PyObject* iterator);

/// Whether a member descriptor (a slot) can be assigned.
bool is_writable_member(PyObject* member);
/// Whether the object is a member descriptor of a slot that may be empty (`__slots__`), and where that slot is in an object of its class.
bool is_slot(PyObject* descriptor);
PyObject** place_of_slot(PyObject* object, PyObject* slot);

/// The type of a bound slot, such as `[].__len__`.
PyTypeObject* method_wrapper_type();

/// Whether objects of the type are iterators.
bool has_next(PyTypeObject* type);

/// The names of all locals, cells and free variables of a code object, in the order of its frame's slots (tuple of str, borrowed).
PyObject* local_names(PyCodeObject* code);
/// Whether the variable in that slot lives in a cell because an inner function uses it.
bool is_cell_variable(PyCodeObject* code, int slot);

}  // namespace tenon::python::compat
