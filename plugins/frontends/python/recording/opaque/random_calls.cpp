#include "python/recording/opaque/random_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/library/random_state.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/recording/opaque/drawing_order.h"
#include "python/results/twins.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

/// The same call with its result on the meta device, for functions that take no tensor.
Ref with_meta_device(PyObject* kwargs) {
  Ref copy = kwargs ? checked(PyDict_Copy(kwargs)) : checked(PyDict_New());
  checked(PyDict_SetItemString(copy.get(), "device", torch_library()->meta.get()));
  return copy;
}

}  // namespace

Ref RandomCalls::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (names_a_generator(kwargs)) throw GraphBreak(fmt::format("{} with a generator of its own", function.name), "draw from the default generator, which torch.manual_seed seeds");
  const KeptGenerator kept;
  const std::vector<StandIns::Index> operands = core_.stand_ins.among(args, kwargs);
  const auto is_plain = [&](StandIns::Index index) { return is_row_major(core_.stand_ins[index].shape, core_.stand_ins[index].strides); };
  if (function.operator_object && !std::ranges::all_of(operands, is_plain)) throw GraphBreak(fmt::format("{} draws like a tensor that is not row-major", function.name));
  OpaqueUse use;
  use.random = true;
  if (operands.empty()) use.twin_kwargs = with_meta_device(kwargs ? core_.stand_ins.with_twins(kwargs).get() : nullptr);
  Ref drawn = opaque_.record(callable, function, args, kwargs, use);
  if (function.has(Trait::draws_between)) note_bounds(args, kwargs, drawn.get());
  return drawn;
}

/// What is drawn by ([low,] high, size) is not less than the one, and less than the other.
void RandomCalls::note_bounds(PyObject* args, PyObject* kwargs, PyObject* drawn) {
  const auto index = core_.stand_ins.find(drawn);
  if (!index || core_.stand_ins[*index].dtype != DType::i64) return;
  std::vector<std::optional<ir::Dim>> numbers;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && i < 2; ++i)
    if (auto number = integer_of(PyTuple_GET_ITEM(args, i))) numbers.push_back(std::move(number));
  for (const char* name : {"low", "high"})
    if (PyObject* given = kwargs ? PyDict_GetItemString(kwargs, name) : nullptr) numbers.push_back(integer_of(given));
  if (numbers.empty() || !numbers.front() || !numbers.back()) return;
  core_.bounds.note(core_.present.of(*index), {numbers.size() > 1 ? *numbers.front() : ir::Dim(0), *numbers.back() - ir::Dim(1)});
}

}  // namespace tenon::python
