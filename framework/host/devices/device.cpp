#include "host/devices/device.h"

#include <fmt/format.h>

#include "core/ir/device.h"

namespace tenon::host {

std::string number_text(DLDevice device) {
  const auto kind = static_cast<std::uint32_t>(device.device_type);
  if (kind == 0 || kind > UINT8_MAX) return fmt::format("device type {}", kind);  // no graph can name it
  const ir::Device named = ir::device_of(device);
  return named.is_host() ? ir::device_kind_text(named.kind) : ir::device_text(named);
}

}  // namespace tenon::host
