#include "deaths.h"
#include "plugin_parts.h"

namespace {
struct Constructed {
  Constructed() { deaths::throw_int(); }
} constructed;
}  // namespace

ENTRY("throw_int_loading")
