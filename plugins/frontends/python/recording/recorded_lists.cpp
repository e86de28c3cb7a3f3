#include "python/recording/recorded_lists.h"

#include "python/foreign/list_functions.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

Ref item_or_whole(PyObject* object, Py_ssize_t at) { return Ref::borrow(is_list_argument(object) ? PySequence_Fast_GET_ITEM(object, at) : object); }

/// Whether the operands of a call on lists are such that torch's functions of each tensor do the same: tensors of one dtype, and beside the lists
/// none that requires grad, which most take for no number.
bool are_alike(const StandIns& stand_ins, PyObject* args, PyObject* kwargs) {
  const std::vector<StandIns::Index> operands = stand_ins.among(args, kwargs);
  for (StandIns::Index index : operands)
    if (stand_ins[index].kind != TensorKind::torch || stand_ins[index].dtype != stand_ins[operands.front()].dtype) return false;
  const auto requires_grad = [&](PyObject* argument) {
    const auto index = stand_ins.find(argument);
    return index && stand_ins[*index].requires_grad;
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (requires_grad(PyTuple_GET_ITEM(args, i))) return false;
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, nullptr, &value);)
    if (requires_grad(value)) return false;
  return !operands.empty();
}

}  // namespace

std::optional<Ref> record_each(const RecordedGraph& graph, StandInUses& uses, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (!is_of_lists(function) || torch_state().value_or(graph.state).autocast() || !are_alike(graph.stand_ins, args, kwargs)) return std::nullopt;
  const std::optional<ListCall> found = list_call(function, args, kwargs);
  const auto length = found ? common_length(*found) : std::nullopt;
  Ref each = length ? function_of_each(function) : Ref();
  if (!each) return std::nullopt;
  const ListCall& call = *found;
  const bool writes = function.last_word().back() == '_';
  if (writes && !is_list_argument(call.positional.front())) return std::nullopt;
  // Numbers are given by lists of numbers, not of tensors; torch would refuse these, after others were written.
  for (const auto& [keyword, object] : call.named)
    if (is_list_argument(object) && !graph.stand_ins.among(object, nullptr).empty()) return std::nullopt;
  Ref results = checked(PyTuple_New(*length));
  for (Py_ssize_t i = 0; i < *length; ++i) {
    Ref positional = checked(PyTuple_New(static_cast<Py_ssize_t>(call.positional.size())));
    for (std::size_t at = 0; at < call.positional.size(); ++at)
      PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(at), item_or_whole(call.positional[at], i).release());
    Ref named = call.named.empty() ? Ref() : checked(PyDict_New());
    for (const auto& [keyword, object] : call.named) checked(PyDict_SetItemString(named.get(), keyword, item_or_whole(object, i).get()));
    PyTuple_SET_ITEM(results.get(), i, uses.call(each.get(), positional.get(), named.get()).release());
  }
  return writes ? Ref::borrow(call.positional.front()) : std::move(results);
}

}  // namespace tenon::python
