#include "python/objects/dict_access.h"

#include "python/objects/graph_break.h"
#include "python/objects/library_types.h"

namespace tenon::python {

bool keeps_own_order(PyObject* dict) { return PyType_IsSubtype(Py_TYPE(dict), library_types().ordered_dict) != 0; }

namespace {

Ref ordered_method(const char* name, PyObject* dict) {
  return checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(library_types().ordered_dict), name, "O", dict));
}

}  // namespace

void set_past_override(PyObject* dict, PyObject* key, PyObject* value) {
  if (keeps_own_order(dict)) checked(library_types().ordered_dict->tp_as_mapping->mp_ass_subscript(dict, key, value));
  else checked(value ? PyDict_SetItem(dict, key, value) : PyDict_DelItem(dict, key));
}

void clear_past_override(PyObject* dict) {
  if (keeps_own_order(dict)) ordered_method("clear", dict);
  else PyDict_Clear(dict);
}

Ref items_past_override(PyObject* dict) {
  return keeps_own_order(dict) ? checked(PySequence_List(ordered_method("items", dict).get())) : checked(PyDict_Items(dict));
}

}  // namespace tenon::python
