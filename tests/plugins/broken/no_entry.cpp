// Exports something, but no entry.
#include "plugin_parts.h"

EXPORTED int something() { return 1; }
