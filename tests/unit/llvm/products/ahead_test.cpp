// Memory that is fetched ahead: which lines, in which order; and what of a packed operand a plan knows.
#include "products/ahead.h"

#include <vector>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "decisions/cpu_machine.h"
#include "fusion/plan.h"
#include "tiles/tiled_product.h"

using namespace tenon;
using llvm_backend::Ahead;

TEST_CASE("Memory is fetched ahead line by line, once") {
  std::byte memory[256] = {};
  const int near = 0;
  Ahead ahead{std::span<const std::byte>(memory)};
  const auto first = ahead.next(3, &near);
  CHECK(first.first == memory);
  CHECK(first.stride == 64);
  CHECK(ahead.next(3, &near).first == memory + 192);
  const auto none = ahead.next(3, &near);
  CHECK(static_cast<const void*>(none.first) == &near);
  CHECK(none.stride == 0);
}

TEST_CASE("Runs of rows are fetched ahead a line of each row after the other") {
  std::byte memory[4096] = {};
  Ahead ahead(memory, 100, 1000, 3);
  const int near = 0;
  std::vector<std::ptrdiff_t> starts;
  for (int i = 0; i < 4; ++i) {
    const auto part = ahead.next(2, &near);
    CHECK(part.stride == 1000);
    starts.push_back(part.first - memory);
  }
  CHECK(starts == std::vector<std::ptrdiff_t>{0, 2000, 64, 2064});
  CHECK(static_cast<const void*>(ahead.next(2, &near).first) == &near);
}

TEST_CASE("Without memory nothing is fetched") {
  const int near = 0;
  Ahead nothing, empty{std::span<const std::byte>()};
  CHECK(nothing.next(4, &near).stride == 0);
  CHECK(empty.next(4, &near).stride == 0);
}

namespace {

llvm_backend::TiledProduct product_of(const ir::Graph& graph) {
  const llvm_backend::CpuMachine machine(16);
  auto plan = codegen::make_plan(graph, machine, {});
  plan.algebra.add_symbols(llvm_backend::kTileSymbols);
  for (const codegen::Step& step : plan.steps)
    if (auto* product = std::get_if<codegen::ContractionStep>(&step)) return llvm_backend::tiled(*product, {graph, machine, plan.algebra, {graph.symbols().size()}});
  FAIL("no product");
  return {};
}

}  // namespace

TEST_CASE("The plan knows where rows lie that a prologue packs") {
  ir::Graph graph;
  ops::NodeBuilder builder(graph);
  const ValueId x = graph.add_input(ir::Type::tensor(DType::f32, {2000, 96})), scale = graph.add_input(ir::Type::tensor(DType::f32, {96}));
  const ValueId y = graph.add_input(ir::Type::tensor(DType::f32, {96, 128}));
  const ValueId scaled = builder.one("relu", {builder.one("mul", {scale, x})});
  graph.add_output({builder.one("mm", {scaled, y}), ir::OutputKind::result, {}});
  const auto product = product_of(graph);
  REQUIRE(product.a.pack);
  REQUIRE(product.a.packs_rows_of_value);
  CHECK(product.a.value == x);
  CHECK(product.a.row_stride == ir::Dim(96));
}

TEST_CASE("A prologue of many operations is read once, and not stored") {
  ir::Graph graph;
  ops::NodeBuilder builder(graph);
  auto input = [&](ir::Shape shape) { return graph.add_input(ir::Type::tensor(DType::f32, std::move(shape))); };
  const ValueId x = input({2000, 96}), mean = input({96}), scale = input({96}), shift = input({96}), y = input({96, 128});
  const ValueId scaled = builder.one("mul", {builder.one("sub", {x, mean}), builder.one("rsqrt", {scale})});
  const ValueId left = builder.one("relu", {builder.one("add", {builder.one("abs", {builder.one("add", {scaled, shift})}), shift})});
  graph.add_output({builder.one("mm", {left, y}), ir::OutputKind::result, {}});
  CHECK(product_of(graph).a.pack);
}
