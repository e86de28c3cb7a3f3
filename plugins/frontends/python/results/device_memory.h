// torch's allocators and streams as libtenon uses them: intermediates of a device come from where the program's own tensors come from.
#pragma once

#include <string>
#include <vector>

#include "core/ir/device.h"

namespace tenon::python {

/// Hands torch's memory and streams of a device to the session, and says why no tensor of it is taken; empty where these backends (none: the
/// configuration's) bring the device.
std::string why_not_served(ir::Device device, const std::vector<std::string>& backends);

}  // namespace tenon::python
