// Attribute writes and deletions by the rules of object.__setattr__, with user code on the way evaluated.
#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {

void Attributes::remove(PyObject* owner, PyObject* name) {
  if (core_.is_stand_in(owner) && names_gradient(name)) return store_gradient(owner, Py_None);
  if (core_.is_stand_in(owner)) throw GraphBreak(fmt::format("attribute '{}' of a tensor is deleted", name_text(name)), kAssignHint);
  PyObject* method = heap_.type_attribute(Py_TYPE(owner), names().__delattr__);
  if (is_python_function(method)) {
    core_.call_now(method, {owner, name});
    return;
  }
  generic_remove(owner, name);
}

void Attributes::generic_remove(PyObject* owner, PyObject* name) {
  PyObject* found = heap_.type_attribute(Py_TYPE(owner), name);
  if (found != nullptr && Py_TYPE(found)->tp_descr_set != nullptr) {
    PyObject* deleter = heap_.type_attribute(Py_TYPE(found), names().__delete__);
    if (PyObject_TypeCheck(found, &PyProperty_Type)) {
      Ref function = checked(PyObject_GetAttr(found, names().fdel));
      if (function.is(Py_None)) throw GraphBreak(fmt::format("the property '{}' cannot be deleted", name_text(name)));
      heap_.make_known(function.get(), heap_.sources().constant(function.get()));
      core_.call_now(function.get(), {owner});
      return;
    }
    if (is_python_function(deleter)) {
      make_descriptor_known(found, Py_TYPE(owner), name);
      core_.call_now(deleter, {found, owner});
      return;
    }
    if (Py_TYPE(found) != &PyMemberDescr_Type) throw GraphBreak(fmt::format("'del' of the attribute '{}', which has a descriptor", name_text(name)));
  }
  heap_.store_attribute(owner, name, nullptr);
}

void Attributes::store(PyObject* owner, PyObject* name, PyObject* value) {
  PyTypeObject* type = Py_TYPE(owner);
  if (core_.is_stand_in(owner) && names_gradient(name)) return store_gradient(owner, value);
  if (core_.is_stand_in(owner) && names_hooks(name)) return store_hooks(owner, name, value);
  if (core_.is_stand_in(owner) && asks_for_gradient(name)) return ask_for_gradient(owner, value);
  if (core_.is_stand_in(owner)) throw GraphBreak(fmt::format("attribute '{}' of a tensor is assigned", name_text(name)), kAssignHint);
  if (are_flags_of_array(owner)) throw GraphBreak(fmt::format("the flag '{}' of an array is assigned", name_text(name)));
  PyObject* setter = heap_.type_attribute(type, names().__setattr__);
  if (is_python_function(setter)) {
    core_.call_now(setter, {owner, name, value});
    return;
  }
  if (heap_.traits(owner).python_class && type->tp_setattro != PyObject_GenericSetAttr && !PyType_Check(owner) && setter != compat::type_lookup(&PyBaseObject_Type, names().__setattr__))
    throw GraphBreak(fmt::format("attribute '{}' of a {}, whose __setattr__ is C code, is assigned", name_text(name), type->tp_name));
  generic_store(owner, name, value);
}

void Attributes::generic_store(PyObject* owner, PyObject* name, PyObject* value) {
  PyTypeObject* type = Py_TYPE(owner);
  PyObject* found = heap_.type_attribute(type, name);
  if (found != nullptr && Py_TYPE(found)->tp_descr_set != nullptr) {
    if (PyObject_TypeCheck(found, &PyProperty_Type)) {
      Ref setter = checked(PyObject_GetAttr(found, names().fset));
      if (setter.is(Py_None)) throw GraphBreak(fmt::format("the property '{}' cannot be set", name_text(name)));
      heap_.make_known(setter.get(), heap_.sources().constant(setter.get()));
      core_.call_now(setter.get(), {owner, value});
      return;
    }
    PyObject* setter = heap_.type_attribute(Py_TYPE(found), names().__set__);
    if (is_python_function(setter)) {
      make_descriptor_known(found, type, name);
      core_.call_now(setter, {found, owner, value});
      return;
    }
  }
  // Past a __setattr__ of its class: whoever wanted that has called it already.
  heap_.store_attribute(owner, name, value);
}

}  // namespace tenon::python
