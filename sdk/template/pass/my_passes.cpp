// A pass to start from: it writes x + x as x * 2. Replace the rule; each should have its law beside it.
#include "core/rewrite/rules.h"
#include "tenon/pass.h"

using namespace tenon;
using namespace tenon::rewrite;

void my_pass(ir::Graph& graph, const PassContext&) {
  // x + x = x * 2: doubling is exact in floats, and wraps alike in integers. (Bools have no product with an integer.)
  const Rule doubled{"doubled", op("add", {any(0), any(0)}), [](Match& match) -> std::optional<ValueId> {
                       if (is_bool(match.type().dtype)) return {};
                       return match.make("mul", {match[0], match.literal(ir::Dim(2))});
                     }};
  apply_rules(graph, {&doubled, 1});
}

TENON_PASSES("my_passes", TENON_PLUGIN_VERSION, {"my_pass", "writes x + x as x * 2", my_pass})
