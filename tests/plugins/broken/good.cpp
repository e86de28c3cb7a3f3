#include "plugin_parts.h"

ENTRY("good")
