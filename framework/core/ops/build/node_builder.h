// Builds nodes whose result types come from the catalogue.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/op.h"

namespace tenon::ops {

/// Appends nodes to a graph (or inserts them before a given node). The location set with `at` is given to every node. Ops that create
/// tensors do so on the device set with `on` unless an attribute says otherwise: at first the device of the node that new ones go before.
class NodeBuilder {
 public:
  explicit NodeBuilder(ir::Graph& graph, std::optional<ir::NodeId> before = {});

  ir::Graph& graph() { return graph_; }
  void at(ir::SharedLocation location) { location_ = std::move(location); }
  void before(std::optional<ir::NodeId> node) { before_ = node; }
  void on(ir::Device device) { device_ = device; }
  ir::Device device() const { return device_; }

  /// Makes a node of a catalogue op. Throws (invalid_argument) with the op's own message when the operands do not fit,
  /// (not_found) for an unknown op.
  std::vector<ir::ValueId> call(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes = {});
  /// The same, for ops with one result.
  ir::ValueId one(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes = {});

  ir::ValueId literal(ir::Literal value) { return graph_.add_literal(std::move(value)); }
  /// A tensor of one value.
  ir::ValueId full(ir::Literal value, DType dtype, ir::Shape size);
  /// A tensor of the host that the graph knows: `bytes` in row-major order, of which the graph keeps a share.
  ir::ValueId constant(const ir::Type& type, std::shared_ptr<const void> bytes);
  /// A cast, or the value itself when it has that dtype or is a literal (those are weak).
  ir::ValueId cast(ir::ValueId value, DType dtype);
  /// A copy on that device, or the value itself when it is there.
  ir::ValueId to_device(ir::ValueId value, ir::Device device);
  /// Operands of a node on this builder's device, with copies of the host's scalars among them: nodes that stand for the node may give
  /// them dimensions.
  std::vector<ir::ValueId> brought_here(std::vector<ir::ValueId> operands);

 private:
  void place(const Op& op, ir::Attributes& attributes) const;

  ir::Graph& graph_;
  std::optional<ir::NodeId> before_;
  ir::SharedLocation location_;
  ir::Device device_;
};

}  // namespace tenon::ops
