#include "deaths.h"
#include "plugin_parts.h"

namespace {
struct Constructed {
  Constructed() { deaths::overflow_stack(); }
} constructed;
}  // namespace

ENTRY("overflow_stack_loading")
