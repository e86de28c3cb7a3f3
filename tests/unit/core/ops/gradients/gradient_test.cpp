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

TEST_CASE("at bends, ties and ends of ranges the slope is torch's") {
  struct Bend {
    const char* op;
    std::vector<double> at, slopes;
    ir::Attributes attributes = {};
  };
  const double nan = std::nan("");
  const std::vector<Bend> bends{
      {"relu", {0}, {0}},
      {"relu", {nan}, {1}},
      {"relu6", {6}, {0}},
      {"hardtanh", {-1}, {0}},
      {"hardswish", {-3}, {0}},
      {"hardswish", {3}, {1}},
      {"hardsigmoid", {3}, {0}},
      {"elu", {0}, {2}, {{"alpha", 2.0}}},
      {"celu", {0}, {1}, {{"alpha", 2.0}}},
      {"selu", {0}, {1.0507009873554804934193349852946 * 1.6732632423543772848170429916717}},
      {"softshrink", {0.5}, {0}},
      {"logsigmoid", {0}, {0.5}},
      {"sigmoid", {-1000}, {0}},
      {"silu", {-1000}, {0}},
      {"gelu", {0}, {0.5}, {{"approximate", std::string("tanh")}}},
      {"abs", {0}, {0}},
      {"sinc", {0}, {0}},
      {"sqrt", {0}, {INFINITY}},
      {"lgamma", {0}, {-INFINITY}},
      {"lgamma", {-1}, {nan}},
      {"lgamma", {-1e-30}, {1e30}},
      {"maximum", {1, 1}, {0.5, 0.5}},
      {"maximum", {nan, 1}, {1, 1}},
      {"fmax", {1, 1}, {1, 0}},
      {"fmin", {nan, 1}, {0, 1}},
      {"clamp_min", {1, 1}, {1, 0}},
      {"clamp", {2, 0, 2}, {1, 0, 0}},
      {"clamp", {1, 3, 0}, {0, 0, 1}},
      {"atan2", {0, 0}, {0, 0}},
      {"hypot", {0, 0}, {nan, nan}},
      {"copysign", {0, -1}, {0, 0}},
      {"pow", {0, 0}, {0, 0}},
      {"xlogy", {0, 0}, {0, nan}},
      {"xlogy", {0, 2}, {std::log(2), 0}},
      {"mul", {0, INFINITY}, {INFINITY, 0}},
  };
  for (const Bend& bend : bends) {
    INFO(bend.op << " at " << bend.at[0]);
    ir::Graph graph;
    std::vector<ir::ValueId> operands;
    std::vector<HostTensor> inputs;
    std::vector<TensorView> views;
    for (double x : bend.at) {
      operands.push_back(graph.add_input(ir::Type::tensor(DType::f64, {1})));
      inputs.emplace_back(DType::f64, std::vector<std::int64_t>{1}).as<double>()[0] = x;
    }
    for (HostTensor& input : inputs) views.push_back(input.view());
    NodeBuilder b(graph);
    b.one(bend.op, operands, bend.attributes);
    const auto gradients = body_gradients(b, graph.nodes()[0], b.one("full", {b.literal(1.0)}, {{"dtype", DType::f64}, {"size", ir::Shape{1}}}));
    for (const auto& gradient : gradients) graph.add_output({.value = *gradient});
    const auto got = evaluate(graph, views);
    for (std::size_t k = 0; k < bend.slopes.size(); ++k) {
      const double slope = got[k].as<double>()[0], want = bend.slopes[k];
      CHECK((std::isnan(want) ? std::isnan(slope) : slope == Approx(want).margin(1e-12)));
    }
  }
}
