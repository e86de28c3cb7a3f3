#include "python/symbols/symbolic_int.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "python/heap/type_traits.h"
#include "python/symbols/number_type.h"
#include "python/symbols/symbols.h"

namespace tenon::python {
namespace {

using Operator = ir::Relation::Operator;

const ir::Dim& dim_of(PyObject* object) { return value_in<ir::Dim>(object); }

Symbols& symbols() {
  if (Symbols* active = Symbols::active()) return *active;
  throw GraphBreak("a symbolic integer was used after its capture had ended");
}

PyObject* exact(PyObject* object, const char* why) { return is_symbolic_int(object) ? specialised(object, why).release() : Py_NewRef(object); }

// ---- arithmetic

bool is_number(PyObject* object) {
  return is_symbolic_int(object) || PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object) || is_scalar_of_numpy(object);
}

using OnInts = PyObject* (*)(PyObject*, PyObject*);

/// The operation on the plain ints, whose values are then guarded: more than 64 bits, a division by zero, floats.
PyObject* on_ints(PyObject* a, PyObject* b, OnInts operation, const char* why) {
  if (!is_number(a) || !is_number(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&]() -> PyObject* {
    Ref x = checked(exact(a, why)), y = checked(exact(b, why));
    return operation(x.get(), y.get());
  }, nullptr);
}

bool is_plain_number(PyObject* object) { return is_symbolic_int(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object); }

/// What gives a float: the graph may compute it.
PyObject* in_floats(FloatTape::Op op, PyObject* a, PyObject* b, OnInts operation, const char* why) {
  if (!is_plain_number(a) || !is_plain_number(b)) return on_ints(a, b, operation, why);
  return guarded([&]() -> PyObject* {
    const Symbols::FloatArithmetic record = symbols().float_arithmetic();
    Ref made = record ? record(op, a, b) : Ref();
    return made ? made.release() : on_ints(a, b, operation, why);
  }, nullptr);
}

template <class Expression>
PyObject* symbolic(PyObject* a, PyObject* b, FloatTape::Op op, OnInts operation, Expression expression) {
  if (PyFloat_CheckExact(a) || PyFloat_CheckExact(b)) return in_floats(op, a, b, operation, "it meets a number that is no integer of 64 bits");
  std::optional<ir::Dim> x = integer_of(a), y = integer_of(b);
  if (!x || !y) return on_ints(a, b, operation, "it meets a number that is no integer of 64 bits");
  return guarded([&]() -> PyObject* {
    try {
      const ir::Dim result = expression(*x, *y);
      symbols().value(result);  // overflow shows here
      symbols().compute(result);
      return make_integer(result).release();
    } catch (const Exception&) {
      return on_ints(a, b, operation, "the result is no integer of 64 bits");
    }
  }, nullptr);
}

PyObject* add(PyObject* a, PyObject* b) { return symbolic(a, b, FloatTape::Op::add, PyNumber_Add, [](const ir::Dim& x, const ir::Dim& y) { return x + y; }); }
PyObject* subtract(PyObject* a, PyObject* b) { return symbolic(a, b, FloatTape::Op::subtract, PyNumber_Subtract, [](const ir::Dim& x, const ir::Dim& y) { return x - y; }); }
PyObject* multiply(PyObject* a, PyObject* b) { return symbolic(a, b, FloatTape::Op::multiply, PyNumber_Multiply, [](const ir::Dim& x, const ir::Dim& y) { return x * y; }); }

/// A divisor's sign is settled first: what divides exactly is simplified away.
const ir::Dim& divisor(const ir::Dim& dim) {
  if (const std::int64_t now = dim.as_symbol() ? symbols().value(dim) : 0) return symbols().not_negative((now > 0 ? dim : -dim) - ir::Dim(1)), dim;
  if (!symbols().decide(Operator::not_equal, dim, 0)) throw Exception(Code::invalid_argument, "division by zero");
  return dim;
}
PyObject* floor_divide(PyObject* a, PyObject* b) {
  return symbolic(a, b, FloatTape::Op::floor_divide, PyNumber_FloorDivide, [](const ir::Dim& x, const ir::Dim& y) { return floor_div(x, divisor(y)); });
}
PyObject* remainder(PyObject* a, PyObject* b) {
  return symbolic(a, b, FloatTape::Op::remainder, PyNumber_Remainder, [](const ir::Dim& x, const ir::Dim& y) { return mod(x, divisor(y)); });
}
PyObject* divmod(PyObject* a, PyObject* b) {
  Ref quotient = Ref::steal(floor_divide(a, b));
  if (!quotient || quotient.is(Py_NotImplemented)) return quotient.release();
  Ref rest = Ref::steal(remainder(a, b));
  return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus == Py_None && PyLong_CheckExact(b) && PyLong_AsLong(b) == 2) return multiply(a, a);
  if (modulus != Py_None) {
    if (!is_number(a) || !is_number(b) || !is_number(modulus)) Py_RETURN_NOTIMPLEMENTED;
    constexpr const char* why = "its power modulo another number is taken";
    return guarded([&] { return checked(PyNumber_Power(checked(exact(a, why)).get(), checked(exact(b, why)).get(), checked(exact(modulus, why)).get())); });
  }
  const auto real = [](PyObject* x, PyObject* y) { return PyNumber_Power(x, y, Py_None); };
  const bool floats = PyFloat_CheckExact(a) || PyFloat_CheckExact(b);
  return floats ? in_floats(FloatTape::Op::power, a, b, real, "it is raised to a power") : on_ints(a, b, real, "it is raised to a power");
}

PyObject* true_divide(PyObject* a, PyObject* b) { return in_floats(FloatTape::Op::divide, a, b, PyNumber_TrueDivide, "it is divided by '/'"); }
/// 2 to the power of a plain int; nothing for what is none, or takes more than 62 bits.
std::optional<std::int64_t> power_of_two(PyObject* exponent) {
  const std::optional<ir::Dim> bits = is_symbolic_int(exponent) ? std::nullopt : integer_of(exponent);
  if (!bits || bits->constant() < 0 || bits->constant() > 62) return std::nullopt;
  return std::int64_t{1} << bits->constant();
}
PyObject* left_shift(PyObject* a, PyObject* b) {
  const auto factor = power_of_two(b);
  if (!factor) return on_ints(a, b, PyNumber_Lshift, "its bits are shifted");
  return multiply(a, Ref::steal(PyLong_FromLongLong(*factor)).get());
}
PyObject* right_shift(PyObject* a, PyObject* b) {
  const auto divisor = power_of_two(b);
  if (!divisor) return on_ints(a, b, PyNumber_Rshift, "its bits are shifted");
  return floor_divide(a, Ref::steal(PyLong_FromLongLong(*divisor)).get());
}
/// The last bits are what is left of a division, also of a negative int.
PyObject* bit_and(PyObject* a, PyObject* b) {
  for (const auto& [number, mask] : {std::pair(a, b), std::pair(b, a)}) {
    const std::optional<ir::Dim> bits = is_symbolic_int(mask) ? std::nullopt : integer_of(mask);
    if (!bits || PyBool_Check(mask) || bits->constant() < 0 || bits->constant() == std::numeric_limits<std::int64_t>::max()) continue;
    const std::int64_t divisor = bits->constant() + 1;
    if ((divisor & bits->constant()) == 0) return remainder(number, Ref::steal(PyLong_FromLongLong(divisor)).get());
  }
  return on_ints(a, b, PyNumber_And, "its bits are read");
}
PyObject* bit_or(PyObject* a, PyObject* b) { return on_ints(a, b, PyNumber_Or, "its bits are read"); }
PyObject* bit_xor(PyObject* a, PyObject* b) { return on_ints(a, b, PyNumber_Xor, "its bits are read"); }

PyObject* negative(PyObject* a) {
  return guarded([&] { return make_integer(-dim_of(a)).release(); }, nullptr);
}
PyObject* positive(PyObject* a) { return Py_NewRef(a); }
PyObject* absolute(PyObject* a) {
  return guarded([&]() -> PyObject* { return symbols().decide(Operator::less, dim_of(a), 0) ? negative(a) : Py_NewRef(a); }, nullptr);
}
PyObject* invert(PyObject* a) {
  return guarded([&] { return make_integer(-dim_of(a) - ir::Dim(1)).release(); }, nullptr);
}
int truth(PyObject* a) {
  return guarded([&]() -> int { return symbols().branch(Operator::not_equal, dim_of(a), 0); }, -1);
}

// ---- the int itself

PyObject* as_index(PyObject* a) {
  return guarded([&] { return specialised(a, "C code reads it").release(); }, nullptr);
}
PyObject* as_float(PyObject* a) {
  return guarded([&]() -> PyObject* { return PyNumber_Float(specialised(a, "it is made a float").get()); }, nullptr);
}
Py_hash_t hash(PyObject* a) {
  return guarded([&]() -> Py_hash_t {
    if (symbols().hashes_unguarded) return PyObject_Hash(checked(PyLong_FromLongLong(symbols().value(dim_of(a)))).get());
    return PyObject_Hash(specialised(a, "its hash is taken").get());
  }, -1);
}
PyObject* text(PyObject* a) {
  if (!Symbols::active()) return PyUnicode_FromString("<symbolic int>");
  return guarded([&]() -> PyObject* { return PyObject_Str(specialised(a, "it is turned into text").get()); }, nullptr);
}
PyObject* format(PyObject* a, PyObject* spec) {
  return guarded([&]() -> PyObject* { return PyObject_Format(specialised(a, "it is turned into text").get(), spec); }, nullptr);
}

PyObject* attribute(PyObject* a, PyObject* name) {
  if (asks_for_class(name)) return Py_NewRef(reinterpret_cast<PyObject*>(&PyLong_Type));
  if (says_nothing_of_value(name, &PyLong_Type) || PyUnicode_CompareWithASCIIString(name, "bit_length") == 0) return PyObject_GenericGetAttr(a, name);
  return guarded([&]() -> PyObject* { return PyObject_GetAttr(specialised(a, "an attribute of it is read").get(), name); }, nullptr);
}

/// By the guards, where the int is a float, too.
PyObject* compare_with_float(const ir::Dim& dim, PyObject* number, int operation) {
  return guarded([&]() -> PyObject* {
    const std::optional<FloatTape::Position> left = symbols().float_arithmetic() ? symbols().as_float(dim) : std::nullopt;
    if (!left) return PyObject_RichCompare(specialised(make_integer(dim).get(), "it is compared with another kind of number").get(), number, operation);
    const double value = PyFloat_AS_DOUBLE(number);
    const auto right = symbols().float_step({.number = value, .words = fmt::format("{}", value)});
    return Py_NewRef(symbols().floats().compare(FloatTape::comparison_of(operation), *left, *right) ? Py_True : Py_False);
  }, nullptr);
}

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  const std::optional<ir::Dim> x = integer_of(a), y = integer_of(b);
  if (!x || !y) {
    if (!is_number(b)) Py_RETURN_NOTIMPLEMENTED;
    if (PyFloat_CheckExact(b)) return compare_with_float(dim_of(a), b, operation);
    return guarded([&]() -> PyObject* { return PyObject_RichCompare(specialised(a, "it is compared with another kind of number").get(), b, operation); }, nullptr);
  }
  return guarded([&]() -> PyObject* {
    bool holds = false;
    switch (operation) {
      case Py_LT: holds = symbols().branch(Operator::less, *x, *y); break;
      case Py_LE: holds = symbols().branch(Operator::less_equal, *x, *y); break;
      case Py_EQ: holds = symbols().branch(Operator::equal, *x, *y); break;
      case Py_NE: holds = symbols().branch(Operator::not_equal, *x, *y); break;
      case Py_GT: holds = symbols().branch(Operator::less, *y, *x); break;
      default: holds = symbols().branch(Operator::less_equal, *y, *x); break;
    }
    return Py_NewRef(holds ? Py_True : Py_False);
  }, nullptr);
}

PyNumberMethods number_methods() {
  PyNumberMethods n{};
  n.nb_add = add;
  n.nb_subtract = subtract;
  n.nb_multiply = multiply;
  n.nb_remainder = remainder;
  n.nb_divmod = divmod;
  n.nb_power = power;
  n.nb_negative = negative;
  n.nb_positive = positive;
  n.nb_absolute = absolute;
  n.nb_bool = truth;
  n.nb_invert = invert;
  n.nb_lshift = left_shift;
  n.nb_rshift = right_shift;
  n.nb_and = bit_and;
  n.nb_xor = bit_xor;
  n.nb_or = bit_or;
  n.nb_int = as_index;
  n.nb_float = as_float;
  n.nb_floor_divide = floor_divide;
  n.nb_true_divide = true_divide;
  n.nb_index = as_index;
  return n;
}

PyObject* itself(PyObject* a, PyObject*) { return Py_NewRef(a); }
PyObject* rounded(PyObject* a, PyObject* digits) {
  if (rounds_to_int(digits)) return Py_NewRef(a);
  return guarded([&] { return checked(PyObject_CallMethod(specialised(a, "it is rounded").get(), "__round__", "O", PyTuple_GET_ITEM(digits, 0))); });
}

/// The exponent of the float that an int is.
double bits_of(double whole) {
  int exponent = 0;
  std::frexp(whole, &exponent);
  return exponent;
}

PyObject* bit_length(PyObject* a, PyObject*) {
  return guarded([&] {
    if (const auto bits = symbols().whole_of(dim_of(a), "bit_length", bits_of)) return make_integer(*bits);
    return checked(PyObject_CallMethod(specialised(a, "its bits are counted").get(), "bit_length", nullptr));
  });
}

PyMethodDef kMethods[] = {{"bit_length", bit_length, METH_NOARGS, nullptr},
                          {"__format__", format, METH_O, nullptr},
                          {"__round__", rounded, METH_VARARGS, nullptr},
                          {"__floor__", itself, METH_NOARGS, nullptr},
                          {"__ceil__", itself, METH_NOARGS, nullptr},
                          {"__trunc__", itself, METH_NOARGS, nullptr},
                          kUfuncMethod,
                          {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject* symbolic_int_type() {
  return number_type<ir::Dim>("Int", "Stands for an int while a call is captured.",
                              [] { return NumberSlots{number_methods(), hash, text, attribute, compare, kMethods}; });
}

PyObject* ufunc_of_number(PyObject*, PyObject*, PyObject*) {
  set_break_signal("C code of NumPy computes with a number that varies");
  return nullptr;
}

bool is_symbolic_int(PyObject* object) { return Py_TYPE(object) == symbolic_int_type(); }

Ref make_integer(const ir::Dim& dim) {
  if (dim.is_constant()) return checked(PyLong_FromLongLong(dim.constant()));
  return make_number(symbolic_int_type(), dim);
}

std::optional<ir::Dim> integer_of(PyObject* object) {
  if (is_symbolic_int(object)) return dim_of(object);
  if (!PyLong_CheckExact(object) && !PyBool_Check(object)) return std::nullopt;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow ? std::nullopt : std::optional(ir::Dim(value));
}

std::int64_t present_value(PyObject* symbolic_int) { return symbols().value(dim_of(symbolic_int)); }

Ref specialised(PyObject* symbolic_int, const char* why) { return checked(PyLong_FromLongLong(symbols().specialise_or_break(dim_of(symbolic_int), why))); }

}  // namespace tenon::python
