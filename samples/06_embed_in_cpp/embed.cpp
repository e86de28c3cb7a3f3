// Builds y = gelu(x @ w + b) with a symbolic number of rows, compiles it once, and runs it for two sizes.
#include <cstdio>
#include <vector>

#include "tenon/embed.hpp"

using namespace tenon;

ir::Graph layer() {
  ir::Graph graph;
  const ir::Dim rows = ir::Dim::symbol(graph.add_symbol({.name = "rows", .min = 1, .max = 1 << 20}));
  const ir::ValueId x = graph.add_input(ir::Type::tensor(DType::f32, {rows, 3}), "x");
  const ir::ValueId w = graph.add_input(ir::Type::tensor(DType::f32, {3, 2}), "w");
  const ir::ValueId b = graph.add_input(ir::Type::tensor(DType::f32, {2}), "b");
  ops::NodeBuilder builder(graph);
  graph.add_output({.value = builder.one("gelu", {builder.one("add", {builder.one("mm", {x, w}), b})})});
  return graph;
}

int main() {
  const embed::Session session;
  const embed::Program program = session.compile(layer());
  const std::vector<float> w{1, 0, 0, 1, 1, 1}, b{0.5f, -0.5f};
  for (std::int64_t rows : {1, 4}) {
    std::vector<float> x(static_cast<std::size_t>(rows) * 3);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 10;
    const auto results = program(embed::Tensor::view(x.data(), {rows, 3}), embed::Tensor::view(w.data(), {3, 2}), embed::Tensor::view(b.data(), {2}));
    for (float value : results[0].values<float>()) std::printf("%.4f ", value);
    std::printf("\n");
  }
}
