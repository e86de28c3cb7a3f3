#include "plugin_parts.h"

ENTRY("abi_too_new", plugin.abi = TENON_ABI_NEWEST + 1)
