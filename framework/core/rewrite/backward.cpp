#include "core/rewrite/backward.h"

#include "core/ops/build/node_builder.h"
#include "core/rewrite/differentiate.h"

namespace tenon::rewrite {

ir::Graph backward_graph(const ir::Graph& graph) {
  ir::Graph result = graph.clone();
  std::vector<ir::ValueId> wanted(result.inputs().begin(), result.inputs().end());
  std::erase_if(wanted, [&](ir::ValueId v) { return !is_float(result.type(v).dtype); });
  std::vector<Seed> seeds;
  for (const ir::Output& output : graph.outputs()) {
    const ir::Type type = result.type(output.value);
    if (is_float(type.dtype)) seeds.push_back({output.value, result.add_input(ir::Type::tensor(type.dtype, type.shape, type.device))});
  }
  const auto gradients = differentiate(result, seeds, wanted);
  ops::NodeBuilder builder(result);
  std::vector<ir::Output> outputs;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const ir::Type type = result.type(wanted[k]);
    builder.on(type.device);
    outputs.push_back({.value = gradients[k] ? *gradients[k] : builder.one("full", {builder.literal(0.0)}, {{"dtype", type.dtype}, {"size", type.shape}})});
  }
  result.set_outputs(std::move(outputs));
  return result;
}

}  // namespace tenon::rewrite
