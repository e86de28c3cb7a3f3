// Loops that were unrolled: the work of a plan, and what it keeps alive, against one kernel a node.
#include <algorithm>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "decisions/cpu_machine.h"
#include "fusion/tally.h"
#include "graph/decomposition.h"
#include "unit/llvm/running.h"

using namespace tenon;
using codegen::Tally;

namespace {

using Dims = std::vector<ir::Dim>;
using State = std::vector<ValueId>;

/// Replaces the state by the next one.
using Iteration = std::function<void(ops::NodeBuilder&, State&)>;

/// The results are what the iterations replace.
ir::Graph unrolled(const std::vector<ir::Type>& types, int steps, const Iteration& iterate) {
  ir::Graph graph;
  ops::NodeBuilder builder(graph);
  State state;
  for (const ir::Type& type : types) state.push_back(graph.add_input(type));
  for (int i = 0; i < steps; ++i) iterate(builder, state);
  for (ValueId v : state)
    if (graph.value(v).kind == ir::ValueKind::result) graph.add_output({v, ir::OutputKind::result, {}});
  return graph;
}

std::vector<ir::Type> arrays(std::size_t count, const ir::Shape& shape) { return {count, ir::Type::tensor(DType::f32, shape)}; }

Tally tally_of(ir::Graph graph, bool fuse = true) {
  codegen::PlanOptions options;
  options.fuse = fuse;
  codegen::decompose_composites(graph);
  return codegen::tally_of(codegen::make_plan(graph, llvm_backend::CpuMachine(16), options), graph);
}

void check_work(const std::vector<ir::Type>& types, const Iteration& iterate) {
  const auto fused = [&](int steps) { return tally_of(unrolled(types, steps, iterate)); };
  const Tally ten = fused(10), twenty = fused(20), forty = fused(40), apart = tally_of(unrolled(types, 40, iterate), false);
  const auto linear = [](double a, double b, double c) { return c <= 1.1 * (b + 2 * (b - a)) + 100; };
  CHECK(linear(ten.operations, twenty.operations, forty.operations));
  CHECK(linear(ten.loads + ten.stores, twenty.loads + twenty.stores, forty.loads + forty.stores));
  CHECK(linear(static_cast<double>(ten.length), static_cast<double>(twenty.length), static_cast<double>(forty.length)));
  CHECK(forty.longest <= 600);
  CHECK(forty.kernels < apart.kernels);
  CHECK(forty.live_bytes <= 1.05 * apart.apart_bytes);
  CHECK(forty.loads + forty.stores <= apart.loads + apart.stores);
  CHECK(forty.operations <= 4 * apart.operations);
}

void check_loop(std::size_t states, const ir::Shape& shape, const Iteration& iterate) {
  check_work(arrays(states, shape), iterate);
  const ir::Graph graph = unrolled(arrays(states, shape), 10, iterate);
  const auto inputs = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, inputs.views) == std::nullopt);
}

ValueId rolled(ops::NodeBuilder& b, ValueId x, std::int64_t shift, std::int64_t dim) { return b.one("roll", {x}, {{"shifts", Dims{shift}}, {"dims", Dims{dim}}}); }
ValueId halved(ops::NodeBuilder& b, ValueId x) { return b.one("mul", {x, b.literal(0.5)}); }
ValueId mixed(ops::NodeBuilder& b, ValueId x, ValueId y) { return b.one("add", {halved(b, x), halved(b, y)}); }

}  // namespace

TEST_CASE("two arrays that are updated in turn are not computed from all earlier ones", "[fusion]") {
  check_loop(2, {200, 200}, [](auto& b, State& s) {
    s[1] = mixed(b, s[1], rolled(b, s[0], 1, 0));
    s[0] = mixed(b, s[0], s[1]);
  });
}

TEST_CASE("a wave is computed step by step", "[fusion]") {
  check_loop(2, {64, 64}, [](auto& b, State& s) {
    ValueId sum = b.one("mul", {s[0], b.literal(-4.0)});
    for (std::int64_t dim : {0, 1})
      for (std::int64_t shift : {1, -1}) sum = b.one("add", {sum, rolled(b, s[0], shift, dim)});
    s[1] = b.one("add", {halved(b, s[1]), b.one("mul", {sum, b.literal(0.1)})});
    s[0] = mixed(b, s[0], s[1]);
  });
}

TEST_CASE("what is summed up beside a loop is summed step by step", "[fusion]") {
  check_loop(2, {40, 50}, [](auto& b, State& s) {
    s[1] = mixed(b, s[1], s[0]);
    s[0] = b.one("tanh", {b.one("add", {s[0], rolled(b, s[0], 1, 1)})});
  });
}

TEST_CASE("a kernel does not run ahead of those that read what it writes", "[fusion]") {
  const auto tally = [](bool fuse) {
    return tally_of(unrolled(arrays(2, {64, 64}), 80, [](auto& b, State& s) {
      s[1] = mixed(b, b.one("tanh", {s[1]}), rolled(b, b.one("mul", {s[0], rolled(b, s[0], 1, 0)}), 1, 1));
      s[0] = mixed(b, s[0], b.one("sin", {s[0]}));
    }), fuse);
  };
  CHECK(tally(true).live_bytes <= 1.05 * tally(false).apart_bytes);
}

TEST_CASE("small kernels that are equal do not all start at once where their results would wait", "[fusion]") {
  check_work(arrays(21, {100, 100}), [](auto& b, State& s) {
    std::ranges::rotate(s.begin() + 1, s.begin() + 2, s.end());
    const ValueId dear = b.one("tanh", {b.one("mul", {b.one("sin", {s[1]}), b.one("exp", {s[1]})})});
    s[0] = mixed(b, s[0], b.one("add", {rolled(b, dear, 1, 0), rolled(b, dear, 1, 1)}));
  });
}

TEST_CASE("what is summed up from a loop does not keep its steps", "[fusion]") {
  check_loop(2, {200, 200}, [](auto& b, State& s) {
    s[1] = mixed(b, s[1], s[0]);
    s[0] = mixed(b, s[0], rolled(b, s[0], 1, 1));
  });
}

TEST_CASE("rows that are gathered again and again are written in between", "[fusion]") {
  const std::vector<ir::Type> types{ir::Type::tensor(DType::f32, {500}), ir::Type::tensor(DType::i64, {500})};
  check_work(types, [](auto& b, State& s) { s[0] = mixed(b, s[0], b.one("index_select", {s[0], s[1]}, {{"dim", ir::Dim(0)}})); });
}

TEST_CASE("a kernel passes over its rows a few times", "[fusion]") {
  check_loop(1, {32, 32}, [](auto& b, State& s) {
    const ValueId most = b.one("amax", {b.one("abs", {s[0]})}, {{"dim", Dims{0, 1}}, {"keepdim", true}});
    s[0] = mixed(b, s[0], b.one("div", {rolled(b, s[0], 1, 0), b.one("add", {most, b.literal(1.0)})}));
  });
}

TEST_CASE("a value of which a kernel computes one element is not taken for the whole of it", "[fusion]") {
  const ir::Graph graph = unrolled(arrays(2, {400}), 3, [](auto& b, State& s) {
    s[1] = b.one("maximum", {s[0], b.one("sin", {s[1]})});
    const ValueId flipped = b.one("flip", {s[1]}, {{"dims", Dims{0}}});
    const auto part = [&](std::int64_t start, std::int64_t end) {
      return b.one("slice", {flipped}, {{"dim", ir::Dim(0)}, {"start", ir::Dim(start)}, {"end", ir::Dim(end)}, {"step", ir::Dim(1)}});
    };
    const ValueId differences = b.one("sub", {part(1, 400), part(0, 399)});
    s[0] = mixed(b, s[0], b.one("cat", {differences, halved(b, part(0, 1))}, {{"dim", ir::Dim(0)}}));
  });
  const auto inputs = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, inputs.views) == std::nullopt);
}

TEST_CASE("what is shifted after a cheap step is not computed anew for each shift", "[fusion]") {
  const auto clipped = [](auto& b, ValueId x) { return b.one("clamp", {x, b.literal(-0.7), b.literal(0.8)}); };
  check_loop(1, {64, 64}, [&](auto& b, State& s) {
    s[0] = mixed(b, s[0], b.one("exp", {b.one("neg", {b.one("square", {b.one("sin", {s[0]})})})}));
    s[0] = mixed(b, s[0], b.one("flip", {clipped(b, s[0])}, {{"dims", Dims{0}}}));
    s[0] = mixed(b, s[0], rolled(b, clipped(b, s[0]), 2, 1));
  });
}

TEST_CASE("what is as cheap to make of one array as to load is not stored, however many read it", "[fusion]") {
  const auto stores = [](auto make) {
    ir::Graph graph;
    ops::NodeBuilder b(graph);
    const ir::Type type = ir::Type::tensor(DType::f32, {64, 64});
    const ValueId x = graph.add_input(type), y = graph.add_input(type), made = make(b, x, y);
    for (int i = 0; i < 40; ++i) graph.add_output({b.one("sum", {made}, {{"dim", Dims{1}}, {"keepdim", false}}), ir::OutputKind::result, {}});
    return tally_of(std::move(graph)).stores;
  };
  CHECK(stores([](auto& b, ValueId x, ValueId) { return b.one("mul", {x, b.literal(0.6)}); }) == 40 * 64);
  CHECK(stores([](auto& b, ValueId x, ValueId y) { return b.one("mul", {x, y}); }) == 40 * 64 + 64 * 64);
}
