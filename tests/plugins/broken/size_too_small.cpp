#include "plugin_parts.h"

ENTRY("size_too_small", plugin.struct_size = 24)
