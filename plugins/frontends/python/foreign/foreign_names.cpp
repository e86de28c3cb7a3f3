#include "python/foreign/foreign_names.h"

#include <cstring>
#include <string_view>
#include <unordered_map>

#include "python/compat/object_layout.h"
#include "python/heap/type_traits.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

ArrayStandIns g_array_stand_ins;

std::string text_attribute(PyObject* object, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  if (!value || !PyUnicode_Check(value.get())) {
    PyErr_Clear();
    return {};
  }
  const char* text = PyUnicode_AsUTF8(value.get());
  return text ? text : "";
}

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool is_module_of(std::string_view module, std::string_view package) {
  return module == package || (starts_with(module, package) && module[package.size()] == '.');
}

/// Whether a type is torch.Tensor or a base of it that is torch's own.
bool is_tensor_class(const TorchLibrary& torch, PyObject* type) {
  return PyType_Check(type) && type != reinterpret_cast<PyObject*>(&PyBaseObject_Type) &&
         PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(torch.tensor.get()), reinterpret_cast<PyTypeObject*>(type));
}

/// torch calls its methods for `/` by the names of Python 2.
std::string method_name(std::string name) { return name == "__rdiv__" ? "__rtruediv__" : name == "__div__" ? "__truediv__" : name; }

/// "aten.add.Tensor" of a callable of torch.ops; empty for anything else.
std::string operator_name(PyObject* callable) {
  const std::string_view type = Py_TYPE(callable)->tp_name;
  if (type != "OpOverload" && type != "OpOverloadPacket") return {};
  if (text_attribute(reinterpret_cast<PyObject*>(Py_TYPE(callable)), "__module__") != "torch._ops") return {};
  Ref name = checked(PyObject_Str(callable));
  return PyUnicode_AsUTF8(name.get());
}

/// The candidates of a torch callable's public name, most specific first.
std::vector<std::string> torch_names(const TorchLibrary& torch, PyObject* callable) {
  if (std::string name = operator_name(callable); !name.empty()) return {name, name + ".default"};
  Ref owner = Ref::steal(PyObject_GetAttrString(callable, "__objclass__"));
  if (!owner) PyErr_Clear();
  std::string name = text_attribute(callable, "__name__");
  if (name == "__get__") {  // the getter of an attribute: torch.Tensor.shape.__get__
    Ref descriptor = Ref::steal(PyObject_GetAttrString(callable, "__self__"));
    if (!descriptor) PyErr_Clear();
    owner = descriptor ? Ref::steal(PyObject_GetAttrString(descriptor.get(), "__objclass__")) : Ref();
    if (!owner) PyErr_Clear();
    if (!owner || !is_tensor_class(torch, owner.get())) return {};
    return {"torch.Tensor." + text_attribute(descriptor.get(), "__name__")};
  }
  if (owner && is_tensor_class(torch, owner.get())) return {"torch.Tensor." + name};
  const std::string qualified = text_attribute(callable, "__qualname__");
  const std::string module = text_attribute(callable, "__module__");
  if (starts_with(qualified, "Tensor.") || starts_with(qualified, "TensorBase."))
    return is_module_of(module, "torch") ? std::vector<std::string>{"torch.Tensor." + method_name(name)} : std::vector<std::string>{};
  if (module == "torch._C._nn") return {"torch._C._nn." + name, "torch.nn.functional." + name, "torch." + name};
  // A function of Python may check and convert before it calls the one of the same name in torch.
  if (module == "torch.nn.functional" && PyFunction_Check(callable)) return {"torch.nn.functional." + name};
  if (module == "torch.nn.functional") return {"torch.nn.functional." + name, "torch." + name};
  const std::pair<std::string_view, std::string_view> prefixes[] = {
      {"torch._C._special", "special"}, {"torch._C._linalg", "linalg"}, {"torch._C._fft", "fft"}};
  for (auto [internal, part] : prefixes)
    if (module == internal) {
      std::string_view short_name = name;
      if (starts_with(short_name, part)) short_name.remove_prefix(part.size() + 1);
      return {fmt::format("torch.{}.{}", part, short_name), "torch." + name};
    }
  if (PyCFunction_Check(callable)) {
    if (module == "torch" || is_module_of(module, "torch._C")) return {"torch." + name};
    return {};
  }
  if (module == "torch.functional" || module == "torch") return {"torch." + name};
  return {};
}

/// The ufunc that a callable is a method of, or null.
PyObject* ufunc_of_method(PyObject* callable) {
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  return self && PyObject_TypeCheck(self, &PyUFunc_Type) ? self : nullptr;
}

/// Whether a descriptor is one of arrays or of NumPy's scalars.
bool is_of_arrays(PyObject* descriptor) {
  Ref owner = Ref::steal(PyObject_GetAttrString(descriptor, "__objclass__"));
  if (!owner) PyErr_Clear();
  return owner && (owner.is(reinterpret_cast<PyObject*>(&PyArray_Type)) || owner.is(reinterpret_cast<PyObject*>(&PyGenericArrType_Type)) ||
                   owner.is(reinterpret_cast<PyObject*>(g_array_stand_ins.type)));
}

/// The candidates of a NumPy callable's public name.
std::vector<std::string> numpy_names(PyObject* callable) {
  if (Py_TYPE(callable) == compat::method_wrapper_type()) {  // the getter of an attribute: ndarray.T.__get__
    Ref descriptor = checked(PyObject_GetAttrString(callable, "__self__"));
    if (!is_of_arrays(descriptor.get())) return {};
    return {"numpy.ndarray." + text_attribute(descriptor.get(), "__name__")};
  }
  if (PyObject* ufunc = ufunc_of_method(callable))  // numpy.add.reduce
    return {"numpy." + text_attribute(ufunc, "__name__") + "." + text_attribute(callable, "__name__")};
  const std::string name = text_attribute(callable, "__name__");
  if (PyObject_TypeCheck(callable, &PyUFunc_Type)) return {"numpy." + name};
  if (is_of_arrays(callable)) return {"numpy.ndarray." + name, "numpy." + name};
  if (PyType_Check(callable)) {
    if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(callable), &PyGenericArrType_Type)) return {"numpy." + name};
    return {};
  }
  const std::string module = text_attribute(callable, "__module__");
  const bool dispatched = std::strcmp(Py_TYPE(callable)->tp_name, "numpy._ArrayFunctionDispatcher") == 0;
  const bool native = PyCFunction_Check(callable) && is_module_of(module, "numpy") && !is_module_of(module, "numpy.random");
  const bool plain = PyFunction_Check(callable) && module == "numpy" && ops::find_alias("numpy." + name).op;  // numpy.full, numpy.ones
  if (!dispatched && !native && !plain) return {};
  if (is_module_of(module, "numpy.linalg")) return {"numpy.linalg." + name};
  if (is_module_of(module, "numpy.fft")) return {"numpy.fft." + name};
  return {"numpy." + name};
}

/// Whether ATen says that the function changes a tensor's metadata (t_, resize_, set_).
bool is_tagged_as_reshaping(const TorchLibrary& torch, const std::string& name) {
  Ref ops = checked(PyObject_GetAttrString(torch.module.get(), "ops"));
  Ref aten = checked(PyObject_GetAttrString(ops.get(), "aten"));
  Ref packet = Ref::steal(PyObject_GetAttrString(aten.get(), name.c_str()));
  Ref names = packet ? Ref::steal(PyObject_CallMethod(packet.get(), "overloads", nullptr)) : Ref();
  Ref tags = checked(PyObject_GetAttrString(torch.module.get(), "Tag"));
  Ref tag = Ref::steal(PyObject_GetAttrString(tags.get(), "inplace_view"));
  PyErr_Clear();
  if (!names || !tag) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    Ref overload = checked(PyObject_GetAttr(packet.get(), PyList_GET_ITEM(names.get(), i)));
    Ref its_tags = checked(PyObject_GetAttrString(overload.get(), "tags"));
    if (checked(PySequence_Contains(its_tags.get(), tag.get()))) return true;
  }
  return false;
}

/// Asks ATen's schemas whether a function of that name may give back memory of an argument, and whether it writes into one. What ATen
/// does not know by that name (`float`, `T`, `reshape_as`) may do the first.
void read_schemas(const TorchLibrary& torch, ForeignFunction& function) {
  std::string name(function.last_word());
  if (name.size() > 4 && starts_with(name, "__i") && name.find("__", 3) != std::string::npos) function.writes = !starts_with(name, "__in");
  if (name == "__setitem__" || (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_')) function.writes = true;
  if (function.writes) function.reshapes = is_tagged_as_reshaping(torch, name);
  if (function.op && function.op->body && !function.writes && starts_with(name, "__")) return;  // operators of pointwise ops
  function.may_alias = true;
  if (function.has(Trait::drops_in_training)) return;
  if (function.has(Trait::subscripts)) return;  // ATen's schemas of these names are of lists
  Ref native = checked(PyObject_GetAttrString(torch.module.get(), "_C"));
  Ref schemas = Ref::steal(PyObject_CallMethod(native.get(), "_jit_get_schemas_for_operator", "s", ("aten::" + name).c_str()));
  if (!schemas) {
    PyErr_Clear();
    return;
  }
  const Py_ssize_t count = PyList_GET_SIZE(schemas.get());
  bool aliases = count == 0;
  const auto is_composite = [&](PyObject* schema) {
    Ref overload = checked(PyObject_GetAttrString(schema, "overload_name"));
    const std::string_view variant = PyUnicode_AsUTF8(overload.get());
    const std::string full = fmt::format("aten::{}{}{}", name, variant.empty() ? "" : ".", variant);
    Ref has = Ref::steal(PyObject_CallMethod(native.get(), "_dispatch_has_kernel_for_dispatch_key", "ss", full.c_str(), "CompositeImplicitAutograd"));
    if (!has) PyErr_Clear();
    return has.is(Py_True);
  };
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref text = checked(PyObject_Str(PyList_GET_ITEM(schemas.get(), i)));
    std::string_view schema = PyUnicode_AsUTF8(text.get());
    if (schema.find("out)") != std::string_view::npos || schema.find("*, Tensor(a!)") != std::string_view::npos || schema.substr(0, schema.find('(')).ends_with("_out")) continue;  // the out= variants
    const std::string_view results = schema.substr(schema.rfind("->"));
    aliases |= results.find("Tensor(") != std::string_view::npos;
    function.composite |= is_composite(PyList_GET_ITEM(schemas.get(), i));
  }
  function.may_alias = aliases;
}

ForeignFunction classify(std::vector<std::string> names, ops::Flavour flavour) {
  ForeignFunction function;
  function.flavour = flavour;
  if (names.empty()) return function;
  function.name = names.front();
  const std::string_view last = function.last_word();
  const bool internal = last.size() > 1 && last.front() == '_' && last[1] != '_';
  function.traits = traits_of(function.name, flavour);
  if (internal && !function.has(Trait::metadata) && (flavour == ops::Flavour::numpy || starts_with(function.name, "torch.Tensor."))) return function;
  function.method = starts_with(function.name, "torch.Tensor.") || starts_with(function.name, "numpy.ndarray.");
  function.writes = function.has(Trait::writes);
  // The alias of a function that gives a new array says nothing about the method.
  if (function.writes) names = {function.name};
  if (function.has(Trait::metadata)) {
    function.kind = CallClass::metadata;
    return function;
  }
  for (const std::string& name : names)
    if (auto match = ops::find_alias(name); match.op) {
      function.kind = CallClass::operation;
      function.name = name;
      function.op = match.op;
      function.traits = traits_of(name, flavour);
      return function;
    }
  function.kind = function.has(Trait::same_elements) ? CallClass::same_elements
                  : function.has(Trait::creation)    ? CallClass::creation
                  : function.has(Trait::data)        ? CallClass::data
                                                     : CallClass::missing;
  return function;
}

/// `torch.Tensor.add_` → `torch.Tensor.add`, `__ior__` → `__or__`; empty for what is no in-place variant.
std::string out_of_place(const std::string& name) {
  const std::size_t method = name.rfind('.') + 1;
  if (name.compare(method, 3, "__i") == 0 && name.ends_with("__")) return name.substr(0, method) + "__" + name.substr(method + 3);
  return name.back() == '_' && !name.ends_with("__") ? name.substr(0, name.size() - 1) : "";
}

/// In-place variants have no alias of their own: `add_` is found as `add`.
ForeignFunction classify_torch(const TorchLibrary& torch, PyObject* callable) {
  ForeignFunction function = classify(torch_names(torch, callable), ops::Flavour::torch);
  function.operator_object = !operator_name(callable).empty();
  if (function.kind == CallClass::missing)
    if (auto match = ops::find_alias(out_of_place(function.name)); match.op) {
      function.kind = CallClass::operation;
      function.op = match.op;
    }
  if (function.kind != CallClass::unknown && function.kind != CallClass::metadata) read_schemas(torch, function);
  return function;
}

/// Whether a function of NumPy's is one of Python, behind the dispatcher of __array_function__ or not.
bool is_written_in_python(PyObject* callable) {
  if (PyFunction_Check(callable)) return true;
  if (std::strcmp(Py_TYPE(callable)->tp_name, "numpy._ArrayFunctionDispatcher") != 0) return false;
  Ref implementation = Ref::steal(PyObject_GetAttrString(callable, "_implementation"));
  if (!implementation) PyErr_Clear();
  return !implementation || PyFunction_Check(implementation.get());
}

ForeignFunction describe(PyObject* callable) {
  const TorchLibrary* torch = torch_library();
  if (torch) {
    ForeignFunction function = classify_torch(*torch, callable);
    if (function.kind != CallClass::unknown) return function;
  }
  ForeignFunction function = classify(numpy_names(callable), ops::Flavour::numpy);
  function.ufunc = PyObject_TypeCheck(callable, &PyUFunc_Type) ? callable : nullptr;
  function.composite = is_written_in_python(callable);
  return function;
}

/// What identifies a callable for good: getters are new wrapper objects each time, around one descriptor, and so are methods of ufuncs.
Ref identity_of(PyObject* callable) {
  if (PyObject* ufunc = ufunc_of_method(callable)) {
    static PyObject* const methods = PyDict_New();
    Ref key = checked(Py_BuildValue("(Os)", ufunc, reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name));
    return Ref::borrow(PyDict_SetDefault(methods, key.get(), callable));
  }
  if (Py_TYPE(callable) != compat::method_wrapper_type()) return Ref::borrow(callable);
  return checked(PyObject_GetAttrString(callable, "__self__"));
}

/// A function that the program wants as one node, whatever it does inside.
bool is_marked(PyObject* callable) {
  PyObject* dict = PyFunction_Check(callable) ? reinterpret_cast<PyFunctionObject*>(callable)->func_dict : nullptr;
  return dict != nullptr && PyDict_GetItemString(dict, "_tenon_in_graph") != nullptr;
}

ForeignFunction marked_function(PyObject* callable) {
  ForeignFunction function;
  function.kind = CallClass::missing;
  function.name = text_attribute(callable, "__qualname__");
  function.in_graph = true;
  return function;
}

/// Whether it may be one of torch's or NumPy's own. The names that anything else has may be copies of theirs.
bool may_be_of_a_library(PyObject* callable) {
  if (PyFunction_Check(callable)) return is_of_library(callable);
  if (PyType_Check(callable) || !PyType_HasFeature(Py_TYPE(callable), Py_TPFLAGS_HEAPTYPE)) return true;
  const std::string_view type = Py_TYPE(callable)->tp_name;
  return type == "OpOverload" || type == "OpOverloadPacket" || type.starts_with("numpy.");
}

struct Known {
  Ref callable;  // keeps the address taken
  ForeignFunction function;
};

}  // namespace

bool is_of_library(PyObject* found) {
  if (PyFunction_Check(found)) {
    if (written_in(found) != "contextlib") return is_module_of(written_in(found), "torch") || is_module_of(written_in(found), "numpy");
    Ref wrapped = Ref::steal(PyObject_GetAttrString(found, "__wrapped__"));  // a context that is made of a generator function
    if (!wrapped) PyErr_Clear();
    return wrapped && is_of_library(wrapped.get());
  }
  if (Py_TYPE(found) == &PyStaticMethod_Type || Py_TYPE(found) == &PyClassMethod_Type) return is_of_library(checked(PyObject_GetAttrString(found, "__func__")).get());
  if (Py_TYPE(found) == &PyProperty_Type) return is_of_library(checked(PyObject_GetAttrString(found, "fget")).get());
  if (PyCFunction_Check(found)) {
    const std::string module = text_attribute(found, "__module__");
    return module.empty() || is_module_of(module, "torch") || is_module_of(module, "numpy");
  }
  return found == Py_None || PyLong_Check(found) || PyUnicode_Check(found) || (!PyType_HasFeature(Py_TYPE(found), Py_TPFLAGS_HEAPTYPE) && Py_TYPE(found)->tp_descr_get != nullptr && !PyMethod_Check(found));
}

const ForeignFunction& foreign_function(PyObject* callable) {
  callable = g_array_stand_ins.unwrapped_method(callable);
  static const ForeignFunction nothing;
  static auto* known = new std::unordered_map<PyObject*, Known>();  // holds torch's and NumPy's own functions, and marked ones
  const bool marked = is_marked(callable);
  if (!marked && !may_be_of_a_library(callable)) return nothing;
  Ref key = identity_of(callable);
  auto found = known->find(key.get());
  if (found != known->end()) return found->second.function;
  ForeignFunction function = marked ? marked_function(callable) : describe(callable);
  if (function.kind == CallClass::unknown) return nothing;
  return known->emplace(key.get(), Known{key, std::move(function)}).first->second.function;
}

void set_array_stand_ins(ArrayStandIns stand_ins) { g_array_stand_ins = stand_ins; }

}  // namespace tenon::python
