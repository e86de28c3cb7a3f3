#include "deaths.h"
#include "plugin_parts.h"

ENTRY("throw_int_in_entry", deaths::throw_int())
