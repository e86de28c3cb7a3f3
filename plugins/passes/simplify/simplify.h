// Algebra: replaces expressions by equal, cheaper ones.
#pragma once

#include "tenon/pass.h"

namespace tenon::simplify {

/// Applies the laws of the files *_rules.cpp, in regions too, until none applies. Every law holds for every value of the dtypes that it
/// takes: NaN, infinities and the sign of zero included; only the payload and sign of a NaN may differ.
void simplify(ir::Graph& graph, const PassContext& context);

}  // namespace tenon::simplify
