#include "python/stand_ins/array_stand_in.h"

#include <cstring>

#include "python/library/numpy_api.h"
#include "python/objects/imported.h"
#include "python/objects/object_type.h"
#include "python/stand_ins/stand_in_uses.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

constexpr const char* kArrayHint = "keep the decision in the graph with numpy.where";

PyObject* record(PyObject* callable, const Ref& args, PyObject* kwargs = nullptr) {
  return guarded([&] { return StandInUses::active().call(callable, args.get(), kwargs); });
}

PyObject* record_operator(PyObject* ufunc, const Ref& args) {
  return guarded([&] { return StandInUses::active().call_operator(ufunc, args.get()); });
}

/// A function of the numpy module, looked up once.
PyObject* numpy_function(const char* name) {
  Ref numpy = Ref::steal(imported("numpy"));
  return numpy ? PyObject_GetAttrString(numpy.get(), name) : nullptr;
}

bool is_stand_in(PyObject* object) { return Py_TYPE(object) == array_stand_in_type(); }

/// numpy.ndarray, or the class of a scalar.
PyTypeObject* type_of(PyObject* stand_in) {
  try {
    return StandInUses::active().apparent_type(stand_in);
  } catch (const GraphBreak&) {
    return &PyArray_Type;
  }
}

bool is_scalar(PyObject* stand_in) { return PyType_IsSubtype(type_of(stand_in), &PyGenericArrType_Type); }

/// Whether NumPy would take the operand itself, instead of leaving the operator to the operand's type.
bool takes_part(PyObject* object) {
  return is_stand_in(object) || PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object) || PyList_Check(object) ||
         PyTuple_Check(object) || is_symbolic_int(object) || is_symbolic_scalar(object) || PyArray_Check(object) || PyArray_CheckScalar(object) || object == Py_None || PyUnicode_Check(object);
}

// ---- operators: each is a ufunc

struct UfuncName {
  const char* text;
};

template <const UfuncName& name>
PyObject* binary(PyObject* a, PyObject* b) {
  static PyObject* const function = numpy_function(name.text);
  if (!takes_part(a) || !takes_part(b)) Py_RETURN_NOTIMPLEMENTED;
  return record_operator(function, Ref::steal(PyTuple_Pack(2, a, b)));
}

template <const UfuncName& name>
PyObject* unary(PyObject* a) {
  static PyObject* const function = numpy_function(name.text);
  return record_operator(function, Ref::steal(PyTuple_Pack(1, a)));
}

template <const UfuncName& name>
PyObject* in_place(PyObject* a, PyObject* b) {
  static PyObject* const function = numpy_function(name.text);
  if (is_scalar(a) || !is_stand_in(a) || !takes_part(b)) return binary<name>(a, b);  // scalars are immutable: Python rebinds the name
  Ref out = Ref::steal(PyTuple_Pack(1, a)), args = Ref::steal(PyTuple_Pack(2, a, b)), kwargs = Ref::steal(PyDict_New());
  if (!out || !args || !kwargs || PyDict_SetItemString(kwargs.get(), "out", out.get()) < 0) return nullptr;
  return record(function, args, kwargs.get());
}

constexpr UfuncName kAdd{"add"}, kSubtract{"subtract"}, kMultiply{"multiply"}, kRemainder{"remainder"}, kDivmod{"divmod"}, kNegative{"negative"},
    kPositive{"positive"}, kAbsolute{"absolute"}, kInvert{"invert"}, kLeft{"left_shift"}, kRight{"right_shift"}, kAnd{"bitwise_and"},
    kXor{"bitwise_xor"}, kOr{"bitwise_or"}, kFloorDivide{"floor_divide"}, kTrueDivide{"true_divide"}, kMatmul{"matmul"}, kPower{"power"},
    kLess{"less"}, kLessEqual{"less_equal"}, kEqual{"equal"}, kNotEqual{"not_equal"}, kGreater{"greater"}, kGreaterEqual{"greater_equal"};

/// Whether NumPy's operator takes its short cut to `square`, and that gives another dtype than `power`: int8 for bools.
bool is_square_of_bools(PyObject* a, PyObject* b) {
  if (!PyLong_CheckExact(b) || PyLong_AsLong(b) != 2 || !is_stand_in(a) || is_scalar(a)) return PyErr_Clear(), false;
  Ref dtype = Ref::steal(PyObject_GetAttrString(a, "dtype"));
  if (!dtype) return PyErr_Clear(), false;
  return PyArray_DescrCheck(dtype.get()) && reinterpret_cast<PyArray_Descr*>(dtype.get())->type_num == NPY_BOOL;
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  static PyObject* const square = numpy_function("square");
  if (is_square_of_bools(a, b)) return record(square, Ref::steal(PyTuple_Pack(1, a)));
  return binary<kPower>(a, b);
}

PyObject* needs_elements(const char* what) {
  set_break_signal(ElementsNeeded(std::string(what) + " of an array needs its elements while the program runs", kArrayHint));
  return nullptr;
}

/// A list or tuple times a scalar is the sequence so many times; times an array, an array.
bool repeats(PyObject* sequence, PyObject* times) {
  return (PyList_Check(sequence) || PyTuple_Check(sequence)) && is_stand_in(times) && is_scalar(times);
}

PyObject* multiply(PyObject* a, PyObject* b) {
  if (repeats(a, b) || repeats(b, a)) return needs_elements("the repetition of a sequence by an item");
  return binary<kMultiply>(a, b);
}

PyObject* multiply_in_place(PyObject* a, PyObject* b) { return is_scalar(a) ? multiply(a, b) : in_place<kMultiply>(a, b); }

PyObject* power_in_place(PyObject* a, PyObject* b, PyObject*) { return in_place<kPower>(a, b); }

PyObject* compare(PyObject* a, PyObject* b, int operation) {
  switch (operation) {
    case Py_LT: return binary<kLess>(a, b);
    case Py_LE: return binary<kLessEqual>(a, b);
    case Py_EQ: return binary<kEqual>(a, b);
    case Py_NE: return binary<kNotEqual>(a, b);
    case Py_GT: return binary<kGreater>(a, b);
    default: return binary<kGreaterEqual>(a, b);
  }
}

// ---- what needs elements

/// What Python makes of an element that is known.
PyObject* as_number(PyObject* self, PyObject* (*convert)(PyObject*), const char* use) {
  return guarded([&] {
    Ref known = StandInUses::active().known_number(self);
    return known ? checked(convert(known.get())) : Ref::steal(needs_elements(use));
  });
}

int truth(PyObject* self) {
  Ref known = Ref::steal(as_number(self, [](PyObject* number) { return PyBool_FromLong(checked(PyObject_IsTrue(number))); }, "the truth value"));
  return known ? known.is(Py_True) : -1;
}
PyObject* as_int(PyObject* self) { return as_number(self, PyNumber_Long, "int()"); }
PyObject* as_float(PyObject* self) { return as_number(self, PyNumber_Float, "float()"); }
PyObject* as_index(PyObject* self) { return as_number(self, PyNumber_Index, "the use as an index"); }
PyObject* as_text(PyObject*) { return needs_elements("the text"); }
PyObject* as_formatted(PyObject*, PyObject*) { return needs_elements("the text"); }
PyObject* as_array(PyObject*, PyObject*) { return needs_elements("a conversion by foreign code"); }
int contains(PyObject*, PyObject*) {
  needs_elements("`in`");
  return -1;
}
Py_hash_t hash(PyObject* self) {
  if (is_scalar(self)) {
    needs_elements("the hash");
  } else {
    PyErr_SetString(PyExc_TypeError, "unhashable type: 'numpy.ndarray'");
  }
  return -1;
}

// ---- attributes, methods, subscripts

struct ArrayMethod {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* descriptor;
};

PyObject* call_method(PyObject* self, PyObject* const* values, std::size_t nargsf, PyObject* names) {
  return guarded([&] {
    const Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    Ref args = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(values[i]));
    Ref kwargs;
    if (names && PyTuple_GET_SIZE(names) > 0) {
      kwargs = checked(PyDict_New());
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, i), values[count + i]));
    }
    return StandInUses::active().call(reinterpret_cast<ArrayMethod*>(self)->descriptor, args.get(), kwargs.get());
  });
}

PyObject* bind_method(PyObject* self, PyObject* instance, PyObject*) { return instance ? PyMethod_New(self, instance) : Py_NewRef(self); }

PyObject* method_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return PyObject_GetAttr(reinterpret_cast<ArrayMethod*>(self)->descriptor, name);
}

PyTypeObject g_method_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

/// One wrapper a method of numpy.ndarray or of a scalar, made when first asked for; they live as long as the process.
PyObject* method_wrapper(PyObject* descriptor) {
  static PyObject* const wrappers = PyDict_New();
  if (PyObject* known = PyDict_GetItemWithError(wrappers, descriptor)) return Py_NewRef(known);
  ArrayMethod* made = PyObject_New(ArrayMethod, &g_method_type);
  if (!made) return nullptr;
  made->vectorcall = call_method;
  made->descriptor = Py_NewRef(descriptor);
  Ref wrapper = Ref::steal(reinterpret_cast<PyObject*>(made));
  if (PyDict_SetItem(wrappers, descriptor, wrapper.get()) < 0) return nullptr;
  return wrapper.release();
}

PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  PyTypeObject* type = type_of(self);
  Ref descriptor = Ref::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
  if (!descriptor) {
    PyErr_Clear();
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", type->tp_name, name);
    return nullptr;
  }
  if (Py_TYPE(descriptor.get()) == &PyGetSetDescr_Type) {
    Ref getter = Ref::steal(PyObject_GetAttrString(descriptor.get(), "__get__"));
    return getter ? record(getter.get(), Ref::steal(PyTuple_Pack(1, self))) : nullptr;
  }
  Ref wrapper = Ref::steal(method_wrapper(descriptor.get()));
  return wrapper ? PyMethod_New(wrapper.get(), self) : nullptr;
}

Py_ssize_t length(PyObject* self) {
  Ref shape = Ref::steal(PyObject_GetAttrString(self, "shape"));
  if (!shape) return -1;
  if (PyTuple_GET_SIZE(shape.get()) > 0) return PyNumber_AsSsize_t(PyTuple_GET_ITEM(shape.get(), 0), PyExc_OverflowError);
  if (is_scalar(self)) needs_elements("len()");  // which is an error that names the scalar's type
  else PyErr_SetString(PyExc_TypeError, "len() of unsized object");
  return -1;
}

PyObject* subscript(PyObject* self, PyObject* key) {
  static PyObject* const of_array = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyArray_Type), "__getitem__");
  static PyObject* const of_scalar = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyGenericArrType_Type), "__getitem__");
  return record(is_scalar(self) ? of_scalar : of_array, Ref::steal(PyTuple_Pack(2, self, key)));
}

int assign(PyObject* self, PyObject* key, PyObject* value) {
  static PyObject* const set_item = PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyArray_Type), "__setitem__");
  if (!value) {
    PyErr_SetString(PyExc_ValueError, "cannot delete array elements");
    return -1;
  }
  Ref done = Ref::steal(record(set_item, Ref::steal(PyTuple_Pack(3, self, key, value))));
  return done ? 0 : -1;
}

/// The item that a sequence's iterator asks for, and the end of it.
PyObject* item_in_turn(PyObject* self, Py_ssize_t at) {
  const Py_ssize_t count = length(self);
  if (count < 0) return nullptr;
  if (at >= count) {
    PyErr_SetString(PyExc_IndexError, "index out of bounds");
    return nullptr;
  }
  Ref index = Ref::steal(PyLong_FromSsize_t(at));
  return index ? subscript(self, index.get()) : nullptr;
}

/// As NumPy does: an item is taken when its turn comes, with what has been written to it until then.
PyObject* iterate(PyObject* self) { return length(self) < 0 ? nullptr : PySeqIter_New(self); }

int set_attribute(PyObject*, PyObject* name, PyObject*) {
  set_break_signal(std::string("an assignment to the attribute '") + (PyUnicode_AsUTF8(name) ? PyUnicode_AsUTF8(name) : "?") + "' of a NumPy array");
  return -1;
}

// ---- NumPy's protocols

/// `__array_ufunc__(self, ufunc, method, *inputs, **kwargs)`
PyObject* array_ufunc(PyObject*, PyObject* values, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(values) < 2) {
    PyErr_SetString(PyExc_TypeError, "__array_ufunc__ takes a ufunc and a method");
    return nullptr;
  }
  Ref inputs = Ref::steal(PyTuple_GetSlice(values, 2, PyTuple_GET_SIZE(values)));
  PyObject* function = PyTuple_GET_ITEM(values, 0);
  PyObject* method = PyTuple_GET_ITEM(values, 1);
  if (PyUnicode_CompareWithASCIIString(method, "__call__") == 0) return record(function, inputs, kwargs);
  Ref bound = Ref::steal(PyObject_GetAttr(function, method));
  return bound ? record(bound.get(), inputs, kwargs) : nullptr;
}

/// `__array_function__(self, func, types, args, kwargs)`
PyObject* array_function(PyObject*, PyObject* const* values, Py_ssize_t count) {
  if (count != 4) {
    PyErr_SetString(PyExc_TypeError, "__array_function__ takes func, types, args and kwargs");
    return nullptr;
  }
  return record(values[0], Ref::borrow(values[2]), values[3]);
}

PyMethodDef kMethods[] = {
    {"__array_ufunc__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_ufunc)), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__array_function__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_function)), METH_FASTCALL, nullptr},
    {"__array__", as_array, METH_VARARGS, nullptr},
    {"__format__", as_formatted, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyNumberMethods number_methods() {
  PyNumberMethods n{};
  n.nb_add = binary<kAdd>;
  n.nb_subtract = binary<kSubtract>;
  n.nb_multiply = multiply;
  n.nb_remainder = binary<kRemainder>;
  n.nb_divmod = binary<kDivmod>;
  n.nb_power = power;
  n.nb_negative = unary<kNegative>;
  n.nb_positive = unary<kPositive>;
  n.nb_absolute = unary<kAbsolute>;
  n.nb_invert = unary<kInvert>;
  n.nb_lshift = binary<kLeft>;
  n.nb_rshift = binary<kRight>;
  n.nb_and = binary<kAnd>;
  n.nb_xor = binary<kXor>;
  n.nb_or = binary<kOr>;
  n.nb_floor_divide = binary<kFloorDivide>;
  n.nb_true_divide = binary<kTrueDivide>;
  n.nb_matrix_multiply = binary<kMatmul>;
  n.nb_inplace_add = in_place<kAdd>;
  n.nb_inplace_subtract = in_place<kSubtract>;
  n.nb_inplace_multiply = multiply_in_place;
  n.nb_inplace_remainder = in_place<kRemainder>;
  n.nb_inplace_power = power_in_place;
  n.nb_inplace_lshift = in_place<kLeft>;
  n.nb_inplace_rshift = in_place<kRight>;
  n.nb_inplace_and = in_place<kAnd>;
  n.nb_inplace_xor = in_place<kXor>;
  n.nb_inplace_or = in_place<kOr>;
  n.nb_inplace_floor_divide = in_place<kFloorDivide>;
  n.nb_inplace_true_divide = in_place<kTrueDivide>;
  n.nb_inplace_matrix_multiply = in_place<kMatmul>;
  n.nb_bool = truth;
  n.nb_int = as_int;
  n.nb_float = as_float;
  n.nb_index = as_index;
  return n;
}

PyNumberMethods g_number = number_methods();
PyMappingMethods g_mapping = {length, subscript, assign};
PySequenceMethods g_sequence = {};
PyTypeObject g_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

}  // namespace

PyTypeObject* array_stand_in_type() { return &g_type; }

Ref make_array_stand_in() { return checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&g_type))); }

PyObject* unwrapped_array_method(PyObject* callable) {
  return Py_TYPE(callable) == &g_method_type ? reinterpret_cast<ArrayMethod*>(callable)->descriptor : callable;
}

bool ready_array_stand_in_types() {
  g_method_type.tp_name = "tenon._tenon.ArrayMethodStandIn";
  g_method_type.tp_basicsize = sizeof(ArrayMethod);
  g_method_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL;
  g_method_type.tp_vectorcall_offset = offsetof(ArrayMethod, vectorcall);
  g_method_type.tp_call = PyVectorcall_Call;
  g_method_type.tp_descr_get = bind_method;
  g_method_type.tp_getattro = method_attribute;
  g_sequence.sq_contains = contains;
  g_sequence.sq_item = item_in_turn;
  g_type.tp_name = "tenon._tenon.ArrayStandIn";
  g_type.tp_basicsize = sizeof(PyObject);
  g_type.tp_flags = Py_TPFLAGS_DEFAULT;
  g_type.tp_new = PyType_GenericNew;
  g_type.tp_as_number = &g_number;
  g_type.tp_as_mapping = &g_mapping;
  g_type.tp_as_sequence = &g_sequence;
  g_type.tp_richcompare = compare;
  g_type.tp_hash = hash;
  g_type.tp_repr = as_text;
  g_type.tp_str = as_text;
  g_type.tp_iter = iterate;
  g_type.tp_getattro = get_attribute;
  g_type.tp_setattro = set_attribute;
  g_type.tp_methods = kMethods;
  return PyType_Ready(&g_method_type) == 0 && PyType_Ready(&g_type) == 0;
}

}  // namespace tenon::python
