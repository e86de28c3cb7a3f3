// Random graphs of pointwise ops, reductions and views, fused, against the judge.
#include <random>

#include "catch.h"
#include "core/ir/printer.h"
#include "core/ops/build/node_builder.h"
#include "running.h"

using namespace tenon;

namespace {

/// Builds graphs whose values stay in a range where float32 and float64 agree closely.
class RandomGraph {
 public:
  RandomGraph(std::uint64_t seed, DType dtype) : random_(seed), dtype_(dtype), builder_(graph) {
    const std::vector<ir::Shape> shapes = {{rows(), columns()}, {rows(), columns()}, {ir::Dim(1), columns()}, {columns()}};
    for (const auto& s : shapes) values_.push_back(graph.add_input(ir::Type::tensor(dtype, s)));
    const int count = 4 + static_cast<int>(random_() % 14);
    for (int i = 0; i < count; ++i) grow();
    const std::size_t outputs = 1 + random_() % 3;
    for (std::size_t i = 0; i < outputs; ++i) graph.add_output({i == 0 ? values_.back() : pick(), ir::OutputKind::result, {}});
  }

  ir::Graph graph;
  std::int64_t row_count = 0, column_count = 0;

 private:
  ir::Dim rows() {
    if (!row_count) row_count = 1 + static_cast<std::int64_t>(random_() % 40);
    return row_count;
  }
  ir::Dim columns() {
    if (!column_count) column_count = 1 + static_cast<std::int64_t>(random_() % 90);
    return column_count;
  }
  ValueId pick() { return values_[random_() % values_.size()]; }
  const ir::Shape& shape(ValueId v) { return graph.type(v).shape; }

  void grow() {
    const ValueId x = pick();
    const std::size_t rank = shape(x).size();
    switch (random_() % 9) {
      case 0: return add(builder_.one("tanh", {x}));
      case 1: return add(builder_.one("sigmoid", {x}));
      case 2: return add(builder_.one("mul", {x, builder_.literal(0.5)}));
      case 3: return binary("add");
      case 4: return binary("sub");
      case 5: return binary("maximum");
      case 6: {
        if (rank == 0) return add(builder_.one("abs", {x}));
        const std::int64_t dim = static_cast<std::int64_t>(random_() % rank);
        const char* op = random_() % 2 ? "amax" : "mean";
        return add(builder_.one(op, {x}, {{"dim", std::vector<ir::Dim>{dim}}, {"keepdim", true}}));
      }
      case 7: {
        if (rank < 1) return add(builder_.one("neg", {x}));
        return add(builder_.one("flip", {x}, {{"dims", std::vector<ir::Dim>{static_cast<std::int64_t>(random_() % rank)}}}));
      }
      default: {
        if (rank < 1) return add(builder_.one("neg", {x}));
        return add(builder_.one("softmax", {x}, {{"dim", ir::Dim(static_cast<std::int64_t>(random_() % rank))}}));
      }
    }
  }

  void binary(const char* op) {
    const ValueId a = pick(), b = pick();
    try {
      add(builder_.one(op, {a, b}));
    } catch (const Exception&) {  // shapes that do not broadcast
      add(builder_.one("tanh", {a}));
    }
  }

  void add(ValueId v) { values_.push_back(v); }

  std::mt19937_64 random_;
  DType dtype_;
  ops::NodeBuilder builder_;
  std::vector<ValueId> values_;
};

void check_seeds(std::uint64_t first, std::uint64_t count, DType dtype, llvm_test::Choice choice, double tolerance) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    RandomGraph made(seed, dtype);
    std::vector<ops::HostTensor> inputs;
    std::vector<ops::TensorView> views;
    for (ValueId v : made.graph.inputs()) {
      std::vector<std::int64_t> shape;
      for (const auto& d : made.graph.type(v).shape) shape.push_back(d.constant());
      inputs.push_back(llvm_test::random_tensor(dtype, shape, seed * 10 + inputs.size()));
    }
    for (auto& t : inputs) views.push_back(t.view());
    INFO("seed " << seed << "\n" << ir::print_graph(made.graph));
    std::string found;
    try {
      found = llvm_test::difference(made.graph, views, choice, tolerance).value_or("");
    } catch (const std::exception& e) {
      found = e.what();
    }
    CHECK(found == "");
    if (!found.empty()) return;
  }
}

}  // namespace

TEST_CASE("random graphs, float32", "[random]") { check_seeds(1, 60, DType::f32, {}, 100); }
TEST_CASE("random graphs, float64", "[random]") { check_seeds(1000, 20, DType::f64, {}, 100); }
TEST_CASE("random graphs, bfloat16", "[random]") { check_seeds(2000, 20, DType::bf16, {}, 30); }
TEST_CASE("random graphs on AVX2", "[random]") { check_seeds(3000, 20, DType::f32, {.width = 32}, 100); }
TEST_CASE("random graphs on SSE", "[random]") { check_seeds(4000, 20, DType::f32, {.width = 16}, 100); }
TEST_CASE("random graphs whose kernels take their sizes with the call", "[random]") { check_seeds(6000, 30, DType::f32, {.least_shared = 1}, 100); }
TEST_CASE("random graphs on threads", "[random]") { check_seeds(5000, 20, DType::f32, {.threads = 3}, 100); }
