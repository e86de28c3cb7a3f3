#include "host/devices/device.h"

#include <fmt/format.h>

namespace tenon::host {

std::string name_of(DLDevice device) { return is_host(device) ? "cpu" : fmt::format("device{}:{}", static_cast<int>(device.device_type), device.device_id); }

}  // namespace tenon::host
