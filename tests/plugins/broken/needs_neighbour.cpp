// Needs a library that lies beside it, found by an RPATH of $ORIGIN.
#include "plugin_parts.h"

extern "C" int neighbour_answer();
ENTRY("needs_neighbour", plugin.abi = static_cast<std::uint32_t>(neighbour_answer() / 42))
