#include "deaths.h"
#include "plugin_parts.h"

ENTRY("exit_in_entry", deaths::exit())
