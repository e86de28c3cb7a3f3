#include <fmt/format.h>

#include "python/tensors/opaque_purity.h"
#include "python/tensors/random_state.h"
#include "python/tensors/tensor_recorder.h"
#include "python/tensors/torch_library.h"

// The part of the recorder for calls that take random numbers: torch makes them on every run, in the order of the program.

namespace tenon::python {
namespace {

/// torch draws in the order in which the elements lie in memory: what is not row-major lies otherwise inside the graph.
void require_row_major(const StandIns& stand_ins, std::span<const StandIns::Index> operands) {
  for (StandIns::Index operand : operands)
    if (!is_row_major(stand_ins[operand].shape, stand_ins[operand].strides)) throw GraphBreak("random numbers in the order of a tensor that is not row-major");
}

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

Ref TensorRecorder::record_random(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (names_a_generator(kwargs)) throw GraphBreak(fmt::format("{} with a generator of its own", function.name));
  const KeptGenerator kept;
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  require_row_major(stand_ins_, operands);
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
  if (use.random) {
    require_row_major(stand_ins_, stand_ins_.among(args, kwargs));
    kept.emplace();
  }
  record_opaque(callable, function, args, kwargs, use);
  return use.value;
}

}  // namespace tenon::python
