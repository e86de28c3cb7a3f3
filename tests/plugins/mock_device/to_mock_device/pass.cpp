// Moves whatever the mock device can run there, with copies behind the inputs and in front of the outputs: programs on ordinary tensors of the
// host then do their arithmetic on a device.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "tenon/pass.h"

using namespace tenon;

namespace {

constexpr ir::Device kDevice{kDLExtDev, 0};

/// What is no arithmetic of the catalogue stays on the host.
bool can_move(const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  return op && node.op != "constant" && node.regions.empty() && !op->traits.opaque && !op->traits.random && !op->traits.control && !op->traits.copies;
}

class Mover {
 public:
  explicit Mover(ir::Graph& graph) : graph_(graph) {}

  void run() {
    for (const NodeId n : std::vector<NodeId>(graph_.nodes().begin(), graph_.nodes().end())) {
      const bool moves = can_move(graph_.node(n));
      bring_operands(n, moves ? kDevice : ir::Device());
      if (moves) place_results(n);
    }
    std::vector<ir::Output> outputs(graph_.outputs().begin(), graph_.outputs().end());
    for (ir::Output& output : outputs) output.value = on(output.value, {}, {});
    graph_.set_outputs(std::move(outputs));
  }

 private:
  void bring_operands(NodeId n, ir::Device device) {
    std::vector<ValueId> operands = graph_.node(n).operands;
    for (ValueId& v : operands) v = on(v, device, n);
    graph_.mutable_node(n).operands = std::move(operands);
  }

  void place_results(NodeId n) {
    for (const ValueId r : std::vector<ValueId>(graph_.node(n).results)) {
      ir::Type type = graph_.type(r);
      if (!type.is_tensor()) continue;
      type.device = kDevice;
      graph_.set_type(r, std::move(type));
    }
    ir::Node& node = graph_.mutable_node(n);
    if (!ops::find_op(node.op)->traits.creates) return;
    std::erase_if(node.attributes, [](const ir::NamedAttribute& a) { return a.name == "device"; });
    node.attributes.push_back({"device", ir::device_text(kDevice)});
    std::ranges::sort(node.attributes, {}, [](const ir::NamedAttribute& a) { return std::string_view(a.name); });
  }

  /// The value on that device: itself, or a copy that is made once, in front of its first reader.
  ValueId on(ValueId v, ir::Device device, std::optional<NodeId> reader) {
    if (const ir::Type& type = graph_.type(v); graph_.value(v).kind == ir::ValueKind::literal || !type.is_tensor() || type.device == device) return v;
    ValueId& copy = copies_[v];
    if (!copy) copy = ops::NodeBuilder(graph_, reader).to_device(v, device);
    return copy;
  }

  ir::Graph& graph_;
  std::unordered_map<ValueId, ValueId> copies_;  // each value has one other place to be
};

void move(ir::Graph& graph, const PassContext&) { Mover(graph).run(); }

}  // namespace

TENON_PASSES("to_mock_device", TENON_PLUGIN_VERSION, {"to_mock_device", "arithmetic on the mock device", move})
