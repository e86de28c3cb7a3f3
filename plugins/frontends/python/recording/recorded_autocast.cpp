// Calls under autocast: the casts that it makes are calls of their own in the graph.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "python/foreign/autocast.h"
#include "python/library/random_state.h"
#include "python/library/torch_library.h"
#include "python/recording/recorded_calls.h"

namespace tenon::python {

/// The same arguments with each tensor cast as the list says, which names them in the order of StandIns::among.
Ref RecordedCalls::with_casts(PyObject* arguments, PyObject* casts, Py_ssize_t& next) {
  return with_replaced(arguments, [&](PyObject* item) -> Ref {
    if (!stand_ins_.find(item)) return {};
    PyObject* dtype = PyList_GET_ITEM(casts, next++);
    if (dtype == Py_None) return Ref::borrow(item);
    static PyObject* const cast = checked(PyObject_GetAttrString(torch_library()->tensor.get(), "to")).release();
    return record_as_is(cast, foreign_function(cast), checked(PyTuple_Pack(2, item, dtype)).get(), nullptr);
  });
}

/// The autocast that is on for operands; empty where none is.
std::optional<TorchState::Autocast> RecordedCalls::autocast_of(std::span<const Index> operands) const {
  const TorchState state = torch_state().value_or(core_.state);
  if (operands.empty() || !state.autocast()) return std::nullopt;
  const ir::Device device = core_.device_of(operands);
  if (!device.is_host() && device.kind != kDLCUDA) return std::nullopt;
  const auto of = device.is_host() ? TorchState::Autocast::cpu : TorchState::Autocast::cuda;
  return state.autocast(of) ? std::optional(of) : std::nullopt;
}

/// Records a call that autocast changes; empty for one that it does not.
std::optional<Ref> RecordedCalls::record_under_autocast(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, TorchState::Autocast of) {
  const auto is_of_the_host = [&](Index index) { return stand_ins_[index].device.is_host() && is_float(stand_ins_[index].dtype); };
  if (of == TorchState::Autocast::cuda && std::ranges::any_of(stand_ins_.among(args, kwargs), is_of_the_host)) throw GraphBreak("a number of the host's beside tensors of a device under autocast");
  AutocastVerdict verdict;
  try {
    std::optional<KeptGenerator> kept;
    if (function.op && function.op->traits.random) kept.emplace();
    verdict = judge_autocast(callable, stand_ins_.with_twins(args).get(), kwargs ? stand_ins_.with_twins(kwargs).get() : nullptr, of);
  } catch (const PythonError&) {
    PyErr_Clear();
    throw GraphBreak(fmt::format("{} under autocast, which cannot say what it gives without computing it", function.name));
  }
  if (verdict.parts) return checked(PyObject_Call(verdict.parts.get(), args, kwargs));
  if (!verdict.casts && !verdict.call) return std::nullopt;
  const auto writing = function.in_graph ? std::nullopt : as_writing_call(callable, function, args, kwargs);
  if (writing && writing->kind != WritingCall::Kind::none) throw GraphBreak(fmt::format("{} writes into a tensor, and autocast changes what it computes", function.name));
  if (verdict.casts) {
    Py_ssize_t next = 0;
    Ref cast_args = with_casts(args, verdict.casts.get(), next);
    Ref cast_kwargs = kwargs ? with_casts(kwargs, verdict.casts.get(), next) : Ref();
    return record_as_is(callable, function, cast_args.get(), cast_kwargs.get());
  }
  if (history_.tracks(stand_ins_.among(args, kwargs))) throw GraphBreak(fmt::format("{} under autocast has a gradient that torch alone knows", function.name));
  results_.settle_gaps(stand_ins_.among(args, kwargs));
  OpaqueUse use;
  use.answer = std::move(verdict.result);
  return opaque_.record(verdict.call.get(), function, args, kwargs, use);
}

}  // namespace tenon::python
