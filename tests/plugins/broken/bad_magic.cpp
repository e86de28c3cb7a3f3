#include "plugin_parts.h"

ENTRY("bad_magic", plugin.magic = 0x1234)
