#include "deaths.h"
#include "plugin_parts.h"

namespace {
struct Constructed {
  Constructed() { deaths::exit(); }
} constructed;
}  // namespace

ENTRY("exit_loading")
