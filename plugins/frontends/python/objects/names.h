// Interned attribute names that the evaluator asks for.
#pragma once

#include <Python.h>

#include <string>
#include <string_view>

namespace tenon::python {

#define TENON_PYTHON_NAMES(X)                                                                                                    \
  X(__abs__) X(__add__) X(__all__) X(__and__) X(__annotations__) X(__bool__) X(__build_class__) X(__builtins__) X(__call__)      \
  X(__class__) X(__class_getitem__) X(__closure__) X(__code__) X(__contains__) X(__defaults__) X(__del__) X(__delattr__) X(__delitem__)             \
  X(__dict__) X(__divmod__) X(__doc__) X(__enter__) X(__eq__) X(__exit__) X(__float__) X(__floordiv__) X(__format__)   \
  X(__ge__) X(__get__) X(__getattr__) X(__getattribute__) X(__getitem__) X(__globals__) X(__gt__) X(__hash__) X(__iadd__)        \
  X(__iand__) X(__ifloordiv__) X(__ilshift__) X(__imatmul__) X(__imod__) X(__imul__) X(__index__) X(__init__) X(__instancecheck__) \
  X(__int__) X(__invert__) X(__ior__) X(__ipow__) X(__irshift__) X(__isub__) X(__iter__) X(__itruediv__) X(__ixor__)             \
  X(__kwdefaults__) X(__le__) X(__len__) X(__lshift__) X(__lt__) X(__match_args__) X(__matmul__) X(__missing__) X(__mod__)       \
  X(__module__) X(__mro__) X(__mul__) X(__name__) X(__ne__) X(__neg__) X(__new__) X(__next__) X(__or__) X(__pos__) X(__pow__)    \
  X(__qualname__) X(__radd__) X(__rand__) X(__repr__) X(__reversed__) X(__rfloordiv__) X(__rlshift__) X(__rmatmul__)             \
  X(__rmod__) X(__rmul__) X(__ror__) X(__rpow__) X(__rrshift__) X(__rshift__) X(__rsub__) X(__rtruediv__) X(__rxor__) X(__self__) \
  X(__set__) X(__setattr__) X(__setitem__) X(__str__) X(__sub__) X(__subclasscheck__) X(__traceback__) X(__truediv__) X(__wrapped__) X(__xor__)   \
  X(__bases__) X(mro) X(__slotnames__) X(__abstractmethods__) X(__delete__) X(__round__) X(__floor__) X(__ceil__) X(__trunc__) X(__bytes__) X(memo) X(get) X(keys) X(user_function) X(registry) X(__init_subclass__) X(__set_name__) X(__orig_bases__) X(__mro_entries__) X(__prepare__) X(__getstate__) X(__reduce__) X(__reduce_ex__) X(__getnewargs__) X(__getnewargs_ex__) X(fdel) X(attrname) X(__post_init__) X(_make) X(_fields) X(args) X(func) X(keywords) X(fget) X(fset) X(mapping) X(default_factory) X(maxlen) X(name) X(value) X(key) X(flags)

/// Use as `names().__getattr__`. The strings live as long as the interpreter.
struct Names {
#define TENON_DECLARE(name) PyObject* name;
  TENON_PYTHON_NAMES(TENON_DECLARE)
#undef TENON_DECLARE
  PyObject* dunder_func;  // "__func__", which C++ keeps for itself
};

const Names& names();

/// Whether a name is one of those that stand in a text, each between spaces.
inline bool is_among(std::string_view name, std::string_view names) { return names.find(" " + std::string(name) + " ") != std::string_view::npos; }

}  // namespace tenon::python
