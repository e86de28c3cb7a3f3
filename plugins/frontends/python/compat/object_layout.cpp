#include "python/compat/object_layout.h"

#include <structmember.h>

extern "C" PyAPI_FUNC(void) _PyTraceback_Add(const char* function, const char* file, int line);  // 3.13 no longer shows it
extern "C" PyAPI_FUNC(int) _PySet_NextEntry(PyObject* set, Py_ssize_t* position, PyObject** key, Py_hash_t* hash);  // nor this

namespace tenon::python::compat {

std::vector<std::pair<Ref, Py_hash_t>> hashed_keys(PyObject* container) {
  // A set made of a plain dict takes its hashes over, and only the other way to read them is gone from 3.13.
  Ref dict = PyDict_Check(container) && !PyDict_CheckExact(container) ? Ref::steal(PyDict_Copy(container)) : Ref::borrow(container);
  Ref set = dict && PyDict_Check(dict.get()) ? Ref::steal(PySet_New(dict.get())) : std::move(dict);
  std::vector<std::pair<Ref, Py_hash_t>> keys;
  if (!set) PyErr_Clear();
  Py_ssize_t position = 0;
  PyObject* key;
  Py_hash_t hash;
  while (set && _PySet_NextEntry(set.get(), &position, &key, &hash)) keys.push_back({Ref::borrow(key), hash});
  return keys;
}

PyObject* instance_dict(PyObject* object) {
  PyObject** place = _PyObject_GetDictPtr(object);
  if (place == nullptr) return nullptr;
  if (*place == nullptr) {
    Ref made = Ref::steal(PyObject_GenericGetDict(object, nullptr));
    if (!made) PyErr_Clear();
    place = _PyObject_GetDictPtr(object);
  }
  return place ? *place : nullptr;
}

PyObject** instance_dict_place(PyObject* object) {
  const bool managed = PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_MANAGED_DICT);
  return managed || Py_TYPE(object)->tp_dictoffset > 0 ? _PyObject_GetDictPtr(object) : nullptr;
}

Ref take_exception() {
#if PY_VERSION_HEX >= 0x030C0000
  return Ref::steal(PyErr_GetRaisedException());
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != nullptr && traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return Ref::steal(value);
#endif
}

void set_exception(Ref exception) {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(exception.release());
#else
  PyObject* value = exception.release();
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))), value, PyException_GetTraceback(value));
#endif
}

Ref handled_exception() {
  Ref exception = Ref::steal(PyErr_GetHandledException());
  return exception.is(Py_None) ? Ref() : exception;
}

void set_handled_exception(PyObject* exception_or_null) { PyErr_SetHandledException(exception_or_null); }

Ref traceback_of(PyObject* exception) {
  Ref traceback = Ref::steal(PyException_GetTraceback(exception));
  if (traceback) return traceback;
  set_exception(Ref::borrow(exception));
  _PyTraceback_Add("capture", "<tenon>", 1);
  take_exception();
  return Ref::steal(PyException_GetTraceback(exception));
}

PyObject* type_dict(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* dict = PyType_GetDict(type);
  Py_XDECREF(dict);  // the type keeps it
  return dict;
#else
  return type->tp_dict;
#endif
}

PyObject* mapping_of_proxy(PyObject* proxy) {
  PyObject* mapping = nullptr;  // all that the garbage collector finds in it
  Py_TYPE(proxy)->tp_traverse(proxy, [](PyObject* found, void* into) { return *static_cast<PyObject**>(into) = found, 0; }, &mapping);
  return mapping;
}

PyObject* dict_of_view(PyObject* view) {
  struct View {  // the same on all versions; 3.13 no longer shows it
    PyObject_HEAD
    PyObject* dict;
  };
  return reinterpret_cast<View*>(view)->dict;
}

PyObject* dict_of_iterator(PyObject* iterator) {
  struct Iterator {  // its beginning is the same on all versions
    PyObject_HEAD
    PyObject* dict;
  };
  return reinterpret_cast<Iterator*>(iterator)->dict;
}

bool is_writable_member(PyObject* member) { return (reinterpret_cast<PyMemberDescrObject*>(member)->d_member->flags & READONLY) == 0; }

bool is_slot(PyObject* descriptor) {
  return Py_TYPE(descriptor) == &PyMemberDescr_Type && reinterpret_cast<PyMemberDescrObject*>(descriptor)->d_member->type == T_OBJECT_EX;
}

PyObject** place_of_slot(PyObject* object, PyObject* slot) {
  return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + reinterpret_cast<PyMemberDescrObject*>(slot)->d_member->offset);
}

PyTypeObject* method_wrapper_type() {
  static PyTypeObject* const type = [] {
    Ref method = Ref::steal(PyObject_GetAttrString(Py_None, "__repr__"));
    return method.type();
  }();
  return type;
}

bool has_next(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030D0000
  if (type->tp_iternext == &_PyObject_NextNotImplemented) return false;  // hidden from 3.13 on
#endif
  return type->tp_iternext != nullptr;
}

PyObject* local_names(PyCodeObject* code) { return code->co_localsplusnames; }

bool is_cell_variable(PyCodeObject* code, int slot) {
  constexpr char kFastCell = 0x40;  // CO_FAST_CELL of pycore_code.h, in 3.11 to 3.13
  return (PyBytes_AS_STRING(code->co_localspluskinds)[slot] & kFastCell) != 0;
}

}  // namespace tenon::python::compat
