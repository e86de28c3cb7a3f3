#include "cse.h"
#include "dce.h"
#include "tenon/pass.h"

using namespace tenon::cleanup;

TENON_PASSES("cleanup", TENON_PLUGIN_VERSION,
             {"cse", "computes equal expressions once", cse},
             {"dce", "removes nodes that nothing reads", dce})
