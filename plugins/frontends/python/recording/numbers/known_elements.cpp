#include "python/recording/numbers/known_elements.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "python/library/numpy_api.h"
#include "python/objects/graph_break.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

constexpr std::size_t kMostElements = 16;

bool is_varying(PyObject* object) { return is_symbolic_int(object) || is_symbolic_scalar(object); }
bool is_integer(PyObject* number) { return PyLong_Check(number) || is_symbolic_int(number); }

/// Python's operation that a ufunc or a special method is; null for others. NumPy's integers wrap where Python's grow: an expression beyond int64 does not
/// hold. `whole`: of integers alone, where the two agree.
struct Operation {
  std::string_view ufunc, method;
  binaryfunc compute = nullptr;
  bool whole = false;
};

constexpr Operation kOperations[] = {{"add", "add__", PyNumber_Add},
                                     {"subtract", "sub__", PyNumber_Subtract},
                                     {"multiply", "mul__", PyNumber_Multiply},
                                     {"true_divide", "truediv__", PyNumber_TrueDivide},
                                     {"floor_divide", "floordiv__", PyNumber_FloorDivide, true},
                                     {"remainder", "mod__", PyNumber_Remainder, true}};

/// The operation, and whether its operands are swapped.
std::pair<const Operation*, bool> operation_of(std::string_view name) {
  const bool special = name.starts_with("__");
  const bool swapped = name.starts_with("__r") && name != "__rshift__";
  const std::string_view method = special ? name.substr(swapped ? 3 : 2) : std::string_view();
  const auto* found = std::ranges::find_if(kOperations, [&](const Operation& each) { return special ? each.method == method : each.ufunc == name; });
  return {found == std::end(kOperations) ? nullptr : found, swapped};
}

std::optional<int> comparison_of(std::string_view name) {
  static constexpr std::pair<std::string_view, int> kComparisons[] = {
      {"less", Py_LT},   {"less_equal", Py_LE}, {"equal", Py_EQ},  {"not_equal", Py_NE}, {"greater", Py_GT}, {"greater_equal", Py_GE},
      {"__lt__", Py_LT}, {"__le__", Py_LE},     {"__eq__", Py_EQ}, {"__ne__", Py_NE},    {"__gt__", Py_GT},  {"__ge__", Py_GE}};
  const auto* found = std::ranges::find(kComparisons, name, &std::pair<std::string_view, int>::first);
  return found == std::end(kComparisons) ? std::nullopt : std::optional(found->second);
}

bool makes_array(std::string_view name) { return name == "array" || name == "asarray" || name == "asanyarray"; }

/// Whether a function gives its first argument in the dtype of its result, and nothing else.
bool converts(std::string_view name) { return makes_array(name) || name == "astype" || name == "float64" || name == "int64" || name == "bool" || name == "copy"; }

}  // namespace

Ref KnownElements::number(PyObject* stand_in) {
  const auto index = core_.alone ? std::nullopt : core_.stand_ins.find(stand_in);
  if (!index || !core_.stand_ins[*index].shape.empty()) return {};
  const std::optional<Elements> known = elements(*index);
  return known ? known->front() : Ref();
}

Ref KnownElements::with_integers(PyObject* arguments) {
  bool any = false;
  const auto integer = [&](PyObject* item) -> Ref {
    const auto index = core_.stand_ins.find(item);
    if (index && (core_.stand_ins[*index].kind != TensorKind::scalar || core_.stand_ins[*index].dtype != DType::i64)) return {};
    Ref known = index ? number(item) : Ref();
    if (const Ref plain = known ? Ref() : index ? known_.value(*index) : Ref::borrow(item); plain && PyArray_IsScalar(plain.get(), Long)) known = checked(PyNumber_Index(plain.get()));
    any |= static_cast<bool>(known);
    return known;
  };
  Ref replaced = with_replaced(arguments, [&](PyObject* item) { return PySlice_Check(item) ? with_bounds_replaced(item, integer) : integer(item); });
  return any ? std::move(replaced) : Ref();
}

std::optional<KnownElements::Elements> KnownElements::elements(Index index) {
  const StandIn& s = core_.stand_ins[index];
  const bool exact = s.dtype == DType::i64 || s.dtype == DType::f64 || is_bool(s.dtype);
  if (s.kind == TensorKind::torch || s.shape.size() > 1 || !exact || !s.made_by || !s.made_by->varies) return std::nullopt;
  if (core_.stand_ins.storage_of(index).version != 0 || core_.stand_ins.is_reinterpreted(index)) return std::nullopt;
  if (const auto found = known_elements_.find(index); found != known_elements_.end()) return found->second;
  std::optional<Elements> found;
  try {
    found = made(s);
  } catch (const PythonError&) {  // NumPy gives something where Python raises
    PyErr_Clear();
  } catch (const GraphBreak&) {
  }
  const std::size_t count = s.shape.empty() ? 1 : static_cast<std::size_t>(s.shape.front());
  if (found && (found->size() != count || std::ranges::any_of(*found, [](const Ref& each) { return !each; }))) found.reset();
  return known_elements_[index] = std::move(found);
}

/// Of an argument: a number, a sequence of numbers, or a stand-in.
std::optional<KnownElements::Elements> KnownElements::elements_of(PyObject* object) {
  if (is_varying(object) || PyFloat_CheckExact(object) || PyLong_CheckExact(object)) return Elements{Ref::borrow(object)};
  if (PyArray_IsScalar(object, Double) || PyArray_IsScalar(object, Long)) return Elements{checked(PyObject_CallMethod(object, "item", nullptr))};
  if (PyTuple_Check(object) || PyList_Check(object)) {
    Elements all;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      std::optional<Elements> one = all.size() < kMostElements ? elements_of(PySequence_Fast_GET_ITEM(object, i)) : std::nullopt;
      if (!one || one->size() != 1) return std::nullopt;
      all.push_back(std::move(one->front()));
    }
    return all;
  }
  const auto index = core_.stand_ins.find(object);
  if (!index) return std::nullopt;
  if (core_.stand_ins[*index].made_by && core_.stand_ins[*index].made_by->varies) return elements(*index);
  const StandIn& constant = core_.stand_ins[*index];
  const bool small = constant.shape.empty() || (constant.shape.size() == 1 && constant.shape.front() <= static_cast<std::int64_t>(kMostElements));
  const bool exact = constant.kind != TensorKind::torch && (constant.dtype == DType::i64 || constant.dtype == DType::f64);
  const Ref known = small && exact ? known_.value(*index) : Ref();
  return known ? elements_of(checked(PyObject_CallMethod(known.get(), "tolist", nullptr)).get()) : std::nullopt;
}

std::optional<KnownElements::Elements> KnownElements::made(const StandIn& s) {
  const std::shared_ptr<const KnownCall> call = s.made_by;
  const ForeignFunction& function = foreign_function(call->callable.get());
  const std::string_view name = function.last_word();
  if (name == "__getitem__") return item_of(call->args.get());
  if (PyTuple_GET_SIZE(call->args.get()) == 0 || s.place || (call->kwargs && PyDict_GET_SIZE(call->kwargs.get()) > 0 && !converts(name))) return std::nullopt;
  std::vector<Elements> operands;
  const Py_ssize_t count = converts(name) ? 1 : PyTuple_GET_SIZE(call->args.get());
  for (Py_ssize_t i = 0; i < count; ++i) {
    std::optional<Elements> each = elements_of(PyTuple_GET_ITEM(call->args.get(), i));
    if (!each) return std::nullopt;
    operands.push_back(std::move(*each));
  }
  if (!function.ufunc && !converts(name) && !function.is_special()) return operands.size() == 1 && s.shape.empty() ? reduced(name, std::move(operands.front()), s.dtype) : std::nullopt;
  Elements all;
  const std::size_t elements = s.shape.empty() ? 1 : static_cast<std::size_t>(s.shape.front());
  for (std::size_t at = 0; at < std::min(elements, kMostElements); ++at) {
    std::vector<Ref> numbers;
    for (const Elements& operand : operands) {
      if (operand.size() != 1 && operand.size() != elements) return std::nullopt;
      numbers.push_back(operand[operand.size() == 1 ? 0 : at]);
    }
    all.push_back(converts(name) ? converted(std::move(numbers.front()), s.dtype) : applied(function, call->callable.get(), numbers, s.dtype));
  }
  return all;
}

/// A part of an array by an int or a slice.
std::optional<KnownElements::Elements> KnownElements::item_of(PyObject* args) {
  const std::optional<Elements> all = PyTuple_GET_SIZE(args) == 2 ? elements_of(PyTuple_GET_ITEM(args, 0)) : std::nullopt;
  const auto index = core_.stand_ins.find(PyTuple_GET_ITEM(args, 0));
  if (!all || !index || core_.stand_ins[*index].shape.size() != 1) return std::nullopt;
  PyObject* key = PyTuple_GET_ITEM(args, 1);
  if (!PyLong_CheckExact(key)) return std::nullopt;
  const auto size = static_cast<Py_ssize_t>(all->size());
  const Py_ssize_t at = PyLong_AsSsize_t(key), place = at < 0 ? at + size : at;
  if (PyErr_Occurred() || place < 0 || place >= size) return PyErr_Clear(), std::nullopt;
  return Elements{(*all)[static_cast<std::size_t>(place)]};
}

/// The sum or product of integers, whose order does not matter.
std::optional<KnownElements::Elements> KnownElements::reduced(std::string_view name, Elements given, DType dtype) {
  const binaryfunc operation = name == "prod" ? PyNumber_Multiply : name == "sum" ? PyNumber_Add : nullptr;
  if (!operation || dtype != DType::i64 || given.empty() || !std::ranges::all_of(given, [](const Ref& each) { return is_integer(each.get()); })) return std::nullopt;
  Ref all = given.front();
  for (std::size_t at = 1; at < given.size(); ++at) all = checked(operation(all.get(), given[at].get()));
  return Elements{std::move(all)};
}

Ref KnownElements::applied(const ForeignFunction& function, PyObject* callable, std::span<const Ref> numbers, DType dtype) {
  const std::string_view name = function.last_word();
  const bool whole = std::ranges::all_of(numbers, [](const Ref& each) { return is_integer(each.get()); });
  if (numbers.size() == 2) {
    PyObject *left = numbers[0].get(), *right = numbers[1].get();
    if (const auto comparison = comparison_of(name)) return is_bool(dtype) ? checked(PyObject_RichCompare(left, right, *comparison)) : Ref();
    const auto [operation, swapped] = operation_of(name);
    if (operation && (whole || !operation->whole)) return checked(swapped ? operation->compute(right, left) : operation->compute(left, right));
    if (whole && dtype == DType::i64 && (name == "minimum" || name == "maximum"))
      return make_integer(core_.symbols.extreme(*integer_of(left), *integer_of(right), name == "minimum"));
  }
  if (dtype == DType::i64) return whole && numbers.size() == 1 && (name == "negative" || name == "__neg__") ? checked(PyNumber_Negative(numbers[0].get())) : Ref();
  return dtype == DType::f64 && function.ufunc ? floats_.of_call(callable, name, numbers) : Ref();
}

Ref KnownElements::converted(Ref number, DType dtype) {
  if (dtype == DType::f64) return is_integer(number.get()) ? checked(PyNumber_TrueDivide(number.get(), checked(PyLong_FromLong(1)).get())) : number;
  if (dtype != DType::i64 || PyBool_Check(number.get())) return {};
  if (is_integer(number.get())) return number;
  return is_symbolic_scalar(number.get()) ? arithmetic_.whole_number(number.get(), "trunc") : Ref();
}

}  // namespace tenon::python
