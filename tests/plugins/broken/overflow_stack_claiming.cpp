#include "deaths.h"
#include "plugin_parts.h"

namespace {
std::int32_t claim(void*, const TenonGraph*, const TenonClaims*) {
  deaths::overflow_stack();
  return TENON_OK;
}
}  // namespace

ENTRY("overflow_stack_claiming", parts::backend.claim = claim)
