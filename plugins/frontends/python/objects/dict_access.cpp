#include "python/objects/dict_access.h"

#include <unordered_map>

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

bool keeps_order_of_insertion(PyObject* dict) {
  if (!keeps_own_order(dict)) return true;
  Ref own = checked(PySequence_List(ordered_method("keys", dict).get()));
  Py_ssize_t position = 0, at = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value))
    if (key != PyList_GET_ITEM(own.get(), at++)) return false;
  return true;
}

void move_to_order(PyObject* dict, PyObject* keys) {
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(keys, &position, &key, &value)) checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(library_types().ordered_dict), "move_to_end", "OO", dict, key));
}

// Those of an OrderedDict without its own lookups, which would hash keys that stand for others.
Ref items_past_override(PyObject* dict) {
  if (!keeps_own_order(dict)) return checked(PyDict_Items(dict));
  std::unordered_map<PyObject*, PyObject*> values;
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value)) values.emplace(key, value);
  Ref keys = checked(PySequence_List(ordered_method("keys", dict).get())), items = checked(PyList_New(PyList_GET_SIZE(keys.get())));
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(keys.get()); ++at) {
    PyObject* each = PyList_GET_ITEM(keys.get(), at);
    PyList_SET_ITEM(items.get(), at, checked(PyTuple_Pack(2, each, values.at(each))).release());
  }
  return items;
}

}  // namespace tenon::python
