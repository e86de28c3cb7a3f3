// A graph in two parts: with what the first keeps, the second gives the gradients that the whole would.
#include "core/rewrite/differentiated.h"

#include <cmath>
#include <set>

#include <fmt/ranges.h>

#include "catch.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "core/ops/catalog.h"
#include "core/ops/reference/reference.h"
#include "core/ops/reference/sample.h"
#include "core/rewrite/backward.h"

using namespace tenon;
using namespace tenon::ops;

namespace {

std::vector<std::uint32_t> float_outputs(const ir::Graph& graph) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < graph.outputs().size(); ++i)
    if (is_float(graph.type(graph.outputs()[i].value).dtype)) found.push_back(i);
  return found;
}

std::vector<std::uint32_t> float_inputs(const ir::Graph& graph) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < graph.inputs().size(); ++i)
    if (is_float(graph.type(graph.inputs()[i]).dtype)) found.push_back(i);
  return found;
}

HostTensor filled(const ir::Type& type, double phase) {
  std::vector<std::int64_t> shape;
  for (const ir::Dim& d : type.shape) shape.push_back(d.constant());
  HostTensor t(type.dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.element_count(); ++i) {
    const double x = std::sin(phase + 1.3 * static_cast<double>(i));
    if (t.dtype == DType::f64) t.as<double>()[i] = x;
    else if (t.dtype == DType::f32) t.as<float>()[i] = static_cast<float>(x);
    else std::memset(t.data(), 0, t.byte_count());
  }
  return t;
}

std::vector<TensorView> views_of(const std::vector<HostTensor>& tensors) {
  std::vector<TensorView> views;
  for (const HostTensor& t : tensors) views.push_back(t.view());
  return views;
}

void add(std::optional<HostTensor>& sum, const HostTensor* gradient) {
  if (!gradient) return;
  const bool first = !sum;
  if (first) sum = HostTensor(gradient->dtype, gradient->shape);
  for (std::int64_t i = 0; gradient->dtype == DType::f64 && i < gradient->element_count(); ++i)
    sum->as<double>()[i] = first ? gradient->as<double>()[i] : sum->as<double>()[i] + gradient->as<double>()[i];
}

/// Gradients by the two parts, by wanted input; nothing where the gradient is 0 for that. `tangents`: by output.
std::vector<std::optional<HostTensor>> in_two_parts(const rewrite::DifferentiatedGraph& made, std::span<const TensorView> inputs, std::span<const TensorView> tangents) {
  const auto results = evaluate(made.forward, inputs);
  std::vector<std::optional<HostTensor>> by_input;
  for (const rewrite::BackwardGraph& backward : made.backwards) {
    std::vector<TensorView> given;
    for (std::uint32_t i : backward.kept_inputs) given.push_back(inputs[i]);
    for (std::uint32_t o : backward.kept_outputs) given.push_back(results[o].view());
    for (std::uint32_t o : backward.outputs) given.push_back(tangents[o]);
    const auto gradients = evaluate(backward.graph, given);
    by_input.resize(backward.gradients.size());
    for (std::size_t k = 0; k < by_input.size(); ++k) add(by_input[k], backward.gradients[k] ? &gradients[*backward.gradients[k]] : nullptr);
  }
  return by_input;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool same_bytes(const HostTensor& a, const HostTensor& b) { return a.dtype == b.dtype && a.byte_count() == b.byte_count() && std::memcmp(a.data(), b.data(), a.byte_count()) == 0; }

/// The gradients of one backward graph in two ways that differentiate again what it reads: from the beginning, and with the values that it keeps, where
/// all other inputs are not to be read. Their gradients are in the same way gradients of what is kept.
void check_gradients_of_gradients(const rewrite::DifferentiatedGraph& made, const rewrite::BackwardGraph& backward, std::span<const std::uint32_t> wanted,
                                  std::span<const TensorView> inputs, std::span<const TensorView> tangents) {
  const auto results = evaluate(made.forward, inputs);
  std::vector<TensorView> kept, all(inputs.begin(), inputs.end());
  for (std::uint32_t i : backward.kept_inputs) kept.push_back(inputs[i]);
  for (std::uint32_t o : backward.kept_outputs) kept.push_back(results[o].view());
  for (std::uint32_t o : backward.outputs) kept.push_back(tangents[o]), all.push_back(tangents[o]);
  const auto expected = evaluate(backward.graph, kept);
  const ir::Graph anew = rewrite::gradients_anew(made.forward, backward, wanted);
  const auto again = evaluate(anew, all);
  std::vector<std::uint32_t> floats, by;
  for (std::uint32_t k = 0; k < expected.size(); ++k) {
    CHECK(same_bytes(again[k], expected[k]));
    if (expected[k].dtype == DType::f64) floats.push_back(k);
  }
  for (std::uint32_t w : wanted) by.push_back(w);
  for (std::size_t k = 0; k < backward.outputs.size(); ++k) by.push_back(static_cast<std::uint32_t>(inputs.size() + k));
  if (floats.empty()) return;
  const auto second = rewrite::with_backwards(anew, floats, by);
  const ir::Graph given = rewrite::from_outputs(second.forward, expected.size(), backward.kept_outputs.size());
  CHECK_FALSE(ir::verify_graph(given));
  const auto is_kept = [&](std::uint32_t input) { return input >= inputs.size() || std::ranges::find(backward.kept_inputs, input) != backward.kept_inputs.end(); };
  const auto users = given.users();
  for (std::uint32_t i = 0; i < inputs.size(); ++i) CHECK((is_kept(i) || users[given.inputs()[i].value].empty()));
  for (const rewrite::BackwardGraph& b : second.backwards)
    for (std::uint32_t i : b.kept_inputs) CHECK(is_kept(i));
  for (std::uint32_t o : backward.kept_outputs) all.push_back(results[o].view());
  const auto from_kept = evaluate(given, all);
  for (std::uint32_t k = 0; k < expected.size(); ++k) CHECK(same_bytes(from_kept[k], expected[k]));
}

/// Gradients of one output at a time, and for one input at a time.
void check_parts(const rewrite::DifferentiatedGraph& made, const rewrite::BackwardGraph& whole, std::span<const std::uint32_t> wanted, std::span<const TensorView> inputs,
                 std::span<const TensorView> tangents) {
  const auto results = evaluate(made.forward, inputs);
  std::vector<TensorView> read;
  for (std::uint32_t i : whole.kept_inputs) read.push_back(inputs[i]);
  for (std::uint32_t o : whole.kept_outputs) read.push_back(results[o].view());
  for (std::uint32_t o : whole.outputs) read.push_back(tangents[o]);
  const auto expected = evaluate(whole.graph, read);
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    std::vector<bool> asked(wanted.size());
    asked[w] = true;
    const auto part = rewrite::part_of(made.forward, whole, wanted, std::vector<bool>(whole.outputs.size(), true), asked);
    CHECK_FALSE(ir::verify_graph(part.graph));
    CHECK(part.gradients[w].has_value() == whole.gradients[w].has_value());
    if (part.gradients[w]) CHECK(same_bytes(evaluate(part.graph, read)[0], expected[*whole.gradients[w]]));
  }
  for (std::size_t o = 0; o < whole.outputs.size() && whole.outputs.size() > 1; ++o) {
    std::vector<bool> given(whole.outputs.size());
    given[o] = true;
    CHECK_FALSE(ir::verify_graph(rewrite::part_of(made.forward, whole, wanted, given, std::vector<bool>(wanted.size(), true)).graph));
  }
}

/// Compares with the gradients that are computed in one graph.
void check_against_one_graph(const ir::Graph& graph, std::span<const TensorView> inputs) {
  const auto outputs = float_outputs(graph), wanted = float_inputs(graph);
  std::vector<HostTensor> tangents;
  for (std::uint32_t o = 0; o < graph.outputs().size(); ++o) tangents.push_back(filled(graph.type(graph.outputs()[o].value), 0.4 + o));
  const auto made = rewrite::with_backwards(graph, outputs, wanted);
  CHECK_FALSE(ir::verify_graph(made.forward));
  for (const rewrite::BackwardGraph& b : made.backwards) {
    CHECK_FALSE(ir::verify_graph(b.graph));
    CHECK(b.kept_inputs.size() + b.kept_outputs.size() + b.outputs.size() == b.graph.inputs().size());
  }

  std::vector<TensorView> all(inputs.begin(), inputs.end());
  for (std::uint32_t o : outputs) all.push_back(tangents[o].view());
  const auto expected = evaluate(rewrite::backward_graph(graph), all);
  const auto got = in_two_parts(made, inputs, views_of(tangents));
  REQUIRE(got.size() == expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    for (std::int64_t i = 0; expected[k].dtype == DType::f64 && i < expected[k].element_count(); ++i) {
      const double want = expected[k].as<double>()[i];
      CHECK(same(got[k] ? got[k]->as<double>()[i] : 0, want));
    }
  for (const rewrite::BackwardGraph& b : made.backwards) {
    check_parts(made, b, wanted, inputs, views_of(tangents));
    try {
      check_gradients_of_gradients(made, b, wanted, inputs, views_of(tangents));
    } catch (const Exception& e) {
      CHECK(e.code() == Code::unsupported);
    }
  }
}

ir::Graph parsed(const std::string& text) {
  auto graph = ir::parse_graph(text);
  REQUIRE(graph.ok());
  return std::move(*graph);
}

std::set<std::string> ops_of(const ir::Graph& graph) {
  std::set<std::string> names;
  for (NodeId id : graph.nodes()) names.insert(std::string(graph.node(id).op));
  return names;
}

}  // namespace

TEST_CASE("the gradient of every op is the same in two parts") {
  for (const Op& op : all_ops()) {
    if (!op.no_grad_reason.empty()) continue;
    std::size_t tried = 0;
    for (const Sample& given : samples_of(op)) {
      Sample sample = given;
      bool any = false, fits = true;
      for (SampleOperand& o : sample.operands) {
        if (o.dtype == DType::f32) o.dtype = DType::f64;
        fits = fits && o.dtype != DType::f16 && o.dtype != DType::bf16 && o.fill != Fill::special;
        any = any || (o.dtype == DType::f64 && !o.literal);
      }
      for (auto& attribute : sample.attributes)
        if (auto* dtype = std::get_if<DType>(&attribute.value); dtype && is_float(*dtype)) *dtype = DType::f64;
      if (!any || !fits || ++tried > 3) continue;
      INFO(op.name << " / " << sample.name);
      const ir::Graph graph = sample_graph(op, sample);
      if (float_outputs(graph).empty()) continue;
      const auto inputs = sample_inputs(sample, 5);
      std::vector<TensorView> views;
      for (const SampleInput& i : inputs) views.push_back(i.view);
      try {
        check_against_one_graph(graph, views);
      } catch (const Exception& e) {
        CHECK(e.code() == Code::unsupported);
      }
    }
  }
}

TEST_CASE("what is computed element by element is computed again, products and sums are kept") {
  const ir::Graph graph = parsed(R"(graph @main(%x: f64[3, 4], %w: f64[4, 4]) {
    %p: f64[3, 4] = matmul(%x, %w)
    %t: f64[3, 4] = tanh(%p)
    %e: f64[3, 4] = exp(%t)
    %s: f64[3] = sum(%e) {dim = [1]}
    return %s
  })");
  const auto made = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{0, 1});
  CHECK(made.backwards[0].kept_inputs == std::vector<std::uint32_t>{0, 1});
  REQUIRE(made.backwards[0].kept_outputs.size() == 1);
  const ir::Output kept = made.forward.outputs()[made.backwards[0].kept_outputs[0]];
  CHECK(kept.kind == ir::OutputKind::saved);
  CHECK(std::string(made.forward.node(made.forward.value(kept.value).node).op) == "mm");
  const auto again = ops_of(made.backwards[0].graph);
  CHECK(again.contains("tanh"));
  CHECK(again.contains("exp"));
}

TEST_CASE("a result that the gradient reads is kept once") {
  const ir::Graph graph = parsed("graph @main(%x: f64[3]) {\n  %y: f64[3] = exp(%x)\n  %z: f64[3] = mul(%y, %y)\n  return %y, %z\n}");
  const auto made = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0, 1}, std::vector<std::uint32_t>{0});
  CHECK(made.forward.outputs().size() == 2);
  REQUIRE(made.backwards.size() == 1);
  CHECK(made.backwards[0].kept_outputs == std::vector<std::uint32_t>{0});
}

TEST_CASE("nothing flows through detach") {
  const ir::Graph graph = parsed("graph @main(%x: f64[2]) {\n  %d: f64[2] = detach(%x)\n  %y: f64[2] = mul(%x, %d)\n  return %y, %d\n}");
  const auto both = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0, 1}, std::vector<std::uint32_t>{0});
  HostTensor x = filled(graph.type(graph.inputs()[0]), 1), g = filled(graph.type(graph.inputs()[0]), 2);
  const auto gradient = in_two_parts(both, std::vector{x.view()}, std::vector{g.view(), g.view()});
  REQUIRE(gradient[0]);
  for (int i = 0; i < 2; ++i) CHECK(gradient[0]->as<double>()[i] == g.as<double>()[i] * x.as<double>()[i]);
  const auto cut_off = rewrite::with_backwards(graph, std::vector<std::uint32_t>{1}, std::vector<std::uint32_t>{0});
  CHECK_FALSE(cut_off.backwards[0].gradients[0]);
}

TEST_CASE("an input that is overwritten is kept as it was") {
  const ir::Graph graph = parsed(R"(graph @main(%x: f64[2], %state: f64[2]) {
    %y: f64[2] = mul(%x, %state)
    %next: f64[2] = add(%state, 1)
    return %y, update %state = %next
  })");
  const auto made = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{0});
  CHECK(made.backwards[0].kept_inputs.empty());
  REQUIRE(made.backwards[0].kept_outputs.size() == 1);
  CHECK(made.forward.outputs()[made.backwards[0].kept_outputs[0]].kind == ir::OutputKind::saved);
  CHECK(made.forward.outputs()[made.backwards[0].kept_outputs[0]].value == made.forward.inputs()[1]);
}

TEST_CASE("gradients keep the symbols of the graph") {
  const ir::Graph graph = parsed("graph @main [s0] (%x: f64[s0, 3]) {\n  %y: f64[s0, 3] = sin(%x)\n  %z: f64[] = sum(%y)\n  return %z\n}");
  const auto made = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{0});
  CHECK(made.backwards[0].graph.symbols().size() == graph.symbols().size());
  CHECK(made.backwards[0].graph.type(made.backwards[0].graph.outputs()[0].value).shape == graph.type(graph.inputs()[0]).shape);
}

TEST_CASE("outputs that share nothing have gradients of their own") {
  const ir::Graph graph = parsed(R"(graph @main(%x: f64[2], %w: f64[2]) {
    %a: f64[2] = sin(%x)
    %b: f64[2] = mul(%a, %w)
    %c: f64[2] = mul(%x, %w)
    %d: f64[2] = cos(%c)
    return %a, %b, %c, %d
  })");
  const auto made = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0, 1, 2, 3}, std::vector<std::uint32_t>{0, 1});
  REQUIRE(made.backwards.size() == 2);
  CHECK(made.backwards[0].outputs == std::vector<std::uint32_t>{0, 1});
  CHECK(made.backwards[1].outputs == std::vector<std::uint32_t>{2, 3});
}

TEST_CASE("outputs that are joined by a later one are in one group") {
  const ir::Graph graph = parsed(R"(graph @main(%x: f64[2], %w: f64[2], %v: f64[2]) {
    %a: f64[2] = sin(%x)
    %b: f64[2] = cos(%w)
    %c: f64[2] = exp(%v)
    %d: f64[2] = mul(%a, %b)
    %e: f64[2] = mul(%a, %c)
    return %a, %b, %c, %d, %e
  })");
  const auto made = rewrite::with_backwards(graph, std::vector<std::uint32_t>{0, 1, 2, 3, 4}, std::vector<std::uint32_t>{0, 1, 2});
  REQUIRE(made.backwards.size() == 1);
  CHECK(made.backwards[0].outputs == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
}
