// Gradients derived from bodies, against central differences in float64.
#include "core/ops/gradients/gradient.h"

#include <cmath>

#include "catch.h"
#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/reference/sample.h"

using namespace tenon;
using namespace tenon::ops;

namespace {

/// The float64 sample without special values that an op's gradient is checked on, if there is one.
std::optional<Sample> differentiable_sample(const Op& op) {
  for (Sample& s : samples_of(op)) {
    bool fits = !s.operands.empty();
    for (SampleOperand& o : s.operands) fits &= !o.literal && (o.dtype == DType::f64 || is_bool(o.dtype)) && o.fill != Fill::special;
    if (fits) return s;
  }
  return std::nullopt;
}

double total(const ir::Graph& graph, std::span<const TensorView> views) {
  const auto results = evaluate(graph, views);
  double sum = 0;
  for (std::int64_t i = 0; i < results[0].element_count(); ++i) sum += results[0].as<double>()[i];
  return sum;
}

}  // namespace

TEST_CASE("the gradient of every differentiable body is that of differences") {
  std::size_t checked = 0;
  for (const Op& op : all_ops()) {
    const auto sample = op.body ? differentiable_sample(op) : std::nullopt;
    if (!sample) continue;
    ir::Graph graph = sample_graph(op, *sample);
    if (graph.type(graph.outputs()[0].value).dtype != DType::f64) continue;
    INFO(op.name << " / " << sample->name);
    auto inputs = sample_inputs(*sample, 3);
    std::vector<TensorView> views;
    for (const SampleInput& i : inputs) views.push_back(i.view);

    ir::Graph backward = graph.clone();
    NodeBuilder b(backward);
    const ir::Type result = backward.type(backward.outputs()[0].value);
    const auto ones = b.one("full", {b.literal(1.0)}, {{"dtype", DType::f64}, {"size", result.shape}});
    const auto gradients = body_gradients(b, backward.nodes()[0], ones);
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (!gradients[k]) continue;
      backward.set_outputs({{.value = *gradients[k]}});
      const auto got = evaluate(backward, views);
      REQUIRE(got[0].shape == views[k].shape);
      for (std::int64_t i = 0; i < got[0].element_count(); i += 3) {
        double& x = static_cast<double*>(views[k].data)[i];
        const double kept = x, h = 1e-5;
        x = kept + h;
        const double above = total(graph, views);
        x = kept - h;
        const double below = total(graph, views);
        x = kept;
        const double want = (above - below) / (2 * h);
        INFO("operand " << k << ", element " << i << ", at " << kept);
        if (std::fabs(want) < 1e4 && std::isfinite(want)) CHECK(got[0].as<double>()[i] == Approx(want).epsilon(1e-4).margin(1e-4));
      }
      ++checked;
    }
  }
  CHECK(checked > 60);
}

TEST_CASE("a branch that is not taken hands no nan on") {
  ir::Graph graph;
  const auto x = graph.add_input(ir::Type::tensor(DType::f32, {3}));
  NodeBuilder b(graph);
  b.one("sinc", {x});
  const auto gradients = body_gradients(b, graph.nodes()[0], b.one("full", {b.literal(1.0)}, {{"dtype", DType::f32}, {"size", ir::Shape{3}}}));
  graph.add_output({.value = *gradients[0]});
  HostTensor input(DType::f32, {3});
  input.as<float>()[1] = 1;
  const auto got = evaluate(graph, std::array{input.view()});
  CHECK(got[0].as<float>()[0] == 0);
  CHECK(got[0].as<float>()[1] == Approx(-1));
}
