#include "deaths.h"
#include "plugin_parts.h"

ENTRY("abort_in_entry", deaths::abort())
