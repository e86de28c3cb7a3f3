#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "python/foreign/opaque_purity.h"
#include "python/library/random_state.h"
#include "python/library/torch_library.h"
#include "python/opaque/eager_kernels.h"
#include "python/recording/tensor_recorder.h"
#include "python/results/twins.h"

// The part of the recorder for calls that take random numbers: torch makes them on every run, in the order of the program.

namespace tenon::python {
namespace {

/// The same call with its result on the meta device, for functions that take no tensor.
Ref with_meta_device(PyObject* kwargs) {
  Ref copy = kwargs ? checked(PyDict_Copy(kwargs)) : checked(PyDict_New());
  checked(PyDict_SetItemString(copy.get(), "device", torch_library()->meta.get()));
  return copy;
}

bool names_a_generator(PyObject* kwargs) {
  PyObject* generator = kwargs ? PyDict_GetItemString(kwargs, "generator") : nullptr;
  return generator && generator != Py_None;
}

}  // namespace

/// torch draws in the order in which the elements lie in memory.
MemoryOrder TensorRecorder::drawing_order(Index index, const ForeignFunction& function, const OpaqueUse& use) const {
  const StandIn& s = stand_ins_[index];
  const bool plain = is_row_major(s.shape, s.strides);
  MemoryOrder order = use.written == index && !plain ? memory_order(s.shape, s.strides) : order_of_like(s.shape, s.strides);
  if (order.empty() && function.has(Trait::row_major_draws)) return {};
  if (order.empty() && !s.shape.empty()) throw GraphBreak("random numbers in the order of a tensor with gaps");
  return order;
}

/// The answer of the meta device with the strides that the CPU gives, where operands do not have those of row-major order: some functions draw
/// into a row-major tensor there, and keep the order of an operand on the meta device (torch 2.13: rrelu, poisson, normal of two tensors), also
/// that of a single channel in channels-last order, which is row-major too (dropout).
Ref TensorRecorder::with_strides_of_draw(Ref answer, PyObject* callable, std::span<const Index> operands, PyObject* args, PyObject* kwargs) {
  if (!lie_unusually(operands)) return answer;
  const Ref twin_args = stand_ins_.with_twins(args), twin_kwargs = kwargs ? stand_ins_.with_twins(kwargs) : Ref();
  return with_strides_of_cpu(std::move(answer), stand_ins_, callable, twin_args.get(), twin_kwargs.get(), std::numeric_limits<std::int64_t>::max());
}

Ref TensorRecorder::record_random(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (names_a_generator(kwargs)) throw GraphBreak(fmt::format("{} with a generator of its own", function.name));
  const KeptGenerator kept;
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  const auto is_plain = [&](Index index) { return is_row_major(stand_ins_[index].shape, stand_ins_[index].strides); };
  if (function.operator_object && !std::ranges::all_of(operands, is_plain)) throw GraphBreak(fmt::format("{} draws like a tensor that is not row-major", function.name));
  OpaqueUse use;
  use.random = true;
  if (operands.empty()) use.twin_kwargs = with_meta_device(kwargs ? stand_ins_.with_twins(kwargs).get() : nullptr);
  return record_opaque(callable, function, args, kwargs, use);
}

/// An in-place function that the catalogue lacks runs on a copy, whose end value is written.
ir::ValueId TensorRecorder::value_by_opaque_call(PyObject* callable, const ForeignFunction& function, Index target, PyObject* args, PyObject* kwargs) {
  const Purity& purity = purity_of(callable, function);
  if (!purity.known || purity.undeclared || purity.writes_several || names_a_generator(kwargs)) throw GraphBreak(fmt::format("Tenon has no op for {}", function.name));
  std::optional<KeptGenerator> kept;
  OpaqueUse use;
  use.random = takes_random_numbers(function, purity, args, kwargs);
  use.written = target;
  if (use.random) kept.emplace();
  record_opaque(callable, function, args, kwargs, use);
  return use.value;
}

}  // namespace tenon::python
