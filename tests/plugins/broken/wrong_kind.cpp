#include "plugin_parts.h"

ENTRY("wrong_kind", plugin.kind = TENON_KIND_FRONTEND)
