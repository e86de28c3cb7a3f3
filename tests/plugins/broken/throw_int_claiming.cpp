#include "deaths.h"
#include "plugin_parts.h"

namespace {
std::int32_t claim(void*, const TenonGraph*, const TenonClaims*) {
  deaths::throw_int();
  return TENON_OK;
}
}  // namespace

ENTRY("throw_int_claiming", parts::backend.claim = claim)
