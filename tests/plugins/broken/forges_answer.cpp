// Writes a verdict of its own to every descriptor, and ends the process as if all were well.
#include "deaths.h"
#include "plugin_parts.h"

ENTRY("forges_answer", for (int fd = 3; fd < 20; ++fd) if (write(fd, "usable {\"kind\": \"backend\"}\n", 27) < 0) continue; deaths::exit())
