#include "python/compat/self_test.h"

#include "python/compat/object_layout.h"

namespace tenon::python::compat {
namespace {

bool dict_versions_work() {
  if (!kHasDictVersions) return true;  // not used
  Ref dict = Ref::steal(PyDict_New()), key = Ref::steal(PyUnicode_InternFromString("key")), value = Ref::steal(PyFloat_FromDouble(1));
  Ref other = Ref::steal(PyFloat_FromDouble(2));
  if (!dict || !key || !value || !other) return false;
  PyDict_SetItem(dict.get(), key.get(), value.get());
  const std::uint64_t first = dict_version(dict.get());
  PyDict_GetItemWithError(dict.get(), key.get());
  const bool quiet = dict_version(dict.get()) == first;
  PyDict_SetItem(dict.get(), key.get(), other.get());
  const std::uint64_t second = dict_version(dict.get());
  PyDict_DelItem(dict.get(), key.get());
  const std::uint64_t third = dict_version(dict.get());
  return quiet && second != first && third != second && third != first;
}

bool type_versions_work() {
  Ref type = Ref::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(){}", "Probe"));
  Ref name = Ref::steal(PyUnicode_InternFromString("attribute"));
  if (!type || !name) return false;
  auto* probe = reinterpret_cast<PyTypeObject*>(type.get());
  type_lookup(probe, name.get());
  const std::uint32_t first = type_version(probe);
  if (PyObject_SetAttr(type.get(), name.get(), Py_None) < 0) return false;
  const bool found = type_lookup(probe, name.get()) == Py_None;
  return found && type_version(probe) != first;
}

bool instance_dicts_work() {
  Ref type = Ref::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(){}", "Probe"));
  Ref object = type ? Ref::steal(PyObject_CallNoArgs(type.get())) : Ref();
  if (!object || PyObject_SetAttrString(object.get(), "attribute", Py_None) < 0) return false;
  PyObject* dict = instance_dict(object.get());
  return dict != nullptr && PyDict_GetItemString(dict, "attribute") == Py_None;
}

}  // namespace

bool versions_work() {
  static const bool all = [] {
    const bool good = dict_versions_work() && type_versions_work() && instance_dicts_work();
    PyErr_Clear();
    return good;
  }();
  return all;
}

}  // namespace tenon::python::compat
