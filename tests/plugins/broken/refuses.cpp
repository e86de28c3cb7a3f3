#include <cstring>

#include "plugin_parts.h"

EXPORTED const TenonPlugin* tenon_plugin_entry(TenonOffer* offer) {
  std::strcpy(offer->refusal, "this plugin needs ABI 7 to 9");
  return nullptr;
}
