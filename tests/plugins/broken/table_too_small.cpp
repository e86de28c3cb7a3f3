#include "plugin_parts.h"

ENTRY("table_too_small", parts::backend.struct_size = 16)
