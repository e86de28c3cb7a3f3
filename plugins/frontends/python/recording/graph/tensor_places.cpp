#include "python/recording/graph/tensor_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/library/torch_device.h"
#include "python/objects/graph_break.h"
#include "python/results/device_memory.h"

namespace tenon::python {

void TensorPlaces::require_served(ir::Device device) {
  if (device.is_host() || std::ranges::find(served_, device) != served_.end()) return;
  if (allowed_.host_only) throw GraphBreak(fmt::format("a tensor on device '{}'", name_of(device)));
  if (allowed_.backends)
    if (const std::string why = why_not_served(device, *allowed_.backends); !why.empty()) throw GraphBreak(why);
  served_.push_back(device);
}

}  // namespace tenon::python
