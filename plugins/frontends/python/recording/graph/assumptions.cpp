#include "python/recording/graph/assumptions.h"

#include <algorithm>
#include <utility>

namespace tenon::python {

bool Assumptions::assume(PyObject* stand_in, bool truth) {
  const auto index = core_.stand_ins.find(stand_in);
  if (!index || !allowed()) return false;
  const StandIn& s = core_.stand_ins[*index];
  const bool single = std::ranges::all_of(s.shape, [](std::int64_t extent) { return extent == 1; });
  if (!single || is_complex(s.dtype) || core_.is_late(s.value)) return false;
  const ir::ValueId value = core_.condition(stand_in);
  add(truth ? value : core_.builder.one("logical_not", {value}));
  return true;
}

bool Assumptions::assume_expected(ir::ValueId value) {
  add(*truth_to_come_ ? value : core_.builder.one("logical_not", {value}));
  return *std::exchange(truth_to_come_, std::nullopt);
}

}  // namespace tenon::python
