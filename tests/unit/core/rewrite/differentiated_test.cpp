// A graph in two parts: with what the first keeps, the second gives the gradients that the whole would.
#include "core/rewrite/differentiated.h"

#include <cmath>
#include <random>
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

std::vector<ir::ValueId> inputs_of(const ir::Graph& graph, std::span<const std::uint32_t> numbers) {
  std::vector<ir::ValueId> values;
  for (std::uint32_t i : numbers) values.push_back(graph.inputs()[i]);
  return values;
}

rewrite::DifferentiatedGraph differentiated(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const std::uint32_t> wanted) {
  return rewrite::with_backwards(graph, outputs, inputs_of(graph, wanted));
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

void add(std::optional<HostTensor>& sum, const HostTensor* gradient) {
  if (!gradient) return;
  const bool first = !sum;
  if (first) sum = HostTensor(gradient->dtype, gradient->shape);
  for (std::int64_t i = 0; gradient->dtype == DType::f64 && i < gradient->element_count(); ++i)
    sum->as<double>()[i] = first ? gradient->as<double>()[i] : sum->as<double>()[i] + gradient->as<double>()[i];
}

/// What a run of the forward gives: its outputs, and the values that are wanted.
struct Forward {
  Forward(const rewrite::DifferentiatedGraph& made, std::span<const TensorView> inputs) {
    ir::Graph graph = made.forward.clone();
    for (ir::ValueId v : made.wanted) graph.add_output({.value = v});
    outputs = evaluate(graph, inputs);
    const auto first = outputs.begin() + static_cast<std::ptrdiff_t>(made.forward.outputs().size());
    wanted.assign(std::move_iterator(first), std::move_iterator(outputs.end()));
    outputs.erase(first, outputs.end());
  }
  std::vector<HostTensor> outputs, wanted;
};

/// What a graph of gradients reads of the forward.
std::vector<TensorView> kept_for(const rewrite::BackwardGraph& backward, const Forward& forward, std::span<const TensorView> inputs) {
  std::vector<TensorView> kept;
  for (std::uint32_t i : backward.kept_inputs) kept.push_back(inputs[i]);
  for (std::uint32_t o : backward.kept_outputs) kept.push_back(forward.outputs[o].view());
  return kept;
}

/// A gradient for each result of a graph of gradients.
std::vector<HostTensor> some_tangents(const rewrite::DifferentiatedGraph& made, const rewrite::BackwardGraph& backward) {
  std::vector<HostTensor> tangents;
  for (const rewrite::BackwardGraph::Result& r : backward.results) tangents.push_back(filled(made.forward.type(r.value), 0.9 + static_cast<double>(tangents.size())));
  return tangents;
}

/// Gradients by the two parts, by wanted input; nothing where the gradient is 0 for that. `tangents`: by output.
std::vector<std::optional<HostTensor>> in_two_parts(const rewrite::DifferentiatedGraph& made, std::span<const TensorView> inputs, const std::vector<HostTensor>& tangents) {
  const Forward forward(made, inputs);
  std::vector<std::optional<HostTensor>> sums(made.wanted.size());
  for (std::size_t b = made.backwards.size(); b-- > 0;) {  // what hands gradients on comes behind what it hands them to
    const rewrite::BackwardGraph& backward = made.backwards[b];
    std::vector<std::optional<HostTensor>> of_results;
    for (const rewrite::BackwardGraph::Result& r : backward.results) {
      std::optional<HostTensor>& sum = of_results.emplace_back();
      if (r.output) add(sum, &tangents[*r.output]);
      const auto w = static_cast<std::size_t>(std::ranges::find(made.wanted, r.value) - made.wanted.begin());
      if (w < sums.size() && sums[w]) {
        add(sum, &*sums[w]);
        sums[w].reset();
      }
      if (!sum) sum = HostTensor(made.forward.type(r.value).dtype, filled(made.forward.type(r.value), 0).shape);
    }
    std::vector<TensorView> given = kept_for(backward, forward, inputs);
    for (const auto& tangent : of_results) given.push_back(tangent->view());
    const auto gradients = evaluate(backward.graph, given);
    for (std::size_t w = 0; w < sums.size(); ++w) add(sums[w], backward.gradients[w] ? &gradients[*backward.gradients[w]] : nullptr);
  }
  for (std::size_t w = made.wanted.size() - made.inner.size(); w < sums.size(); ++w) CHECK_FALSE(sums[w]);  // handed on, all of them
  sums.resize(made.wanted.size() - made.inner.size());
  return sums;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
bool nearly(double a, double b) { return same(a, b) || std::abs(a - b) <= 1e-13 * (1 + std::abs(a) + std::abs(b)); }

bool same_bytes(const HostTensor& a, const HostTensor& b) { return a.dtype == b.dtype && a.byte_count() == b.byte_count() && std::memcmp(a.data(), b.data(), a.byte_count()) == 0; }

/// The gradients of one backward graph in two ways that differentiate again what it reads: from the beginning, and with the values that it keeps, where
/// all other inputs are not to be read. Their gradients are in the same way gradients of what is kept.
void check_gradients_of_gradients(const rewrite::DifferentiatedGraph& made, const rewrite::BackwardGraph& backward, std::span<const std::uint32_t> wanted,
                                  std::span<const TensorView> inputs) {
  const Forward forward(made, inputs);
  const std::vector<HostTensor> tangents = some_tangents(made, backward);
  std::vector<TensorView> read = kept_for(backward, forward, inputs), all(inputs.begin(), inputs.end());
  for (const HostTensor& t : tangents) read.push_back(t.view()), all.push_back(t.view());
  const auto expected = evaluate(backward.graph, read);
  const ir::Graph anew = rewrite::gradients_anew(made.forward, backward, made.wanted);
  const auto again = evaluate(anew, all);
  std::vector<std::uint32_t> floats;
  std::vector<ir::ValueId> by;  // what this graph has gradients of: those of other inputs flow through its inner values
  for (std::size_t w = 0; w < wanted.size(); ++w)
    if (backward.gradients[w]) by.push_back(anew.inputs()[wanted[w]]);
  for (std::uint32_t k = 0; k < expected.size(); ++k) {
    CHECK(same_bytes(again[k], expected[k]));
    if (expected[k].dtype == DType::f64) floats.push_back(k);
  }
  for (std::size_t k = inputs.size(); k < all.size(); ++k) by.push_back(anew.inputs()[k]);
  for (std::size_t w = wanted.size(); w < made.wanted.size(); ++w)
    if (backward.gradients[w]) by.push_back(made.wanted[w]);
  if (floats.empty()) return;
  const auto is_kept = [&](std::uint32_t input) { return input >= inputs.size() || std::ranges::find(backward.kept_inputs, input) != backward.kept_inputs.end(); };
  rewrite::Keeping keeping;
  for (std::uint32_t i = 0; i < inputs.size(); ++i)
    if (!is_kept(i)) keeping.missing.push_back(anew.inputs()[i]);
  const auto second = rewrite::with_backwards(anew, floats, by, keeping);
  const ir::Graph given = rewrite::from_outputs(second.forward, expected.size(), backward.kept_outputs.size());
  CHECK_FALSE(ir::verify_graph(given));
  const auto users = given.users();
  for (std::uint32_t i = 0; i < inputs.size(); ++i) CHECK((is_kept(i) || users[given.inputs()[i].value].empty()));
  for (const rewrite::BackwardGraph& b : second.backwards)
    for (std::uint32_t i : b.kept_inputs) CHECK(is_kept(i));
  for (std::uint32_t o : backward.kept_outputs) all.push_back(forward.outputs[o].view());
  const auto from_kept = evaluate(given, all);
  for (std::uint32_t k = 0; k < expected.size(); ++k) CHECK(same_bytes(from_kept[k], expected[k]));
}

/// Gradients of one result at a time, and for one wanted value at a time.
void check_parts(const rewrite::DifferentiatedGraph& made, const rewrite::BackwardGraph& whole, std::span<const TensorView> inputs) {
  const Forward forward(made, inputs);
  const std::vector<HostTensor> tangents = some_tangents(made, whole);
  std::vector<TensorView> read = kept_for(whole, forward, inputs);
  for (const HostTensor& t : tangents) read.push_back(t.view());
  const auto expected = evaluate(whole.graph, read);
  const std::size_t count = made.wanted.size();
  for (std::size_t w = 0; w < count; ++w) {
    std::vector<bool> asked(count);
    asked[w] = true;
    const auto part = rewrite::part_of(made.forward, whole, made.wanted, std::vector<bool>(whole.results.size(), true), asked);
    CHECK_FALSE(ir::verify_graph(part.graph));
    CHECK(part.gradients[w].has_value() == whole.gradients[w].has_value());
    if (part.gradients[w]) CHECK(same_bytes(evaluate(part.graph, read)[0], expected[*whole.gradients[w]]));
  }
  for (std::size_t o = 0; o < whole.results.size() && whole.results.size() > 1; ++o) {
    std::vector<bool> given(whole.results.size());
    given[o] = true;
    CHECK_FALSE(ir::verify_graph(rewrite::part_of(made.forward, whole, made.wanted, given, std::vector<bool>(count, true)).graph));
  }
}

/// Compares with the gradients that are computed in one graph.
void check_against_one_graph(const ir::Graph& graph, std::span<const TensorView> inputs) {
  const auto outputs = float_outputs(graph), wanted = float_inputs(graph);
  std::vector<HostTensor> tangents;
  for (std::uint32_t o = 0; o < graph.outputs().size(); ++o) tangents.push_back(filled(graph.type(graph.outputs()[o].value), 0.4 + o));
  const auto made = differentiated(graph, outputs, wanted);
  CHECK_FALSE(ir::verify_graph(made.forward));
  for (const rewrite::BackwardGraph& b : made.backwards) {
    CHECK_FALSE(ir::verify_graph(b.graph));
    CHECK(b.kept_inputs.size() + b.kept_outputs.size() + b.results.size() == b.graph.inputs().size());
  }

  std::vector<TensorView> all(inputs.begin(), inputs.end());
  for (std::uint32_t o : outputs) all.push_back(tangents[o].view());
  const auto expected = evaluate(rewrite::backward_graph(graph), all);
  const auto got = in_two_parts(made, inputs, tangents);
  REQUIRE(got.size() == expected.size());
  for (std::size_t k = 0; k < got.size(); ++k)
    for (std::int64_t i = 0; expected[k].dtype == DType::f64 && i < expected[k].element_count(); ++i) {
      const double want = expected[k].as<double>()[i];
      CHECK(nearly(got[k] ? got[k]->as<double>()[i] : 0, want));
    }
  for (const rewrite::BackwardGraph& b : made.backwards) {
    check_parts(made, b, inputs);
    try {
      check_gradients_of_gradients(made, b, wanted, inputs);
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
  const auto made = differentiated(graph, std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{0, 1});
  CHECK(made.backwards[0].kept_inputs == std::vector<std::uint32_t>{0, 1});
  REQUIRE(made.backwards[0].kept_outputs.size() == 1);
  const ir::Output kept = made.forward.outputs()[made.backwards[0].kept_outputs[0]];
  CHECK(kept.kind == ir::OutputKind::saved);
  CHECK(std::string(made.forward.node(made.forward.value(kept.value).node).op) == "mm");
  const auto again = ops_of(made.backwards[0].graph);
  CHECK(again.contains("tanh"));
  CHECK(again.contains("exp"));
}

TEST_CASE("gradients read parts of the longest of concatenations that begin one another") {
  const ir::Graph graph = parsed(R"(graph @main(%x: f64[3, 2], %u: f64[2, 2], %w: f64[4, 2], %v: f64[6, 2], %t: f64[8, 3]) {
    %a: f64[3, 2] = mm(%x, %u)
    %b: f64[3, 2] = tanh(%a)
    %ab: f64[3, 4] = cat(%a, %b) {dim = 1}
    %e: f64[3, 4] = exp(%ab)
    %c: f64[3, 2] = mm(%e, %w)
    %abc: f64[3, 6] = cat(%a, %b, %c) {dim = 1}
    %d: f64[3, 2] = mm(%abc, %v)
    %abcd: f64[3, 8] = cat(%a, %b, %c, %d) {dim = -1}
    %y: f64[3, 3] = mm(%abcd, %t)
    return %y
  })");
  std::vector<HostTensor> inputs;
  std::vector<TensorView> views;
  for (ir::ValueId v : graph.inputs()) inputs.push_back(filled(graph.type(v), 0.3 + 0.1 * static_cast<double>(inputs.size())));
  for (const HostTensor& t : inputs) views.push_back(t.view());
  check_against_one_graph(graph, views);
}

TEST_CASE("a result that the gradient reads is kept once") {
  const ir::Graph graph = parsed("graph @main(%x: f64[3]) {\n  %y: f64[3] = exp(%x)\n  %z: f64[3] = mul(%y, %y)\n  return %y, %z\n}");
  const auto made = differentiated(graph, std::vector<std::uint32_t>{0, 1}, std::vector<std::uint32_t>{0});
  CHECK(made.forward.outputs().size() == 2);
  REQUIRE(made.backwards.size() == 2);
  CHECK(made.backwards[0].kept_outputs == std::vector<std::uint32_t>{0});
  CHECK(made.backwards[1].kept_outputs == std::vector<std::uint32_t>{0});
}

TEST_CASE("nothing flows through detach") {
  const ir::Graph graph = parsed("graph @main(%x: f64[2]) {\n  %d: f64[2] = detach(%x)\n  %y: f64[2] = mul(%x, %d)\n  return %y, %d\n}");
  const auto both = differentiated(graph, std::vector<std::uint32_t>{0, 1}, std::vector<std::uint32_t>{0});
  HostTensor x = filled(graph.type(graph.inputs()[0]), 1);
  std::vector<HostTensor> tangents;
  for (int o = 0; o < 2; ++o) tangents.push_back(filled(graph.type(graph.inputs()[0]), 2));
  const auto gradient = in_two_parts(both, std::vector{x.view()}, tangents);
  REQUIRE(gradient[0]);
  for (int i = 0; i < 2; ++i) CHECK(gradient[0]->as<double>()[i] == tangents[0].as<double>()[i] * x.as<double>()[i]);
  const auto cut_off = differentiated(graph, std::vector<std::uint32_t>{1}, std::vector<std::uint32_t>{0});
  CHECK_FALSE(cut_off.backwards[0].gradients[0]);
}

TEST_CASE("an input that is overwritten is kept as it was") {
  const ir::Graph graph = parsed(R"(graph @main(%x: f64[2], %state: f64[2]) {
    %y: f64[2] = mul(%x, %state)
    %next: f64[2] = add(%state, 1)
    return %y, update %state = %next
  })");
  const auto made = differentiated(graph, std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{0});
  CHECK(made.backwards[0].kept_inputs.empty());
  REQUIRE(made.backwards[0].kept_outputs.size() == 1);
  CHECK(made.forward.outputs()[made.backwards[0].kept_outputs[0]].kind == ir::OutputKind::saved);
  CHECK(made.forward.outputs()[made.backwards[0].kept_outputs[0]].value == made.forward.inputs()[1]);
}

TEST_CASE("gradients keep the symbols of the graph") {
  const ir::Graph graph = parsed("graph @main [s0] (%x: f64[s0, 3]) {\n  %y: f64[s0, 3] = sin(%x)\n  %z: f64[] = sum(%y)\n  return %z\n}");
  const auto made = differentiated(graph, std::vector<std::uint32_t>{0}, std::vector<std::uint32_t>{0});
  CHECK(made.backwards[0].graph.symbols().size() == graph.symbols().size());
  CHECK(made.backwards[0].graph.type(made.backwards[0].graph.outputs()[0].value).shape == graph.type(graph.inputs()[0]).shape);
}

TEST_CASE("gradients of random graphs are the same however many of their values are outputs") {
  const unsigned seed = GENERATE(7u, 1812452588u, 4243852042u, 11u, 12u, 13u);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const char* unary[] = {"sin", "exp", "neg", "tanh", "sigmoid"};
  const char* binary[] = {"add", "mul", "sub"};
  for (int round = 0; round < 60; ++round) {
    std::string text = "graph @main(%v0: f64[2, 2], %v1: f64[2, 2], %v2: f64[2, 2]) {\n";
    const int count = 3 + static_cast<int>(random() % 12);
    std::string outputs;
    for (int v = 3; v < 3 + count; ++v) {
      const auto any = [&] { return fmt::format("%v{}", random() % v); };
      const auto kind = random() % 8;
      if (kind < 3) text += fmt::format("  %v{}: f64[2, 2] = {}({})\n", v, unary[random() % 5], any());
      else if (kind < 6) text += fmt::format("  %v{}: f64[2, 2] = {}({}, {})\n", v, binary[random() % 3], any(), any());
      else if (kind == 6) text += fmt::format("  %v{}: f64[2, 2] = permute({}) {{dims = [1, 0]}}\n", v, any());
      else text += fmt::format("  %v{}: f64[2, 2] = matmul({}, {})\n", v, any(), any());
      if (random() % 3 == 0 || v == 2 + count) outputs += fmt::format("{}%v{}", outputs.empty() ? "" : ", ", v);
    }
    text += fmt::format("  return {}\n}}", outputs);
    INFO(text);
    const ir::Graph graph = parsed(text);
    std::vector<HostTensor> inputs;
    std::vector<TensorView> views;
    for (ir::ValueId v : graph.inputs()) inputs.push_back(filled(graph.type(v), 0.7 * static_cast<double>(inputs.size())));
    for (const HostTensor& t : inputs) views.push_back(t.view());
    check_against_one_graph(graph, views);
  }
}
