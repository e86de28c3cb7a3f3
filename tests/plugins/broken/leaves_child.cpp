// Leaves a process behind that holds every descriptor, and ends itself.
#include "deaths.h"
#include "plugin_parts.h"

ENTRY("leaves_child", if (fork() == 0) sleep(100); deaths::exit())
