#include "plugin_parts.h"

ENTRY("no_table", plugin.backend = nullptr)
