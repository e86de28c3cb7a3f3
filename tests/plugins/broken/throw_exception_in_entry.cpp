#include "deaths.h"
#include "plugin_parts.h"

ENTRY("throw_exception_in_entry", deaths::throw_exception())
