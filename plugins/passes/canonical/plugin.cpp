#include "canonical.h"

TENON_PASSES("canonical", TENON_PLUGIN_VERSION,
             {"canonical", "writes what can be written in several ways in one way", tenon::canonical::canonical})
