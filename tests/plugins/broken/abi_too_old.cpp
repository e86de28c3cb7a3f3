#include "plugin_parts.h"

ENTRY("abi_too_old", plugin.abi = TENON_ABI_OLDEST - 1)
