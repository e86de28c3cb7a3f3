#include "python/heap/type_traits.h"

#include <fmt/format.h>

#include <string_view>

#include "python/compat/object_layout.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// What lets go of instances of classes that Python code made.
destructor deallocation_of_classes() {
  static const destructor found = [] {
    Ref type = checked(PyObject_CallFunction(as_object(&PyType_Type), "s(){}", "Plain"));
    return reinterpret_cast<PyTypeObject*>(type.get())->tp_dealloc;
  }();
  return found;
}

bool is_any(PyTypeObject* type, std::initializer_list<PyTypeObject*> types) {
  for (PyTypeObject* each : types)
    if (type == each) return true;
  return false;
}

/// Values of libraries that behave like numbers: static types, which no Python class can imitate.
bool is_library_atom(PyTypeObject* type) {
  const std::string_view meta = Py_TYPE(type)->tp_name;
  if (meta == "numpy._DTypeMeta") return true;
  if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return false;
  const std::string_view name = type->tp_name;
  for (std::string_view atom : {"torch.dtype", "torch.device", "torch.layout", "torch.memory_format", "torch.qscheme", "torch.Size", "torch.finfo", "torch.iinfo"})
    if (name == atom) return true;
  return false;
}

bool is_atom(PyTypeObject* type) {
  return is_any(type, {&PyLong_Type, &PyFloat_Type, &PyUnicode_Type, &PyBool_Type, Py_TYPE(Py_None), &PyBytes_Type, &PyComplex_Type,
                       Py_TYPE(Py_Ellipsis), Py_TYPE(Py_NotImplemented), &PyRange_Type}) ||
         is_library_atom(type);
}

bool is_identity(PyTypeObject* type) {
  if (PyType_IsSubtype(type, &PyType_Type) || PyType_IsSubtype(type, &PyModule_Type)) return true;
  if (PyType_IsSubtype(Py_TYPE(type), library_types().enum_meta)) return true;
  if (is_any(type, {&PyFunction_Type, &PyCFunction_Type, &PyCode_Type, &PyMethodDescr_Type, &PyWrapperDescr_Type, &PyClassMethodDescr_Type,
                    &PyGetSetDescr_Type, &PyMemberDescr_Type, &PyProperty_Type, &PyStaticMethod_Type, &PyClassMethod_Type, library_types().lru_cache,
                    library_types().attribute_getter, library_types().item_getter, library_types().method_caller}))
    return true;
  const std::string_view name = type->tp_name;
  return name == "numpy.ufunc" || name == "numpy._ArrayFunctionDispatcher" || name == "OpOverload" || name == "OpOverloadPacket" ||
         name == "builtin_function_or_method" || name == "re.Pattern" || name == "types.GenericAlias" || name == "types.UnionType" || name == "object" ||
         name == "tenon._tenon.CompiledFunction";
}

Container container_of(PyTypeObject* type) {
  if (PyType_FastSubclass(type, Py_TPFLAGS_LIST_SUBCLASS)) return Container::list;
  if (PyType_FastSubclass(type, Py_TPFLAGS_TUPLE_SUBCLASS)) return Container::tuple;
  if (PyType_FastSubclass(type, Py_TPFLAGS_DICT_SUBCLASS)) return Container::dict;
  if (PyType_IsSubtype(type, &PySet_Type)) return Container::set;
  if (PyType_IsSubtype(type, &PyFrozenSet_Type)) return Container::frozen_set;
  if (PyType_IsSubtype(type, library_types().deque)) return Container::deque;
  return Container::none;
}

/// Slices and exceptions are guarded by their parts when C code reads them, numbers and texts of classes of their own by identity.
bool holds_hidden_state(PyTypeObject* type, const TypeTraits& traits) {
  if (traits.atom || traits.identity || traits.iterator || traits.role != Recorder::Role::other || traits.container != Container::none) return false;
  const bool has_parts = type == &PySlice_Type || PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(PyExc_BaseException));
  return !has_parts && !holds_plain_value(type) && !is_plain_class(type);
}

bool is_exact(PyTypeObject* type) {
  return is_any(type, {&PyList_Type, &PyTuple_Type, &PyDict_Type, &PySet_Type, &PyFrozenSet_Type, library_types().deque,
                       library_types().ordered_dict, library_types().default_dict});
}

}  // namespace

bool holds_plain_value(PyTypeObject* type) {
  for (PyTypeObject* base : {&PyLong_Type, &PyFloat_Type, &PyUnicode_Type, &PyBytes_Type, &PyComplex_Type})
    if (PyType_IsSubtype(type, base)) return true;
  return false;
}

bool is_plain_class(PyTypeObject* type) {
  PyObject* order = type->tp_mro;
  for (Py_ssize_t at = 0; at + 1 < PyTuple_GET_SIZE(order); ++at) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, at));
    // Types that C code made have methods in C, or parts that they let go of themselves.
    if (!PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) || base->tp_dealloc != deallocation_of_classes()) return false;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(compat::type_dict(base), &position, &key, &value))
      if (Py_TYPE(value) == &PyMethodDescr_Type) return false;
  }
  return PyTuple_GET_ITEM(order, PyTuple_GET_SIZE(order) - 1) == as_object(&PyBaseObject_Type);
}

namespace {

std::string_view text_or_nothing(PyObject* object) {
  const char* text = object != nullptr && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  PyErr_Clear();
  return text ? text : "";
}

std::string_view package_of(std::string_view module) { return module.substr(0, module.find('.')); }

}  // namespace

std::string_view written_in(PyObject* function) {
  return text_or_nothing(PyDict_GetItemWithError(reinterpret_cast<PyFunctionObject*>(function)->func_globals, names().__name__));
}

bool is_written_where_it_says(PyObject* function) {
  return package_of(written_in(function)) == package_of(text_or_nothing(reinterpret_cast<PyFunctionObject*>(function)->func_module));
}

bool is_scalar_of_numpy(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  return name.starts_with("numpy.") && PyNumber_Check(object) && !PySequence_Check(object);
}

bool are_flags_of_array(PyObject* object) {
  const std::string_view name = Py_TYPE(object)->tp_name;
  return name == "numpy._core.multiarray.flagsobj" || name == "numpy.flagsobj";
}

void require_no_method_object(PyObject* found) {
  PyTypeObject* const type = Py_TYPE(found);
  const bool wraps = is_python_descriptor(found) || PyMethod_Check(found) || type == library_types().partial || type == library_types().lru_cache;
  if (wraps) throw GraphBreak(fmt::format("a special method that is a {}", type->tp_name));
  if (PyType_Check(found) || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return;
  for (PyObject* name : {names().__call__, names().__get__}) {
    PyObject* method = compat::type_lookup(Py_TYPE(found), name);
    if (method != nullptr && PyFunction_Check(method)) throw GraphBreak(fmt::format("a special method that is a {}", Py_TYPE(found)->tp_name));
  }
}

const TypeTraits& TypeTable::of(PyTypeObject* type) {
  auto [entry, fresh] = known_.try_emplace(type);
  TypeTraits& traits = entry->second;
  if (!fresh) return traits;
  traits.atom = is_atom(type);
  traits.container = container_of(type);
  traits.exact = traits.container != Container::none && is_exact(type);
  traits.python_class = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE);
  if (!traits.atom) traits.role = recorder_.role(type);
  if (traits.role == Recorder::Role::number) traits.atom = true;
  traits.identity = !traits.atom && traits.role == Recorder::Role::other && is_identity(type);
  traits.iterator = !traits.atom && !traits.python_class && compat::has_next(type);
  traits.hidden = holds_hidden_state(type, traits);
  return traits;
}

}  // namespace tenon::python
