#include "python/guards/special_methods.h"

#include <vector>

#include "python/compat/object_layout.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// Those of Python's data model, of its libraries in C, and of torch's and NumPy's protocols.
constexpr const char* kNames[] = {
    "__abs__", "__add__", "__aenter__", "__aexit__", "__aiter__", "__and__", "__anext__", "__await__", "__bool__", "__buffer__", "__bytes__", "__call__", "__ceil__",
    "__class__", "__complex__", "__contains__", "__copy__", "__deepcopy__", "__del__", "__delattr__", "__delete__", "__delitem__", "__dict__", "__dir__", "__divmod__",
    "__enter__", "__eq__", "__exit__", "__float__", "__floor__", "__floordiv__", "__format__", "__fspath__", "__ge__", "__get__", "__getattr__", "__getattribute__",
    "__getitem__", "__getnewargs__", "__getnewargs_ex__", "__getstate__", "__gt__", "__hash__", "__iadd__", "__iand__", "__ifloordiv__", "__ilshift__", "__imatmul__",
    "__imod__", "__imul__", "__index__", "__init__", "__instancecheck__", "__int__", "__invert__", "__ior__", "__ipow__", "__irshift__", "__isub__", "__iter__",
    "__itruediv__", "__ixor__", "__le__", "__len__", "__length_hint__", "__lshift__", "__lt__", "__matmul__", "__missing__", "__mod__", "__mul__", "__ne__", "__neg__",
    "__new__", "__next__", "__or__", "__pos__", "__pow__", "__radd__", "__rand__", "__rdivmod__", "__reduce__", "__reduce_ex__", "__repr__", "__reversed__",
    "__rfloordiv__", "__rlshift__", "__rmatmul__", "__rmod__", "__rmul__", "__ror__", "__round__", "__rpow__", "__rrshift__", "__rshift__", "__rsub__", "__rtruediv__",
    "__rxor__", "__set__", "__setattr__", "__setitem__", "__setstate__", "__str__", "__sub__", "__subclasscheck__", "__truediv__", "__trunc__", "__xor__",
    "__array__", "__array_finalize__", "__array_function__", "__array_interface__", "__array_namespace__", "__array_prepare__", "__array_priority__", "__array_struct__",
    "__array_ufunc__", "__array_wrap__", "__cuda_array_interface__", "__dlpack__", "__dlpack_device__", "__torch_dispatch__", "__torch_function__"};

const std::vector<PyObject*>& names_of_methods() {
  static const auto* names = [] {
    auto* made = new std::vector<PyObject*>;
    for (const char* name : kNames) made->push_back(checked(PyUnicode_InternFromString(name)).release());
    return made;
  }();
  return *names;
}

/// Stand in the tuple for "nothing" and for "anything"; no program has them.
PyObject* make_mark() { return checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type))).release(); }
PyObject* nothing() {
  static PyObject* const mark = make_mark();
  return mark;
}
PyObject* anything() {
  static PyObject* const mark = make_mark();
  return mark;
}

}  // namespace

std::span<PyObject* const> special_method_names() { return names_of_methods(); }

Ref special_methods_of(PyTypeObject* type, const std::function<bool(PyObject* name)>& is_free) {
  const std::vector<PyObject*>& names = names_of_methods();
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
  for (std::size_t at = 0; at < names.size(); ++at) {
    PyObject* found = is_free(names[at]) ? anything() : compat::type_lookup(type, names[at]);
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(at), Py_NewRef(found ? found : nothing()));
  }
  return tuple;
}

std::optional<ChangedMethod> changed_special_method(PyTypeObject* type, PyObject* expected) noexcept {
  const std::vector<PyObject*>& names = names_of_methods();
  for (std::size_t at = 0; at < names.size(); ++at) {
    PyObject* wanted = PyTuple_GET_ITEM(expected, static_cast<Py_ssize_t>(at));
    if (wanted == anything()) continue;
    PyObject* found = compat::type_lookup(type, names[at]);
    if (wanted == nothing()) wanted = nullptr;
    if (found != wanted) return ChangedMethod{names[at], wanted, found};
  }
  return std::nullopt;
}

bool finds_special_methods(PyTypeObject* type, PyObject* expected) noexcept { return !changed_special_method(type, expected); }

}  // namespace tenon::python
