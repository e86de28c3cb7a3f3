#include "deaths.h"
#include "plugin_parts.h"

namespace {
std::int32_t claim(void*, const TenonGraph*, const TenonClaims*) {
  deaths::exit();
  return TENON_OK;
}
}  // namespace

ENTRY("exit_claiming", parts::backend.claim = claim)
