#include "python/recording/opaque/random_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/library/random_state.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/recording/opaque/drawing_order.h"
#include "python/results/twins.h"

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
  if (names_a_generator(kwargs)) throw GraphBreak(fmt::format("{} with a generator of its own", function.name));
  const KeptGenerator kept;
  const std::vector<StandIns::Index> operands = stand_ins_.among(args, kwargs);
  const auto is_plain = [&](StandIns::Index index) { return is_row_major(stand_ins_[index].shape, stand_ins_[index].strides); };
  if (function.operator_object && !std::ranges::all_of(operands, is_plain)) throw GraphBreak(fmt::format("{} draws like a tensor that is not row-major", function.name));
  OpaqueUse use;
  use.random = true;
  if (operands.empty()) use.twin_kwargs = with_meta_device(kwargs ? stand_ins_.with_twins(kwargs).get() : nullptr);
  return opaque_.record(callable, function, args, kwargs, use);
}

}  // namespace tenon::python
