#include "plugin_parts.h"

EXPORTED const TenonPlugin* tenon_plugin_entry(TenonOffer*) { return nullptr; }
