#include "channels_last.h"
#include "cse.h"
#include "dce.h"
#include "tenon/pass.h"

using namespace tenon::cleanup;

TENON_PASSES("cleanup", TENON_PLUGIN_VERSION,
             {"cse", "computes equal expressions once", cse},
             {"dce", "removes nodes that nothing reads", dce},
             {"channels_last", "lets convolutions on devices read and give pictures whose channels lie last", channels_last})
