#include "deaths.h"
#include "plugin_parts.h"

ENTRY("loop_in_entry", deaths::loop())
