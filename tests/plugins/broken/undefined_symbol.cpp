#include "plugin_parts.h"

extern "C" int a_function_that_nobody_defines();
ENTRY("undefined_symbol", plugin.abi = static_cast<std::uint32_t>(a_function_that_nobody_defines()))
