#include "deaths.h"
#include "plugin_parts.h"

namespace {
std::int32_t claim(void*, const TenonGraph*, const TenonClaims*) {
  deaths::segfault();
  return TENON_OK;
}
}  // namespace

ENTRY("segfault_claiming", parts::backend.claim = claim)
