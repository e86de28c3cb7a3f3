#include "deaths.h"
#include "plugin_parts.h"

ENTRY("overflow_stack_in_entry", deaths::overflow_stack())
