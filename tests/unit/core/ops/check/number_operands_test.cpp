// Numbers in the place of tensors: every op of the catalogue, every operand.
#include <algorithm>
#include <functional>
#include <optional>

#include "catch.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/check/type_checker.h"
#include "core/ops/reference/reference.h"
#include "core/ops/reference/sample.h"

using namespace tenon;
using namespace tenon::ops;

namespace {

const std::vector<ir::Literal> kNumbers{true, ir::Dim(3), ir::Dim(-1), 1.5};

std::string text(const ir::Literal& number) {
  if (const bool* flag = std::get_if<bool>(&number)) return *flag ? "true" : "false";
  if (const double* real = std::get_if<double>(&number)) return fmt::format("{}", *real);
  return fmt::format("{}", std::get<ir::Dim>(number).constant());
}

/// A sample's node with something else at the operands that `places` names; results as the op infers them.
struct ChangedNode {
  ir::Graph graph;
  std::vector<std::size_t> inputs;  // of the sample's inputs, those that are left
};
using Place = std::function<ir::ValueId(ir::Graph&)>;

/// Nothing where the op, or the checker of types, refuses the operands.
std::optional<ChangedNode> changed(const Op& op, const Sample& sample, unsigned places, const Place& place) {
  ChangedNode made;
  std::vector<ir::ValueId> operands;
  std::size_t input = 0;
  for (std::size_t i = 0; i < sample.operands.size(); ++i) {
    const SampleOperand& o = sample.operands[i];
    if (o.literal || places >> i & 1) {
      operands.push_back(places >> i & 1 ? place(made.graph) : made.graph.add_literal(*o.literal));
      input += !o.literal;
      continue;
    }
    made.inputs.push_back(input++);
    operands.push_back(made.graph.add_input(ir::Type::tensor(o.dtype, ir::Shape(o.shape.begin(), o.shape.end()))));
  }
  auto inferred = op.infer(OpQuery(made.graph, operands, sample.attributes));
  if (!inferred) return {};
  for (ir::Type& type : *inferred)  // sizes that depend on data
    for (ir::Dim& d : type.shape)
      if (const SymbolId s = d.as_symbol(); s && s.value >= made.graph.symbols().size()) d = ir::Dim::symbol(made.graph.add_symbol({.name = "u" + std::to_string(s.value)}));
  const NodeId node = made.graph.add_node(op.name, std::move(operands), sample.attributes, *std::move(inferred));
  for (ir::ValueId v : made.graph.node(node).results) made.graph.add_output({.value = v});
  if (!accept_graph(made.graph).ok()) return {};
  return made;
}

std::vector<HostTensor> run(const ChangedNode& node, const Sample& sample) {
  const auto inputs = sample_inputs(sample, 1);
  std::vector<TensorView> views;
  for (std::size_t i : node.inputs) views.push_back(inputs[i].view);
  return evaluate(node.graph, views);
}

/// The dtype that a number takes beside the tensors that are left: theirs, a condition's not; its own beside none.
DType dtype_beside(const ChangedNode& node, const ir::Literal& number) {
  for (ir::ValueId input : node.graph.inputs())
    if (const DType dtype = node.graph.type(input).dtype; !is_bool(dtype)) return dtype;
  return std::holds_alternative<bool>(number) ? DType::b8 : std::holds_alternative<double>(number) ? DType::f64 : DType::i64;
}

/// Runs the node, and the same one with tensors in the places of the numbers: results are equal where both are accepted and give the same types.
bool agrees(const Op& op, const Sample& sample, unsigned places, const ir::Literal& number) {
  const auto numbers = changed(op, sample, places, [&](ir::Graph& graph) { return graph.add_literal(number); });
  if (!numbers) return false;
  std::vector<HostTensor> got, want;
  try {
    got = run(*numbers, sample);
  } catch (const Exception& e) {
    if (e.code() == Code::internal || !op.traits.may_raise) throw;
    return false;
  }
  const DType dtype = dtype_beside(*numbers, number);
  const auto tensors = changed(op, sample, places, [&](ir::Graph& graph) { return NodeBuilder(graph).one("full", {graph.add_literal(number)}, {{"dtype", dtype}, {"size", std::vector<ir::Dim>{}}}); });
  if (!tensors) return false;
  want = run(*tensors, sample);
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (got[k].dtype != want[k].dtype || got[k].shape != want[k].shape) return false;
    const auto difference = first_difference(got[k].view(), want[k].view());
    if (difference) FAIL_CHECK(*difference);
  }
  return true;
}

}  // namespace

TEST_CASE("a number in the place of any operand is refused, or gives what a tensor of that number gives") {
  std::size_t compared = 0;
  for (const Op& op : all_ops()) {
    if (op.traits.opaque || op.traits.control || op.traits.random) continue;
    for (const Sample& sample : samples_of(op))
      for (unsigned places = 1; places < 1u << std::min<std::size_t>(sample.operands.size(), 4); ++places)
        for (const ir::Literal& number : kNumbers) {
          INFO(op.name << " / " << sample.name << " with " << text(number) << " at the operands " << places);
          try {
            compared += agrees(op, sample, places, number);
          } catch (const Exception& e) {
            FAIL_CHECK(e.what());
          }
        }
  }
  CHECK(compared > 4000);
}
