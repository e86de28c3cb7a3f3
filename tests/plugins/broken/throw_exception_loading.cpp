#include "deaths.h"
#include "plugin_parts.h"

namespace {
struct Constructed {
  Constructed() { deaths::throw_exception(); }
} constructed;
}  // namespace

ENTRY("throw_exception_loading")
