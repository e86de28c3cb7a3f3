#include "python/recording/graph/known_values.h"

#include <algorithm>

#include "python/foreign/opaque_purity.h"
#include "python/library/numpy_api.h"
#include "python/objects/graph_break.h"
#include "python/opaque/quiet_calls.h"
#include "python/stand_ins/late_text.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

constexpr std::int64_t kMostElements = 1 << 16;
constexpr int kLongestChain = 100;

/// Whether a call gives the same whenever it is made with the same arguments, and does nothing else.
bool only_computes(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.writes || function.in_graph || (function.op && function.op->traits.random)) return false;
  const Purity& purity = purity_of(callable, function);
  return (purity.known || function.op) && !purity.writes && !purity.undeclared && !purity.foreign && !takes_random_numbers(function, purity, args, kwargs);
}

}  // namespace

bool holds_varying_number(PyObject* object) {
  if (is_symbolic_int(object) || is_symbolic_scalar(object) || is_late_text(object)) return true;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (holds_varying_number(PySequence_Fast_GET_ITEM(object, i))) return true;
  } else if (PyDict_Check(object)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(object, &position, &key, &value);)
      if (holds_varying_number(value)) return true;
  } else if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return holds_varying_number(slice->start) || holds_varying_number(slice->stop) || holds_varying_number(slice->step);
  }
  return false;
}

Ref with_bounds_replaced(PyObject* slice, const std::function<Ref(PyObject*)>& replace) {
  const auto bound = [&](PyObject* part) {
    Ref replaced = replace(part);
    return replaced ? std::move(replaced) : Ref::borrow(part);
  };
  auto* parts = reinterpret_cast<PySliceObject*>(slice);
  return checked(PySlice_New(bound(parts->start).get(), bound(parts->stop).get(), bound(parts->step).get()));
}

/// Notes of the results of a call of what is known that they can be known, too.
void KnownValues::note(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, PyObject* result) {
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  const auto may_be_known = [&](Index index) { return (stand_ins_[index].constant || stand_ins_[index].made_by) && stand_ins_.storage_of(index).version == 0; };
  if (!std::ranges::all_of(operands, may_be_known) || torch_state().value_or(state_).autocast()) return;
  bool any_varies = std::ranges::any_of(operands, [&](Index index) { return stand_ins_[index].made_by && stand_ins_[index].made_by->varies; });
  any_varies = any_varies || holds_varying_number(args) || (kwargs && holds_varying_number(kwargs));
  if ((operands.empty() && !any_varies) || !only_computes(callable, function, args, kwargs)) return;
  const auto call = std::make_shared<const KnownCall>(KnownCall{Ref::borrow(callable), Ref::borrow(args), Ref::borrow(kwargs), function.flavour, any_varies});
  const auto note = [&](PyObject* item, std::optional<Py_ssize_t> place) {
    const auto index = stand_ins_.find(item);
    if (!index || stand_ins_[*index].constant || stand_ins_[*index].made_by) return;
    stand_ins_[*index].made_by = call;
    stand_ins_[*index].place = place;
  };
  if (!PyTuple_Check(result) && !PyList_Check(result)) return note(result, std::nullopt);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) note(PySequence_Fast_GET_ITEM(result, i), i);
}

/// The tensor, array or scalar itself for which a stand-in stands, where it is the same at every call and nothing wrote it; empty for others.
Ref KnownValues::value(Index index, int links) {
  const StandIn& s = stand_ins_[index];
  if (stand_ins_.storage_of(index).version != 0 || stand_ins_.is_reinterpreted(index)) return {};
  if (s.constant || !s.made_by || s.made_by->varies || links > kLongestChain) return s.constant;
  std::int64_t elements = 1;
  for (std::int64_t extent : s.shape) elements *= extent;
  if (elements > kMostElements) return {};
  const std::shared_ptr<const KnownCall> call = s.made_by;
  bool all = true;
  const auto operand_value = [&](PyObject* item) {
    const auto operand = all ? stand_ins_.find(item) : std::nullopt;
    Ref known = operand ? value(*operand, links + 1) : Ref();
    all &= !operand || known;
    return known;
  };
  Ref args = with_replaced(call->args.get(), operand_value), kwargs = call->kwargs ? with_replaced(call->kwargs.get(), operand_value) : Ref();
  if (!all) return {};
  try {
    Ref made = call_for_good(call->callable.get(), args.get(), kwargs.get(), call->flavour);
    if (s.place) made = checked(PySequence_GetItem(made.get(), *s.place));
    auto read = read_spec(made.get());
    const auto* spec = std::get_if<TensorSpec>(&read);
    if (!spec || spec->dtype != s.dtype || spec->shape != s.shape) return {};
    return stand_ins_[index].constant = made;
  } catch (const GraphBreak&) {
    return {};  // it warns
  } catch (const PythonError&) {
    PyErr_Clear();
    return {};
  }
}

/// The same arguments with values in the places of what is known; nothing where a tensor is not.
std::optional<Ref> KnownValues::with_values(PyObject* arguments) {
  bool all = true;
  Ref replaced = with_replaced(arguments, [&](PyObject* item) {
    const auto index = stand_ins_.find(item);
    Ref known = index ? value(*index) : Ref();
    all &= (!index || known) && !holds_varying_number(item);
    return known;
  });
  return all ? std::optional(std::move(replaced)) : std::nullopt;
}

/// What Python makes of elements, of tensors that are known.
std::optional<Ref> KnownValues::answer(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (!function.has(Trait::answers_of_known)) return std::nullopt;
  const std::optional<Ref> known = with_values(args), known_kwargs = kwargs ? with_values(kwargs) : Ref();
  if (!known || !known_kwargs) return std::nullopt;
  return checked(PyObject_Call(callable, known->get(), known_kwargs->get()));
}

std::optional<bool> KnownValues::truth(PyObject* stand_in) {
  const auto index = stand_ins_.find(stand_in);
  Ref known = index ? value(*index) : Ref();
  if (!known) return std::nullopt;
  return checked(PyObject_IsTrue(known.get())) != 0;
}

/// Python's int for an integer of the library of which the value is known; empty for others.
Ref KnownValues::integer(PyObject* object) {
  const auto index = stand_ins_.find(object);
  if (!index || !stand_ins_[*index].shape.empty()) return {};
  const DType dtype = stand_ins_[*index].dtype;
  Ref known = is_float(dtype) || is_bool(dtype) || is_complex(dtype) ? Ref() : value(*index);
  return known ? checked(PyNumber_Index(known.get())) : Ref();
}

/// The arguments of a call with such ints, everywhere or as the bounds of slices alone; empty where there are none.
Ref KnownValues::with_integers(PyObject* arguments, bool only_bounds) {
  bool any = false;
  const auto known_integer = [&](PyObject* item) {
    Ref known = integer(item);
    any |= static_cast<bool>(known);
    return known;
  };
  Ref replaced = with_replaced(arguments, [&](PyObject* item) {
    if (PySlice_Check(item)) return with_bounds_replaced(item, known_integer);
    return only_bounds ? Ref() : known_integer(item);
  });
  return any ? std::move(replaced) : Ref();
}

Ref KnownValues::with_indices(PyObject* args) {
  return with_replaced(args, [&](PyObject* item) -> Ref {
    if (PySlice_Check(item)) return with_bounds_replaced(item, [&](PyObject* part) { return with_indices(part); });
    const auto index = stand_ins_.find(item);
    const Ref known = index && stand_ins_[*index].kind == TensorKind::scalar ? value(*index) : Ref::borrow(item);
    return known && PyArray_IsScalar(known.get(), Integer) ? checked(PyNumber_Index(known.get())) : Ref();
  });
}

}  // namespace tenon::python
