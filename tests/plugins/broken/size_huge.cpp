#include "plugin_parts.h"

ENTRY("size_huge", plugin.struct_size = ~std::size_t{0})
