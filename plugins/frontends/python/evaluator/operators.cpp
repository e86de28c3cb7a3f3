// Truth, arithmetic, comparison and identity.
#include <fmt/format.h>
#include <opcode.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/decode/operator_function.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/operators.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// By Py_LT and so on: the comparison of the operands the other way round.
constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};

struct OperatorNames {
  PyObject *plain, *reflected, *in_place;
};
OperatorNames operator_names(int operation) {
  const Names& n = names();
  const std::array<OperatorNames, kPlainOperators> all = {{
      {n.__add__, n.__radd__, n.__iadd__}, {n.__and__, n.__rand__, n.__iand__}, {n.__floordiv__, n.__rfloordiv__, n.__ifloordiv__},
      {n.__lshift__, n.__rlshift__, n.__ilshift__}, {n.__matmul__, n.__rmatmul__, n.__imatmul__}, {n.__mul__, n.__rmul__, n.__imul__},
      {n.__mod__, n.__rmod__, n.__imod__}, {n.__or__, n.__ror__, n.__ior__}, {n.__pow__, n.__rpow__, n.__ipow__},
      {n.__rshift__, n.__rrshift__, n.__irshift__}, {n.__sub__, n.__rsub__, n.__isub__}, {n.__truediv__, n.__rtruediv__, n.__itruediv__},
      {n.__xor__, n.__rxor__, n.__ixor__}}};
  return all[operation % kPlainOperators];
}

constexpr std::array<const char*, kPlainOperators> kSigns = {"+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"};

constexpr std::array<const char*, 6> kComparisonSigns = {"<", "<=", "==", "!=", ">", ">="};

struct ComparisonNames {
  PyObject *name, *reflected;
};
bool name_is_comparison(PyObject* name) {
  const Names& n = names();
  return name == n.__eq__ || name == n.__ne__ || name == n.__lt__ || name == n.__le__ || name == n.__gt__ || name == n.__ge__;
}

ComparisonNames comparison_names(int operation) {
  const Names& n = names();
  const std::array<ComparisonNames, 6> all = {{{n.__lt__, n.__gt__}, {n.__le__, n.__ge__}, {n.__eq__, n.__eq__}, {n.__ne__, n.__ne__}, {n.__gt__, n.__lt__}, {n.__ge__, n.__le__}}};
  return all[operation];
}

}  // namespace

/// What a `__bool__` gave must be a bool.
bool Operators::truth_from(PyObject* given) {
  if (core_.visible_type(given) == &PyBool_Type) return truth(given);
  PyErr_Format(PyExc_TypeError, "__bool__ should return bool, returned %s", core_.visible_type(given)->tp_name);
  throw PythonError();
}

bool Operators::truth(PyObject* value) {
  if (value == Py_True) return true;
  if (value == Py_False || value == Py_None) return false;
  const TypeTraits& traits = heap_.traits(value);
  if (traits.role == Recorder::Role::stand_in) {
    if (const auto known = recorder_.truth_of(value)) return *known;
    throw BranchOnElements("a branch depends on the values of a tensor (data-dependent control flow)",
                     "keep both branches in the graph with tenon.cond(pred, true_fn, false_fn, operands), or with torch.where / np.where");
  }
  if (Ref mapping = heap_.behind_proxy(value)) return truth(mapping.get());
  if (traits.atom || traits.role == Recorder::Role::scalar || (traits.identity && !traits.python_class)) return checked(PyObject_IsTrue(value)) != 0;
  if (traits.python_class) {
    PyObject* method = heap_.type_attribute(Py_TYPE(value), names().__bool__);
    if (is_python_function(method)) return truth_from(core_.call_now(method, {value}).get());
    if (method == nullptr) {
      method = heap_.type_attribute(Py_TYPE(value), names().__len__);
      if (is_python_function(method)) return length(value) != 0;
      if (method == nullptr) return true;
    }
  }
  if (traits.container != Container::none) {
    const Ref varying = heap_.varying_length(value);
    return varying ? checked(PyObject_IsTrue(varying.get())) != 0 : heap_.length(value) != 0;
  }
  if (PyMethod_Check(value) || PyFunction_Check(value) || PyCFunction_Check(value) || heap_.is_born(value)) return checked(PyObject_IsTrue(value)) != 0;
  if (Py_TYPE(value)->tp_as_number == nullptr && Py_TYPE(value)->tp_as_sequence == nullptr && Py_TYPE(value)->tp_as_mapping == nullptr) return true;
  throw GraphBreak(fmt::format("the truth of a {}", Py_TYPE(value)->tp_name));
}

std::optional<Ref> Operators::python_operator(PyObject* left, PyObject* right, PyObject* name, PyObject* reflected, bool* tried) {
  struct Candidate {
    PyObject *self, *name, *other;
  };
  std::array<Candidate, 2> candidates = {{{left, name, right}, {right, reflected, left}}};
  const bool same_type = Py_TYPE(right) == Py_TYPE(left);
  const bool compares = name_is_comparison(name);
  if (same_type && !compares) candidates[1].name = nullptr;
  // A subclass comes first, with an operator of arithmetic only where it has a reflected method of its own.
  const bool subclass = !same_type && PyType_IsSubtype(Py_TYPE(right), Py_TYPE(left));
  if (subclass && (compares || (reflected && compat::type_lookup(Py_TYPE(right), reflected) != compat::type_lookup(Py_TYPE(left), reflected))))
    std::swap(candidates[0], candidates[1]);
  for (const Candidate& candidate : candidates) {
    if (candidate.name == nullptr) continue;
    const TypeTraits& traits = heap_.traits(candidate.self);
    if (!traits.python_class || traits.role != Recorder::Role::other) continue;
    PyObject* method = heap_.type_attribute(Py_TYPE(candidate.self), candidate.name);
    if (method == Py_None) throw GraphBreak(fmt::format("{} of a {} is None: it refuses", name_text(candidate.name), Py_TYPE(candidate.self)->tp_name));
    if (!is_python_function(method)) continue;
    *tried = true;
    Ref result = core_.call_now(method, {candidate.self, candidate.other});
    if (!result.is(Py_NotImplemented)) return result;
  }
  return std::nullopt;
}

/// What a tensor's library takes a scalar of NumPy for that stands beside it: Python's number. Otherwise the operand as it is.
Ref Operators::beside_tensor(PyObject* operand, PyObject* other) {
  if (core_.is_stand_in(other) && !recorder_.operates_on_any(other))
    if (Ref number = recorder_.number_of_scalar(operand)) return number;
  return Ref::borrow(operand);
}

/// A tensor and a symbolic int: the tensor's library would take the int for an object that it does not know.
std::optional<Ref> Operators::operator_with_number(PyObject* left, PyObject* right, PyObject* name, PyObject* reflected) {
  const bool on_right = heap_.is_number(right);
  if (!on_right && !heap_.is_number(left)) return std::nullopt;
  Arguments arguments;
  arguments.values = {Ref::borrow(on_right ? right : left)};
  return core_.calls().call_stand_in_with_numbers(on_right ? left : right, on_right ? name : reflected, arguments);
}

/// The same in place: it writes. Slots of our own take such numbers as they are.
std::optional<Ref> Operators::operator_in_place_with_number(PyObject* left, PyObject* right, PyObject* name) {
  if (!heap_.is_number(right)) return std::nullopt;
  PyObject* function = compat::type_lookup(Py_TYPE(left), name);
  if (function == nullptr || Py_TYPE(function) == &PyWrapperDescr_Type) return std::nullopt;
  Arguments arguments;
  arguments.values = {Ref::borrow(right)};
  if (std::optional<Ref> result = core_.calls().call_stand_in_with_numbers(left, name, arguments)) return result;
  throw GraphBreak(fmt::format("{} with a number that varies", PyUnicode_AsUTF8(name)));
}

/// Breaks where the stand-in's library asks the other operand for elements, or leaves the operator to it. torch looks at the operand's class alone.
void Operators::require_no_elements(PyObject* stand_in, PyObject* other) {
  const TypeTraits& traits = heap_.traits(other);
  if (!core_.is_stand_in(stand_in) || traits.role != Recorder::Role::other) return;
  if (!recorder_.operates_on_any(stand_in)) return core_.hidden_calls().require_no_python_methods(other, recorder_.hooks());
  const bool known = other == Py_None || PyLong_Check(other) || PyFloat_Check(other) || PyComplex_Check(other) || PyUnicode_Check(other) ||
                     traits.container == Container::list || traits.container == Container::tuple;
  if (!known) throw GraphBreak(fmt::format("an operator of an array and a {}", Py_TYPE(other)->tp_name));
}

namespace {

/// Whether an operator joins two lists or tuples, or repeats one, and gives neither of them.
bool makes_new_sequence(int operation, PyObject* left, PyObject* right) {
  const auto is_sequence = [](PyObject* object) { return PyTuple_CheckExact(object) || PyList_CheckExact(object); };
  if (operation % kPlainOperators == NB_ADD) return is_sequence(left) && Py_TYPE(left) == Py_TYPE(right) && PySequence_Fast_GET_SIZE(left) > 0 && PySequence_Fast_GET_SIZE(right) > 0;
  PyObject* times = is_sequence(left) ? right : left;
  return operation % kPlainOperators == NB_MULTIPLY && PyLong_CheckExact(times) && !(PyLong_AsLong(times) == 1 || PyErr_Occurred());
}

}  // namespace

Ref Operators::binary(int operation, PyObject* given_left, PyObject* given_right) {
  const Ref scalar_left = beside_tensor(given_left, given_right), scalar_right = beside_tensor(given_right, given_left);
  PyObject *left = scalar_left.get(), *right = scalar_right.get();
  if (operation == NB_OR) {  // of mappings: a new one
    if (Ref mapping = heap_.behind_proxy(left)) return binary(operation, mapping.get(), right);
    if (Ref mapping = heap_.behind_proxy(right)) return binary(operation, left, mapping.get());
  }
  const TypeTraits& a = heap_.traits(left);
  const TypeTraits b = heap_.traits(right);
  if (PyTuple_Check(left) || PyTuple_Check(right))
    if (std::optional<Ref> sizes = operator_of_sizes(core_, operation, left, right)) return std::move(*sizes);
  if (operation % kPlainOperators == NB_REMAINDER && PyUnicode_CheckExact(left))
    if (Ref text = core_.texts().late("operator", "mod", {left, right})) return text;
  if (a.atom && b.atom) return heap_.adopt(checked(operator_function(operation)(left, right)));
  require_no_elements(left, right);
  const OperatorNames names = operator_names(operation);
  bool tried = false;
  if (operation >= kPlainOperators && heap_.traits(left).python_class)
    if (std::optional<Ref> result = python_operator(left, right, names.in_place, nullptr, &tried)) return std::move(*result);
  if (std::optional<Ref> result = python_operator(left, right, names.plain, names.reflected, &tried)) return std::move(*result);
  require_no_elements(right, left);
  const bool stand_in = core_.is_stand_in(left) || core_.is_stand_in(right);
  if (tried && !stand_in) {
    const auto has_operators_in_c = [](PyObject* operand) { return !PyType_HasFeature(Py_TYPE(operand), Py_TPFLAGS_HEAPTYPE) || Py_TYPE(operand)->tp_base != &PyBaseObject_Type; };
    const bool may_do = !a.atom && !b.atom && (has_operators_in_c(left) || has_operators_in_c(right));
    if (may_do) throw GraphBreak("an operator that its method in Python leaves to C code");
    const char* also = operation == NB_POWER ? " or pow()" : operation >= kPlainOperators ? "=" : "";
    PyErr_Format(PyExc_TypeError, "unsupported operand type(s) for %s%s: '%.100s' and '%.100s'", kSigns[operation % kPlainOperators], also, Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
    throw PythonError();
  }
  if (operation == kPlainOperators + NB_ADD && PyList_Check(left))
    if (Ref items = items_to_hand_on(heap_, right); !items.is(right)) return binary(operation, left, items.get());
  if (Ref copy = joined_with_nothing(operation, left, right)) return copy;
  const Container container = heap_.traits(left).container;
  const bool changes = operation >= kPlainOperators && container != Container::none && container != Container::tuple && container != Container::frozen_set;
  const bool takes_it = PyType_HasFeature(Py_TYPE(left), Py_TPFLAGS_LIST_SUBCLASS) || heap_.traits(right).container != Container::none || !stand_in;
  if (changes && takes_it && heap_.is_older(left, "an in-place operator")) {
    Arguments arguments;
    arguments.values = {Ref::borrow(right)};
    return change_older(core_, left, PyUnicode_AsUTF8(names.in_place), std::move(arguments));
  }
  if ((core_.hidden_calls().holds_older_numbers(left) || core_.hidden_calls().holds_older_numbers(right)) && makes_new_sequence(operation, left, right)) return binary(operation, core_.hidden_calls().with_numbers_read(left).get(), core_.hidden_calls().with_numbers_read(right).get());
  heap_.expose(left);
  heap_.expose(right);
  const bool adds = operation % kPlainOperators == NB_ADD;
  const bool joins = adds && ((PyTuple_CheckExact(left) && PyTuple_CheckExact(right)) || (PyList_CheckExact(left) && PyList_CheckExact(right)));  // asks no item
  for (PyObject* operand : {left, right}) joins ? core_.hidden_calls().require_readable(operand) : core_.hidden_calls().require_plain(operand);
  if (stand_in) {
    const bool in_place = operation >= kPlainOperators && core_.is_stand_in(left);
    if (std::optional<Ref> result = in_place ? operator_in_place_with_number(left, right, names.in_place) : operator_with_number(left, right, names.plain, names.reflected))
      return std::move(*result);
    Ref x = heap_.substitute(left), y = heap_.substitute(right);
    core_.mark_position();
    return heap_.adopt(checked(operator_function(operation)(x.get(), y.get())));
  }
  require_known_operands({left, right});
  const bool formats = PyUnicode_Check(left) || PyBytes_Check(left);  // "%s" % values
  return heap_.adopt(recorder_.constant_operator(operator_function(operation), left, formats ? core_.hidden_calls().for_elements(right).get() : right));
}

/// D | {} or {} | D of a dict under whose keys numbers vary: nothing looks them up. Empty for all else.
Ref Operators::joined_with_nothing(int operation, PyObject* left, PyObject* right) {
  if (operation != NB_OR || !PyDict_CheckExact(left) || !PyDict_CheckExact(right)) return {};
  PyObject* const dict = heap_.is_empty_new_dict(right) ? left : right;
  if (!heap_.has_loose_keys(dict) || !heap_.is_empty_new_dict(dict == left ? right : left)) return {};
  Ref copy = heap_.born(checked(PyDict_New()));
  heap_.copy_with_loose_keys(dict, copy.get());
  return copy;
}

void Operators::require_known_operands(std::initializer_list<PyObject*> operands) {
  for (PyObject* operand : operands) {
    const TypeTraits& traits = heap_.traits(operand);
    const bool known = traits.atom || traits.identity || traits.role != Recorder::Role::other || traits.container != Container::none;
    if (!known && heap_.source_of(operand)) throw GraphBreak(fmt::format("an operator of a {}", Py_TYPE(operand)->tp_name));
  }
}

bool Operators::is_method_of_tensor(PyObject* object) {
  PyObject* self = PyCFunction_Check(object) ? PyCFunction_GET_SELF(object) : nullptr;
  if (!self) return false;
  const Recorder::Role role = heap_.traits(self).role;
  return role == Recorder::Role::tensor || role == Recorder::Role::stand_in;
}

Ref Operators::compare(int operation, PyObject* given_left, PyObject* given_right) {
  const Ref scalar_left = beside_tensor(given_left, given_right), scalar_right = beside_tensor(given_right, given_left);
  PyObject *left = scalar_left.get(), *right = scalar_right.get();
  if (Ref mapping = heap_.behind_proxy(left)) return compare(operation, mapping.get(), right);
  if (Ref mapping = heap_.behind_proxy(right)) return compare(operation, left, mapping.get());
  const TypeTraits& a = heap_.traits(left);
  const TypeTraits b = heap_.traits(right);
  if (a.atom && b.atom) return heap_.adopt(checked(PyObject_RichCompare(left, right, operation)));
  require_no_elements(left, right);
  const ComparisonNames names = comparison_names(operation);
  bool tried = false;
  if (std::optional<Ref> result = python_operator(left, right, names.name, names.reflected, &tried)) return std::move(*result);
  require_no_elements(right, left);
  const bool stand_in = core_.is_stand_in(left) || core_.is_stand_in(right);
  if (operation == Py_NE && !tried && !stand_in) {  // object.__ne__ asks __eq__
    const ComparisonNames equality = comparison_names(Py_EQ);
    if (std::optional<Ref> result = python_operator(left, right, equality.name, equality.reflected, &tried)) return Ref::borrow(truth(result->get()) ? Py_False : Py_True);
  }
  if (tried && !stand_in) {
    if (std::optional<Ref> result = compare_in_c(operation, left, right)) return std::move(*result);
    if (left != right) heap_.found_different(left, right);
    if (operation == Py_EQ || operation == Py_NE) return Ref::borrow((left == right) == (operation == Py_EQ) ? Py_True : Py_False);
    PyErr_Format(PyExc_TypeError, "'%s' not supported between instances of '%.100s' and '%.100s'", kComparisonSigns[operation], Py_TYPE(left)->tp_name, Py_TYPE(right)->tp_name);
    throw PythonError();
  }
  if ((operation == Py_EQ || operation == Py_NE) && (core_.equality().has_python_equality(left) || core_.equality().has_python_equality(right) || core_.hidden_calls().holds_older_numbers(left) || core_.hidden_calls().holds_older_numbers(right)))
    if (std::optional<bool> equal = core_.equality().equal_containers(left, right)) return Ref::borrow(*equal == (operation == Py_EQ) ? Py_True : Py_False);
  if ((operation == Py_EQ || operation == Py_NE) && is_method_of_tensor(left) && is_method_of_tensor(right)) {
    PyObject* const name = tenon::python::names().__self__;
    const Ref self = core_.attributes().load(left, name), other = core_.attributes().load(right, name);  // a stand-in for the tensor, too
    const bool same = self.is(other.get());
    if (!same) heap_.found_different(self.get(), other.get());
    const bool equal = same && reinterpret_cast<PyCFunctionObject*>(left)->m_ml == reinterpret_cast<PyCFunctionObject*>(right)->m_ml;
    return Ref::borrow(equal == (operation == Py_EQ) ? Py_True : Py_False);
  }
  heap_.expose(left);
  heap_.expose(right);
  const Names& n = tenon::python::names();
  PyObject* const methods[] = {n.__eq__, n.__ne__, n.__lt__, n.__le__, n.__gt__, n.__ge__};
  core_.hidden_calls().require_no_python_methods(left, methods);
  core_.hidden_calls().require_no_python_methods(right, methods);
  if (stand_in)
    if (std::optional<Ref> result = operator_with_number(left, right, names.name, names.reflected)) return std::move(*result);
  for (PyObject* operand : {left, right})
    if (!stand_in && Py_TYPE(operand)->tp_richcompare != PyBaseObject_Type.tp_richcompare) require_known_operands({operand});
  core_.equality().tell_apart(left, right);
  if (operation == Py_EQ || operation == Py_NE)
    if (const auto equal = core_.equality().equal_ints(left, right)) return Ref::borrow(*equal == (operation == Py_EQ) ? Py_True : Py_False);
  const auto seen = [&](PyObject* operand) { return heap_.traits(operand).iterator ? Ref::borrow(operand) : core_.hidden_calls().for_elements(operand); };
  Ref x = seen(left), y = seen(right);
  core_.mark_position();
  // A scalar of NumPy would make an array of itself that is of unknown origin.
  const bool asks_right = core_.is_stand_in(right) && is_scalar_of_numpy(left);
  return heap_.adopt(checked(asks_right ? PyObject_RichCompare(y.get(), x.get(), kSwapped[operation]) : PyObject_RichCompare(x.get(), y.get(), operation)));
}

/// What is left to ask where a method in Python did not know: the other operand's comparison in C.
std::optional<Ref> Operators::compare_in_c(int operation, PyObject* left, PyObject* right) {
  const ComparisonNames names = comparison_names(operation);
  for (const bool swapped : {false, true}) {
    PyObject *self = swapped ? right : left, *other = swapped ? left : right;
    const richcmpfunc function = Py_TYPE(self)->tp_richcompare;
    if (function == nullptr || function == PyBaseObject_Type.tp_richcompare) continue;
    if (is_python_function(heap_.type_attribute(Py_TYPE(self), swapped ? names.reflected : names.name))) continue;
    for (PyObject* operand : {self, other}) heap_.expose(operand);
    core_.hidden_calls().require_plain(self);
    Ref result = checked(function(self, other, swapped ? kSwapped[operation] : operation));
    if (!result.is(Py_NotImplemented)) return heap_.adopt(std::move(result));
  }
  return std::nullopt;
}

bool Operators::is_same(Ref left, Ref right) {
  const bool any_number = heap_.is_number(left.get()) || heap_.is_number(right.get());
  if (any_number && core_.visible_type(left.get()) == core_.visible_type(right.get())) {  // small ints are one object each
    left = heap_.plain_key(left.get());
    right = heap_.plain_key(right.get());
  }
  if (left.is(right.get())) return true;
  if (core_.visible_type(left.get()) == core_.visible_type(right.get()) && recorder_.is_one_object_a_value(core_.visible_type(left.get()))) return truth(left.get()) == truth(right.get());
  heap_.found_different(left.get(), right.get());
  return false;
}

void Operators::op_is(Frame&, const Instruction& i) {
  Ref right = core_.pop(), left = core_.pop();
  core_.push(Ref::borrow(is_same(std::move(left), std::move(right)) != (i.arg != 0) ? Py_True : Py_False));
}

void Operators::op_unary(Frame&, const Instruction& i) {
  Ref value = core_.pop();
  if (i.op == Op::unary_not) {
    core_.push(Ref::borrow(truth(value.get()) ? Py_False : Py_True));
    return;
  }
  const Names& n = names();
  PyObject* name = i.op == Op::unary_negative ? n.__neg__ : i.op == Op::unary_positive ? n.__pos__ : n.__invert__;
  PyObject* method = heap_.traits(value.get()).atom ? nullptr : heap_.type_attribute(Py_TYPE(value.get()), name);
  if (is_python_function(method) && !core_.is_stand_in(value.get())) {
    core_.push(core_.call_now(method, {value.get()}));
    return;
  }
  const auto operation = i.op == Op::unary_negative ? PyNumber_Negative : i.op == Op::unary_positive ? PyNumber_Positive : PyNumber_Invert;
  require_known_operands({value.get()});
  core_.mark_position();
  core_.push(heap_.adopt(checked(operation(value.get()))));
}

Py_ssize_t Operators::length(PyObject* value) {
  if (Ref mapping = heap_.behind_proxy(value)) return length(mapping.get());
  const TypeTraits& traits = heap_.traits(value);
  if (traits.role == Recorder::Role::stand_in || traits.atom) {
    core_.mark_position();
    return checked(PyObject_Size(value));
  }
  PyObject* method = heap_.type_attribute(Py_TYPE(value), names().__len__);
  if (is_python_function(method)) {
    Ref given = heap_.plain_key(core_.call_now(method, {value}).get());
    Ref number = checked(PyNumber_Index(given.get()));
    const Py_ssize_t size = PyNumber_AsSsize_t(number.get(), PyExc_OverflowError);
    if (size < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "__len__() should return >= 0");
    return checked(size);
  }
  if (traits.container != Container::none) return heap_.length(value);
  if (heap_.source_of(value)) throw GraphBreak(fmt::format("len() of a {}", Py_TYPE(value)->tp_name));
  return checked(PyObject_Size(value));
}

}  // namespace tenon::python
