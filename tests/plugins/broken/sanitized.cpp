#include "plugin_parts.h"

ENTRY("sanitized", plugin.sanitizer = "memory")
