#include "deaths.h"
#include "plugin_parts.h"

namespace {
struct Constructed {
  Constructed() { deaths::segfault(); }
} constructed;
}  // namespace

ENTRY("segfault_loading")
