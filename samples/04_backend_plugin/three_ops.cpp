// A backend for three ops. It claims float32 nodes whose tensors have one static shape, and computes a group of them in one loop.
#include <algorithm>
#include <map>

#include "tenon/backend.h"

using namespace tenon;
using Function = float (*)(float, float);

const std::map<std::string_view, Function> kFunctions = {{"add", [](float a, float b) { return a + b; }},
                                                         {"mul", [](float a, float b) { return a * b; }},
                                                         {"relu", [](float a, float) { return a < 0 ? 0 : a; }}};

struct ElementLoop : Artefact {
  explicit ElementLoop(const GraphView& graph) : count(graph.nodes()[0].type().element_count()), literals(graph.value_count()) {
    for (ValueView input : graph.inputs()) inputs.push_back(input.id());
    for (OutputView output : graph.outputs()) outputs.push_back(output.value.id());
    for (NodeView node : graph.nodes()) {
      for (ValueView operand : node.operands())
        if (operand.is_literal()) literals[operand.id()] = static_cast<float>(operand.number());
      steps.push_back({kFunctions.at(node.op()), node.result().id(), node.operand(0).id(), node.operand(node.operands().size() - 1).id()});
    }
  }

  void execute(const TenonExecuteArgs& args) override {
    std::vector<float> values = literals;  // of one element, by value id
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < inputs.size(); ++k) values[inputs[k]] = static_cast<const float*>(args.inputs[k])[i];
      for (const Step& s : steps) values[s.result] = s.function(values[s.a], values[s.b]);
      for (std::size_t k = 0; k < outputs.size(); ++k) static_cast<float*>(args.outputs[k])[i] = values[outputs[k]];
    }
  }

  struct Step { Function function; std::uint32_t result, a, b; };
  std::int64_t count;
  std::vector<float> literals;
  std::vector<std::uint32_t> inputs, outputs;
  std::vector<Step> steps;
};

struct ThreeOps : Backend {
  static constexpr std::uint32_t kFlags = TENON_COMPILE_REENTRANT | TENON_EXECUTE_REENTRANT;

  void claim(const GraphView& graph, Claims& claims) override {
    std::map<std::uint32_t, std::vector<std::uint32_t>> nodes_by_type;
    for (NodeView node : graph.nodes()) {
      const auto operands = node.operands();
      const auto fits = [&](ValueView v) { return v.is_literal() || v.type().id() == node.type().id(); };
      if (!kFunctions.contains(node.op())) claims.refuse(node.id(), "op", "only add, mul and relu");
      else if (node.type().dtype() != DType::f32) claims.refuse(node.id(), "dtype", "only float32");
      else if (!node.type().is_static() || !std::ranges::all_of(operands, fits)) claims.refuse(node.id(), "shape", "only one static shape");
      else nodes_by_type[node.type().id()].push_back(node.id());
    }
    for (const auto& [type, nodes] : nodes_by_type) claims.claim(nodes);
  }
  std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const>, const std::string&) override {
    return std::make_unique<ElementLoop>(graph);
  }
};
TENON_BACKEND(ThreeOps, "three_ops", TENON_PLUGIN_VERSION)
