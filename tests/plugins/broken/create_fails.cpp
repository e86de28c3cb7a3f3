#include "plugin_parts.h"

namespace {
std::int32_t create(const TenonHost* host, const char*, void**) {
  host->report(host->self, TENON_UNSUPPORTED, TENON_NO_NODE, "this machine lacks the device");
  return TENON_UNSUPPORTED;
}
}  // namespace

ENTRY("create_fails", parts::backend.create = create)
