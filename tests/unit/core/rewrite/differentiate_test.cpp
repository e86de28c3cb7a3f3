// Gradients appended to a graph: which nodes they need, what stops them, and their values against differences on random graphs.
#include "core/rewrite/differentiate.h"

#include <cmath>
#include <map>
#include <random>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/reference/reference.h"
#include "core/rewrite/backward.h"

using namespace tenon;
using namespace tenon::ops;
using ir::Dim;
using ir::ValueId;

namespace {

const ir::Type kThree = ir::Type::tensor(DType::f64, {3});

ValueId ones_like(NodeBuilder& b, ValueId v) { return b.one("full", {b.literal(1.0)}, {{"dtype", b.graph().type(v).dtype}, {"size", b.graph().type(v).shape}}); }

std::vector<double> values_of(ir::Graph& graph, ValueId output, std::vector<double> input) {
  HostTensor x(DType::f64, {static_cast<std::int64_t>(input.size())});
  std::ranges::copy(input, x.as<double>());
  graph.set_outputs({{.value = output}});
  const auto results = evaluate(graph, std::array{x.view()});
  return {results[0].as<double>(), results[0].as<double>() + results[0].element_count()};
}

}  // namespace

TEST_CASE("a derivative is differentiated again") {
  ir::Graph graph;
  const ValueId x = graph.add_input(kThree);
  NodeBuilder b(graph);
  const ValueId cube = b.one("mul", {b.one("mul", {x, x}), x});
  const auto first = rewrite::differentiate(graph, std::array{rewrite::Seed{cube, ones_like(b, cube)}}, std::array{x});
  const auto second = rewrite::differentiate(graph, std::array{rewrite::Seed{*first[0], ones_like(b, x)}}, std::array{x});
  const auto third = rewrite::differentiate(graph, std::array{rewrite::Seed{*second[0], ones_like(b, x)}}, std::array{x});
  CHECK(values_of(graph, *first[0], {1, 2, -3}) == std::vector<double>{3, 12, 27});
  CHECK(values_of(graph, *second[0], {1, 2, -3}) == std::vector<double>{6, 12, -18});
  CHECK(values_of(graph, *third[0], {1, 2, -3}) == std::vector<double>{6, 6, 6});
}

TEST_CASE("attention is differentiated as a whole on devices, but for a mask that has a gradient, and in parts on the host") {
  const auto ops_of = [](ir::Device device, std::optional<DType> mask) {
    ir::Graph graph;
    std::vector<ValueId> operands;
    for (int k = 0; k < 3; ++k) operands.push_back(graph.add_input(ir::Type::tensor(DType::f32, {2, 3, 4}, device)));
    const std::vector<ValueId> wanted = operands;
    if (mask) operands.push_back(graph.add_input(ir::Type::tensor(*mask, {3, 3}, device)));
    NodeBuilder b(graph);
    b.on(device);
    const ValueId y = b.one("scaled_dot_product_attention", operands, {{"is_causal", false}, {"scale", 0.5}});
    rewrite::differentiate(graph, std::array{rewrite::Seed{y, ones_like(b, y)}}, wanted);
    std::vector<std::string> ops;
    for (const NodeId n : graph.nodes()) ops.emplace_back(graph.node(n).op.text());
    return ops;
  };
  constexpr ir::Device kDevice{2, 0};
  const std::vector<std::string> whole = {"scaled_dot_product_attention", "full", "attention_gradients"};
  CHECK(ops_of(kDevice, {}) == whole);
  CHECK(ops_of(kDevice, DType::b8) == whole);
  for (const auto& [device, mask] : {std::pair<ir::Device, std::optional<DType>>{kDevice, DType::f32}, {{}, {}}}) {
    const auto ops = ops_of(device, mask);
    CHECK(std::ranges::count(ops, "softmax") == 1);
    CHECK(std::ranges::count(ops, "attention_gradients") == 0);
  }
}

TEST_CASE("only what lies between is looked at") {
  ir::Graph graph;
  const ValueId x = graph.add_input(kThree), other = graph.add_input(kThree);
  NodeBuilder b(graph);
  const ValueId foreign = graph.node(graph.add_node("opaque", {other}, {{"target", std::string("torch.nothing")}}, {kThree})).results[0];
  const ValueId y = b.one("mul", {x, foreign});
  const ValueId behind = graph.node(graph.add_node("opaque", {y}, {{"target", std::string("torch.nothing")}}, {kThree})).results[0];
  const rewrite::Seed seed{y, ones_like(b, y)};
  const auto found = rewrite::differentiate(graph, std::array{seed}, std::array{x, foreign, behind});
  CHECK((found[0] && found[1] && !found[2]));
  REQUIRE_THROWS_AS(rewrite::differentiate(graph, std::array{seed}, std::array{other}), Exception);
}

TEST_CASE("what a nest reads along whole dimensions is read in place by its gradient") {
  ir::Graph graph;
  const ir::Type type = ir::Type::tensor(DType::f64, {2, 3, 4}), row = ir::Type::tensor(DType::f64, {1, 3, 1});
  const ValueId x = graph.add_input(type), y = graph.add_input(type), scale = graph.add_input(row);
  NodeBuilder b(graph);
  const ValueId scaled = b.one("mul", {b.one("mul", {x, y}), scale});
  const auto found = rewrite::differentiate(graph, std::array{rewrite::Seed{scaled, ones_like(b, scaled)}}, std::array{x, y, scale});
  CHECK((found[0] && found[1] && found[2]));
  for (ir::NodeId id : graph.nodes()) CHECK((graph.node(id).op != "index" && graph.node(id).op != "index_put"));
}

TEST_CASE("what depends on no seed has no gradient, and a stopped node hands nothing on") {
  ir::Graph graph;
  const ValueId x = graph.add_input(kThree);
  NodeBuilder b(graph);
  const ValueId unused = ones_like(b, x), kept = b.one("sin", {x}), y = b.one("mul", {kept, x});
  const rewrite::Seed seed{y, ones_like(b, y)};
  const ir::NodeId sine = graph.value(kept).node;
  const auto found = rewrite::differentiate(graph, std::array{seed}, std::array{x, unused}, [&](ir::NodeId id) { return id == sine; });
  CHECK(!found[1]);
  CHECK(values_of(graph, *found[0], {0.5, 1, 2})[1] == Approx(std::sin(1.0)));
}

TEST_CASE("a composite in between is expanded where it stands, and its results may be named by what they were") {
  ir::Graph graph;
  const ValueId x = graph.add_input(ir::Type::tensor(DType::f64, {2, 3}));
  NodeBuilder b(graph);
  const ValueId rows = b.one("matmul", {x, b.one("permute", {x}, {{"dims", std::vector<Dim>{1, 0}}})}), y = b.one("mul", {rows, rows});
  std::map<std::uint32_t, ValueId> moved;
  const auto found = rewrite::differentiate(graph, std::array{rewrite::Seed{y, ones_like(b, y)}}, std::array{x, rows}, {},
                                            [&](ValueId from, ValueId to) { moved[from.value] = to; });
  REQUIRE(moved.count(rows.value) == 1);
  CHECK(graph.type(moved[rows.value]).shape == graph.type(*found[1]).shape);
  CHECK(graph.type(*found[0]).shape == graph.type(x).shape);
}

TEST_CASE("a walk says of which nodes the operands or results are needed") {
  ir::Graph graph;
  const ValueId x = graph.add_input(ir::Type::tensor(DType::f64, {3}));
  NodeBuilder b(graph);
  const ValueId sine = b.one("sin", {x}), shifted = b.one("add", {sine, b.literal(1.0)}), total = b.one("sum", {shifted}, {{"dim", std::vector<Dim>{0}}, {"keepdim", false}});
  std::map<std::string, bool> needed;
  rewrite::differentiate(graph, std::array{rewrite::Seed{total, ones_like(b, total)}}, std::array{x}, {}, {},
                         [&](ir::NodeId id, bool reads) { needed[std::string(graph.node(id).op)] = reads; });
  CHECK(needed == std::map<std::string, bool>{{"sin", true}, {"add", false}, {"sum", false}});
}

TEST_CASE("complex numbers and bits have no gradient, and say so") {
  ir::Graph graph;
  const ValueId x = graph.add_input(kThree);
  NodeBuilder b(graph);
  const ValueId z = b.one("_to_copy", {x}, {{"dtype", DType::c128}});
  REQUIRE_THROWS_WITH(rewrite::differentiate(graph, std::array{rewrite::Seed{z, z}}, std::array{x}), Catch::Contains("complex"));
  const ValueId bits = b.one("bit_cast", {b.one("bit_cast", {x}, {{"dtype", DType::i64}})}, {{"dtype", DType::f64}});
  CHECK(!rewrite::differentiate(graph, std::array{rewrite::Seed{bits, bits}}, std::array{x})[0]);  // integers carry nothing
}

// ---- random graphs

namespace {

/// Smooth ops on a few tensors of two dimensions, and a loss.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed), b_(graph_) {
    for (int k = 0; k < 2; ++k) pool_.push_back(graph_.add_input(ir::Type::tensor(DType::f64, {3, 3})));
    for (int k = 0; k < 8; ++k) pool_.push_back(step());
    ValueId loss = b_.one("sum", {pool_.back()}, {{"dim", std::vector<Dim>{}}, {"dtype", DType::f64}, {"keepdim", false}});
    for (int k = 0; k < 2; ++k) loss = b_.one("add", {loss, b_.one("sum", {any()}, {{"dim", std::vector<Dim>{}}, {"dtype", DType::f64}, {"keepdim", false}})});
    graph_.add_output({.value = loss});
  }

  const ir::Graph& graph() const { return graph_; }

 private:
  ValueId any() { return pool_[random_() % pool_.size()]; }

  ValueId step() {
    static const std::vector<std::string> kOne{"sigmoid", "tanh", "sin", "silu", "gelu", "softplus", "erf", "mish", "logsigmoid", "expm1"};
    const ValueId x = any(), y = any();
    const std::vector<Dim> last{Dim(1)};
    switch (random_() % 12) {
      case 0: return b_.one("mul", {x, y});
      case 1: return b_.one("mm", {x, b_.one("tanh", {y})});
      case 2: return b_.one("softmax", {x}, {{"dim", Dim(1)}});
      case 3: return b_.one("log_softmax", {x}, {{"dim", Dim(0)}});
      case 4: return b_.one("sub", {x, b_.one("mean", {y}, {{"dim", last}, {"dtype", DType::f64}, {"keepdim", true}})});
      case 5: return b_.one("mul", {y, b_.one("logsumexp", {x}, {{"dim", last}, {"keepdim", true}})});
      case 6: return b_.one("permute", {b_.one("flip", {x}, {{"dims", last}})}, {{"dims", std::vector<Dim>{Dim(1), Dim(0)}}});
      case 7: return b_.one("cumsum", {b_.one("tanh", {x})}, {{"dim", Dim(0)}, {"dtype", DType::f64}});
      case 8: return b_.one("mul", {x, b_.one("prod", {b_.one("sin", {y})}, {{"dim", last}, {"dtype", DType::f64}, {"keepdim", true}})});
      case 9: return b_.one("add", {x, b_.one("var", {y}, {{"correction", Dim(1)}, {"dim", last}, {"keepdim", true}})});
      default: return b_.one(kOne[random_() % kOne.size()], {x});
    }
  }

  std::mt19937_64 random_;
  ir::Graph graph_;
  NodeBuilder b_;
  std::vector<ValueId> pool_;
};

using Point = std::vector<double>;

/// The results of a graph of float64 inputs, one after the other.
Point at(const ir::Graph& graph, const Point& point, const Point& more = {}) {
  std::vector<HostTensor> inputs;
  std::size_t next = 0;
  std::vector<TensorView> views;
  for (ValueId v : graph.inputs()) {
    std::vector<std::int64_t> shape;
    for (const Dim& d : graph.type(v).shape) shape.push_back(d.constant());
    HostTensor& t = inputs.emplace_back(DType::f64, shape);
    for (std::int64_t i = 0; i < t.element_count(); ++i, ++next) t.as<double>()[i] = next < point.size() ? point[next] : more[next - point.size()];
  }
  for (HostTensor& t : inputs) views.push_back(t.view());
  Point all;
  for (const HostTensor& r : evaluate(graph, views)) all.insert(all.end(), r.as<double>(), r.as<double>() + r.element_count());
  return all;
}

double dot(const Point& a, const Point& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Point moved(Point p, const Point& direction, double by) {
  for (std::size_t i = 0; i < p.size(); ++i) p[i] += by * direction[i];
  return p;
}

}  // namespace

TEST_CASE("gradients of random graphs are those of differences, and so are theirs") {
  constexpr double kStep = 1e-5;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const RandomProgram program(seed);
    const ir::Graph first = rewrite::backward_graph(program.graph()), second = rewrite::backward_graph(first);
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 0.7);
    const auto drawn = [&](std::size_t n) {
      Point p(n);
      for (double& x : p) x = normal(random);
      return p;
    };
    const Point x = drawn(18), along = drawn(18), weights = drawn(18);
    const auto slope = [&](const ir::Graph& graph, const Point& more, const Point& by) {
      return (dot(at(graph, moved(x, along, kStep), more), by) - dot(at(graph, moved(x, along, -kStep), more), by)) / (2 * kStep);
    };
    const double size = 1 + std::fabs(dot(at(first, x, {1}), along));
    CHECK(dot(at(first, x, {1}), along) == Approx(slope(program.graph(), {}, {1})).epsilon(1e-5).margin(1e-6 * size));
    Point seeds{1};
    seeds.insert(seeds.end(), weights.begin(), weights.end());
    Point twice = at(second, x, seeds);
    twice.resize(18);  // the last is the gradient of the first order's seed
    CHECK(dot(twice, along) == Approx(slope(first, {1}, weights)).epsilon(1e-4).margin(1e-5 * size));
  }
}

TEST_CASE("a gradient says which operands and results it is computed with") {
  ir::Graph graph;
  const ValueId x = graph.add_input(kThree), y = graph.add_input(kThree);
  NodeBuilder b(graph);
  const ValueId product = b.one("mul", {x, y}), e = b.one("exp", {product}), quotient = b.one("div", {x, y});
  const auto reads = [&](ValueId result, ValueId value, std::vector<ValueId> operands) {
    std::vector<bool> may_have(graph.value_capacity());
    for (ValueId v : operands) may_have[v.value] = true;
    return rewrite::gradient_reads(graph, graph.value(result).node, value, may_have);
  };
  const std::size_t before = graph.nodes().size();
  CHECK(reads(product, y, {x}));
  CHECK_FALSE(reads(product, x, {x}));
  CHECK(reads(product, x, {x, y}));
  CHECK(reads(e, e, {product}));
  CHECK_FALSE(reads(quotient, quotient, {x, y}));
  CHECK_FALSE(reads(quotient, x, {x}));
  CHECK(graph.nodes().size() == before);
}

TEST_CASE("a gradient that depends on its operand by steps is differentiated by it where torch's is") {
  for (const bool for_more : {false, true}) {
    ir::Graph graph;
    const ValueId x = graph.add_input(kThree), g = graph.add_input(kThree);
    NodeBuilder b(graph);
    const ValueId result = b.one("relu", {x});
    const auto first = rewrite::differentiate(graph, std::array{rewrite::Seed{result, g}}, std::array{x}, {}, {}, {}, for_more);
    REQUIRE(first[0]);
    const auto second = rewrite::differentiate(graph, std::array{rewrite::Seed{*first[0], g}}, std::array{x, g});
    CHECK(second[0].has_value() == for_more);
    CHECK(second[1].has_value());
  }
}

TEST_CASE("what is behind a detach or a comparison depends on nothing") {
  ir::Graph graph;
  const ValueId x = graph.add_input(kThree), y = graph.add_input(kThree);
  NodeBuilder b(graph);
  const ValueId product = b.one("mul", {x, y}), cut = b.one("detach", {product}), chosen = b.one("gt", {product, b.literal(0.0)});
  const std::vector<bool> depends = rewrite::depending_on(graph, std::array{x});
  CHECK((depends[x.value] && depends[product.value]));
  CHECK((!depends[y.value] && !depends[cut.value] && !depends[chosen.value]));
}
