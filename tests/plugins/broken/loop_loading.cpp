#include "deaths.h"
#include "plugin_parts.h"

namespace {
struct Constructed {
  Constructed() { deaths::loop(); }
} constructed;
}  // namespace

ENTRY("loop_loading")
