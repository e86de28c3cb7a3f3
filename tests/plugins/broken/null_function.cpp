#include "plugin_parts.h"

ENTRY("null_function", parts::backend.claim = nullptr)
