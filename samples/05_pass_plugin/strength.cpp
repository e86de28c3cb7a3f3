// A pass that writes small powers as products: x ** 4 becomes (x * x) * (x * x), which rounds a little differently.
#include "core/rewrite/rules.h"
#include "tenon/pass.h"

using namespace tenon;
using namespace tenon::rewrite;

void cheaper_powers(ir::Graph& graph, const PassContext& context) {
  const Rule fourth_power{"fourth_power", op("pow", {any(0), number(4)}), [](Match& match) -> std::optional<ValueId> {
                            const ValueId square = match.make("mul", {match[0], match[0]});
                            return match.make("mul", {square, square});
                          }};
  const std::size_t count = apply_rules(graph, {&fourth_power, 1});
  context.host.log(TENON_INFO, "cheaper_powers: " + std::to_string(count) + " powers");
}

TENON_PASSES("strength", TENON_PLUGIN_VERSION, {"cheaper_powers", "writes fourth powers as products", cheaper_powers})
