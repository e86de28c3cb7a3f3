#include "deaths.h"
#include "plugin_parts.h"

namespace {
struct Constructed {
  Constructed() { deaths::abort(); }
} constructed;
}  // namespace

ENTRY("abort_loading")
