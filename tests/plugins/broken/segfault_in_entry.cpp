#include "deaths.h"
#include "plugin_parts.h"

ENTRY("segfault_in_entry", deaths::segfault())
