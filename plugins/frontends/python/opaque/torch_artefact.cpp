#include "python/opaque/torch_artefact.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/ir/buffer.h"
#include "core/ir/outputs.h"
#include "core/ops/view.h"
#include "python/foreign/autocast.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/opaque/planned_tensors.h"
#include "python/opaque/python_artefact.h"
#include "python/metadata/strides.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/opaque/torch_node.h"

namespace tenon::python {
namespace {

bool is_of_host(const GraphView& graph) {
  for (NodeView node : graph.nodes())
    for (ValueView result : node.results())
      if (result.type().is_tensor() && result.type().device_kind() != ir::Device::kHost) return false;
  return true;
}

bool is_on_device(const ir::Graph& graph, const ir::Node& node) {
  const auto there = [&](ir::ValueId v) { return graph.type(v).is_tensor() && !graph.type(v).device.is_host(); };
  return std::ranges::any_of(node.operands, there) || std::ranges::any_of(node.results, there);
}

/// The memory that a tensor shares with its views; null where nobody knows.
const void* storage_of(PyObject* tensor) { return known_torch_library()->direct_fields ? layout::storage(layout::impl(tensor)) : nullptr; }

/// The gradients of a convolution that torch gives in one call, by NodeId: the earlier one says which the later one is. What lies between needs none
/// of the first for the second. With the GIL.
using Pairs = std::unordered_map<std::uint32_t, ir::NodeId>;

/// Whether the last of some nodes in a row needs what the first computes.
bool comes_of_first(const ir::Graph& graph, std::span<const ir::NodeId> nodes) {
  std::vector<bool> after(graph.value_capacity());  // values that come of the first node
  const auto comes = [&](ir::NodeId id) { return id == nodes.front() || std::ranges::any_of(graph.node(id).operands, [&](ir::ValueId v) { return after[v.value]; }); };
  for (const ir::NodeId id : nodes)
    if (comes(id))
      for (const ir::ValueId r : graph.node(id).results) after[r.value] = true;
  return comes(nodes.back());
}

Pairs pairs_of_gradients(const ir::Graph& graph, std::span<const ir::NodeId> nodes) {
  std::vector<ir::NodeId> gradients;
  for (const ir::NodeId id : nodes)
    if (graph.node(id).op == "conv_input_sum" || graph.node(id).op == "conv_weight_sum") gradients.push_back(id);
  Pairs pairs;
  const auto place = [&](ir::NodeId id) { return std::ranges::find(graph.nodes(), id) - graph.nodes().begin(); };
  while (!gradients.empty()) {
    const ir::NodeId first = gradients.front();
    const auto goes_with = [&](ir::NodeId other) {
      if (!TorchNode::of_both(graph, first, other) && !TorchNode::of_both(graph, other, first)) return false;
      return !comes_of_first(graph, std::span(graph.nodes()).subspan(static_cast<std::size_t>(place(first)), static_cast<std::size_t>(place(other) - place(first) + 1)));
    };
    gradients.erase(gradients.begin());
    const auto found = std::ranges::find_if(gradients, goes_with);
    if (found == gradients.end()) continue;
    pairs.emplace(first.value, *found);
    gradients.erase(found);
  }
  return pairs;
}

/// Work is given to torch's current stream, which is the one that the plan runs on.
class TorchArtefact final : public PythonArtefact {
 public:
  explicit TorchArtefact(const GraphView& buffer) : graph_(ir::read_buffer(buffer.bytes()).value()) {
    const GilHeld gil;
    const Pairs pairs = pairs_of_gradients(graph_, graph_.nodes());
    for (const ir::NodeId id : graph_.nodes()) {
      const ir::Node& node = graph_.node(id);
      if (node.op == "constant" || pairs.contains(id.value)) continue;
      if (const auto pair = std::ranges::find(pairs, id, &Pairs::value_type::second); pair != pairs.end()) {
        add_both(ir::NodeId(pair->first), id);
        continue;
      }
      auto found = TorchNode::of(graph_, id);
      if (!found) throw Failure(TENON_UNSUPPORTED, "torch has no function for a node of the group");
      calls_.push_back({node.operands, node.results, std::move(*found)});
    }
  }
  ~TorchArtefact() override { drop(calls_); }

 private:
  struct Call {
    std::vector<ir::ValueId> operands, results;
    TorchNode node;
  };

  void add_both(ir::NodeId a, ir::NodeId b) {
    if (graph_.node(a).op != "conv_input_sum") std::swap(a, b);
    const ir::Node &x = graph_.node(a), &w = graph_.node(b);
    calls_.push_back({{x.operands[0], w.operands[0], w.operands[1]}, {x.results[0], w.results[0]}, *TorchNode::of_both(graph_, a, b)});
  }

  Ref input(std::size_t i, const TenonExecuteArgs& args, std::span<const std::int64_t> symbols) const {
    const ir::Type& type = graph_.type(graph_.inputs()[i]);
    const Extents shape = evaluated(type.shape, symbols);
    const Extents strides = type.strides ? evaluated(*type.strides, symbols) : row_major(shape);
    return tensor_over(TensorKind::torch, type.device, type.dtype, shape, strides, const_cast<void*>(args.inputs[i]), false);
  }

  static Extents evaluated(const ir::Shape& dims, std::span<const std::int64_t> symbols) {
    Extents values;
    for (const ir::Dim& dim : dims) values.push_back(dim.evaluate(symbols));
    return values;
  }

  /// Whether the function has written the one output where the plan has it; else what it gives is copied there.
  bool wrote_output(const Call& call, std::span<const Ref> operands, const TenonExecuteArgs& args, std::span<const std::int64_t> symbols) const {
    if (graph_.outputs().size() != 1) return false;  // none: the function checks its arguments, and nobody reads what it gives
    const ir::ValueId value = graph_.outputs()[0].value;
    if (call.results.size() != 1 || call.results[0] != value) return false;
    const ir::Type& type = graph_.type(value);
    const Extents shape = evaluated(type.shape, symbols);
    if (!args.outputs[0] || type.device.is_host() || std::ranges::any_of(shape, [](std::int64_t size) { return size <= 0; })) return false;
    return call.node.run_into(operands, symbols, tensor_over(TensorKind::torch, type.device, type.dtype, shape, row_major(shape), args.outputs[0], true).get());
  }

  std::string name() const override { return "torch"; }
  bool gives_outputs() const override { return true; }

  /// Whose the memory of a value is: views of operands are results of functions, too.
  ResultMemory memory_of(ir::ValueId value, std::span<const Ref> values) const {
    const void* storage = storage_of(values[value.value].get());
    const auto has_it = [&](ir::ValueId other) { return values[other.value] && storage_of(values[other.value].get()) == storage; };
    if (!storage || std::ranges::any_of(graph_.inputs(), has_it)) return ResultMemory::borrowed;
    return std::ranges::count_if(graph_.outputs(), has_it, &ir::Output::value) > 1 ? ResultMemory::shared : ResultMemory::its_own;
  }

  void run(const TenonExecuteArgs& args) override {
    const WithoutAutocast as_the_graph_says(torch_state().value_or(TorchState{}));  // a backward may be asked for under autocast
    const std::span symbols(args.symbols, graph_.symbols().size());
    std::vector<Ref> values(graph_.value_capacity());
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      if (graph_.type(graph_.inputs()[i]).is_tensor()) values[graph_.inputs()[i].value] = input(i, args, symbols);
    for (const Call& call : calls_) {
      std::vector<Ref> operands;
      for (const ir::ValueId v : call.operands) operands.push_back(values[v.value]);
      if (&call == &calls_.back() && wrote_output(call, operands, args, symbols)) return;
      std::vector<Ref> made = call.node.run(operands, symbols);
      if (made.size() != call.results.size())
        throw Failure(TENON_PLUGIN_FAILED, fmt::format("{} gave {} results instead of {}", call.node.function(), made.size(), call.results.size()));
      for (std::size_t i = 0; i < made.size(); ++i) values[call.results[i].value] = std::move(made[i]);
    }
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      const ir::ValueId value = graph_.outputs()[k].value;
      const ir::Type& type = graph_.type(value);
      if (type.is_tensor()) give_output(args, static_cast<std::uint32_t>(k), values[value.value], memory_of(value, values), type.dtype, type.device, evaluated(type.shape, symbols));
    }
  }

  ir::Graph graph_;
  std::vector<Call> calls_;
};

/// Those that torch's functions compute; a view that only the next of them reads goes with it, and needs no memory of its own. So do the two gradients
/// of a convolution.
void claim_with_views(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes, Claims& claims) {
  const auto users = graph.users();
  std::vector<std::vector<std::uint32_t>> groups(graph.node_capacity());  // by NodeId of the last
  const std::vector<bool> is_output = ir::output_values(graph);
  for (const ir::NodeId id : nodes) groups[id.value].push_back(id.value);
  const GilHeld gil;
  const Pairs pairs = pairs_of_gradients(graph, nodes);
  for (const ir::NodeId id : nodes) {
    if (const auto pair = pairs.find(id.value); pair != pairs.end()) {
      auto& both = groups[pair->second.value];
      both.insert(both.begin(), groups[id.value].begin(), groups[id.value].end());
      continue;
    }
    const ir::ValueId v = graph.node(id).results[0];
    const bool goes_on = !is_output[v.value] && users[v.value].size() == 1 && !groups[users[v.value][0].value].empty() && ops::is_view(graph, id);
    if (!goes_on) {
      claims.claim(groups[id.value]);
      continue;
    }
    auto& next = groups[users[v.value][0].value];
    next.insert(next.begin(), groups[id.value].begin(), groups[id.value].end());
  }
}

}  // namespace

void claim_torch_nodes(const GraphView& buffer, Claims& claims) {
  constexpr const char* kOfHost = "of the host's nodes it runs opaque calls only";
  if (is_of_host(buffer)) {
    for (NodeView node : buffer.nodes())
      if (node.op() != "opaque") claims.refuse(node.id(), "op", kOfHost);
    return;
  }
  const ir::Graph graph = ir::read_buffer(buffer.bytes()).value();
  std::vector<ir::NodeId> taken;
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op == "opaque" || node.op == "constant") continue;
    if (!is_on_device(graph, node)) {
      claims.refuse(id.value, "op", kOfHost);
      continue;
    }
    const GilHeld gil;
    if (TorchNode::of(graph, id)) taken.push_back(id);
    else claims.refuse(id.value, "op", "its op's entry names no function of torch that does just this");
  }
  claim_with_views(graph, taken, claims);
}

std::unique_ptr<Artefact> make_torch_artefact(const GraphView& graph) { return std::make_unique<TorchArtefact>(graph); }

}  // namespace tenon::python
