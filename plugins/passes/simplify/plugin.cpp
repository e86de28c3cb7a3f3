#include "fold.h"
#include "simplify.h"
#include "tenon/pass.h"

using namespace tenon::simplify;

TENON_PASSES("simplify", TENON_PLUGIN_VERSION,
             {"simplify", "replaces expressions by equal, cheaper ones", simplify},
             {"fold", "computes nodes whose operands are constants", fold})
