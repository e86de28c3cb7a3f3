#include "plugin_parts.h"

ENTRY("somebody_else")
