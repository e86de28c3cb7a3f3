#include "python/stand_ins/symbolic_scalar.h"

#include <string_view>
#include <utility>

#include "python/heap/type_traits.h"
#include "python/stand_ins/stand_in_uses.h"
#include "python/symbols/number_type.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

[[noreturn]] void needs_value(PyObject* a, const char* use) {
  StandInUses::active().need_scalar(scalar_of(a), use);
  __builtin_unreachable();  // GCC 12 does not see that a virtual function never returns
}

PyObject* needs(PyObject* a, const char* use) {
  return guarded([&]() -> Ref { needs_value(a, use); });
}

bool is_number(PyObject* o) { return is_symbolic_scalar(o) || is_symbolic_int(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o); }

/// A bool counts as the int that it is.
Ref as_number(PyObject* o) { return PyBool_Check(o) ? checked(PyLong_FromLong(o == Py_True)) : Ref::borrow(o); }

PyObject* arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) {
  const Ref left = as_number(a), right = as_number(b);
  a = left.get(), b = right.get();
  if (is_scalar_of_numpy(a) || is_scalar_of_numpy(b)) return needs(is_symbolic_scalar(a) ? a : b, "arithmetic with a scalar of NumPy");
  if (!is_number(a) || !is_number(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] { return StandInUses::active().scalar_arithmetic(op, a, b); });
}

PyObject* add(PyObject* a, PyObject* b) { return arithmetic(FloatTape::Op::add, a, b); }
PyObject* subtract(PyObject* a, PyObject* b) { return arithmetic(FloatTape::Op::subtract, a, b); }
PyObject* multiply(PyObject* a, PyObject* b) { return arithmetic(FloatTape::Op::multiply, a, b); }
PyObject* divide(PyObject* a, PyObject* b) { return arithmetic(FloatTape::Op::divide, a, b); }
PyObject* floor_divide(PyObject* a, PyObject* b) { return arithmetic(FloatTape::Op::floor_divide, a, b); }
PyObject* remainder(PyObject* a, PyObject* b) { return arithmetic(FloatTape::Op::remainder, a, b); }

PyObject* divmod(PyObject* a, PyObject* b) {
  const Ref quotient = Ref::steal(floor_divide(a, b)), rest = quotient ? Ref::steal(remainder(a, b)) : Ref();
  if (rest && (quotient.is(Py_NotImplemented) || rest.is(Py_NotImplemented))) Py_RETURN_NOTIMPLEMENTED;
  return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
}

PyObject* other(PyObject* a, PyObject* b) { return needs(is_symbolic_scalar(a) ? a : b, "arithmetic"); }
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) { return modulus == Py_None ? arithmetic(FloatTape::Op::power, a, b) : other(a, b); }
PyObject* unary(PyObject* a) { return needs(a, "arithmetic"); }
PyObject* negative(PyObject* a) {
  return guarded([&] {
    Ref minus = scalar_of(a).integral ? checked(PyLong_FromLong(-1)) : checked(PyFloat_FromDouble(-1));
    return StandInUses::active().scalar_arithmetic(FloatTape::Op::multiply, a, minus.get());
  });
}
PyObject* absolute(PyObject* a) {
  return guarded([&] { return StandInUses::active().scalar_magnitude(a); });
}
PyObject* as_int(PyObject* a) { return needs(a, "int()"); }
PyObject* as_float(PyObject* a) { return needs(a, "float()"); }
PyObject* as_index(PyObject* a) { return needs(a, "the use as an index"); }
/// complex, bool, Decimal and the like, which may be equal to a float.
bool is_other_number(PyObject* o) {
  const PyNumberMethods* methods = Py_TYPE(o)->tp_as_number;
  return PyComplex_Check(o) || (methods && (methods->nb_float || methods->nb_int || methods->nb_index));
}
PyObject* compare(PyObject* a, PyObject* b, int operation) {
  const Ref other = as_number(b);
  b = other.get();
  if (!is_number(b) && is_other_number(b)) return needs(a, "the comparison with another kind of number");
  if (!is_number(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] { return Ref::borrow(StandInUses::active().scalar_comparison(operation, a, b) ? Py_True : Py_False); });
}
int truth(PyObject* a) {
  Ref differs = Ref::steal(compare(a, checked(PyFloat_FromDouble(0)).get(), Py_NE));
  return differs ? differs.is(Py_True) : -1;
}
Py_hash_t hash(PyObject* a) {
  needs(a, "the hash");
  return -1;
}
PyObject* text(PyObject* a) { return needs(a, "the text"); }
PyObject* format(PyObject* a, PyObject*) { return needs(a, "the text"); }

PyObject* next_int(PyObject* a, const char* function) {
  return guarded([&] { return StandInUses::active().whole_number(a, function); });
}
PyObject* next_below(PyObject* a, PyObject*) { return next_int(a, "floor"); }
PyObject* next_above(PyObject* a, PyObject*) { return next_int(a, "ceil"); }
PyObject* truncated(PyObject* a, PyObject*) { return next_int(a, "trunc"); }
PyObject* rounded(PyObject* a, PyObject* digits) {
  if (rounds_to_int(digits)) return next_int(a, "round");
  return guarded([&] { return StandInUses::active().rounded(a, PyTuple_GET_ITEM(digits, 0)); });
}

PyObject* attribute(PyObject* a, PyObject* name) {
  PyTypeObject* type = scalar_of(a).integral ? &PyLong_Type : &PyFloat_Type;
  if (asks_for_class(name)) return Py_NewRef(reinterpret_cast<PyObject*>(type));
  if (says_nothing_of_value(name, type)) return PyObject_GenericGetAttr(a, name);
  return needs(a, "an attribute");
}

PyNumberMethods number_methods() {
  PyNumberMethods n{};
  n.nb_add = add;
  n.nb_subtract = subtract;
  n.nb_multiply = multiply;
  n.nb_true_divide = divide;
  n.nb_floor_divide = floor_divide;
  n.nb_remainder = remainder;
  n.nb_divmod = divmod;
  n.nb_lshift = n.nb_rshift = n.nb_and = n.nb_xor = n.nb_or = other;
  n.nb_power = power;
  n.nb_negative = negative;
  n.nb_absolute = absolute;
  n.nb_positive = n.nb_invert = unary;
  n.nb_bool = truth;
  n.nb_int = as_int;
  n.nb_float = as_float;
  n.nb_index = as_index;
  return n;
}

// What C code looks for in the type. A number without them would raise a TypeError that a float does not.
PyMethodDef kMethods[] = {{"__format__", format, METH_O, nullptr},
                          {"__round__", rounded, METH_VARARGS, nullptr},
                          {"__floor__", next_below, METH_NOARGS, nullptr},
                          {"__ceil__", next_above, METH_NOARGS, nullptr},
                          {"__trunc__", truncated, METH_NOARGS, nullptr},
                          kUfuncMethod,
                          {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject* symbolic_scalar_type() {
  return number_type<ScalarValue>("Number", "Stands for a number that the graph computes while a call is captured.",
                                  [] { return NumberSlots{number_methods(), hash, text, attribute, compare, kMethods}; });
}

bool is_symbolic_scalar(PyObject* object) { return Py_TYPE(object) == symbolic_scalar_type(); }

bool is_function_of_floats(PyObject* callable) {
  PyObject* module = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (module == nullptr || !PyModule_Check(module)) return false;
  const char* name = PyModule_GetName(module);
  if (name == nullptr) PyErr_Clear();
  const std::string_view module_name = name ? name : "";
  const std::string_view function = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  return module_name == "math" || (module_name == "builtins" && (function == "min" || function == "max"));
}

const ScalarValue& scalar_of(PyObject* symbolic_scalar) { return value_in<ScalarValue>(symbolic_scalar); }

Ref make_symbolic_scalar(ScalarValue value) { return make_number(symbolic_scalar_type(), std::move(value)); }

}  // namespace tenon::python
