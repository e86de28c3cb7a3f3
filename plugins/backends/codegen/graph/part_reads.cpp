#include "graph/part_reads.h"

#include <algorithm>

#include "core/ops/catalog.h"
#include "loops/index_algebra.h"

namespace tenon::codegen {
namespace {

using Part = std::vector<ops::ShownDim>;

/// What a node writes of its first operand, or what one of an op without `_scatter` shows of it.
Part part_of(const ir::Graph& graph, const ir::Node& node, const std::string& written_by) {
  const ops::Op* op = ops::find_op(written_by);
  return op && op->written_part ? op->written_part(ops::OpQuery(graph, node.operands, node.attributes)) : Part();
}

class PartReads {
 public:
  PartReads(ir::Graph& graph, const Machine& machine) : graph_(graph), machine_(machine), algebra_(graph.symbols()) {}

  void forward() {
    std::vector<NodeId> done;
    for (NodeId id : std::vector<NodeId>(graph_.nodes().begin(), graph_.nodes().end()))
      if (const auto written = forwarded(id)) {
        graph_.replace_uses(graph_.node(id).results[0], *written);
        done.push_back(id);
      }
    graph_.erase_nodes(done);
  }

 private:
  /// What was written where the node reads; where that lies apart from what was written, the node reads what was there before.
  std::optional<ValueId> forwarded(NodeId id) {
    if (graph_.node(id).operands.empty()) return {};
    const Part shown = part_of(graph_, graph_.node(id), std::string(graph_.node(id).op) + "_scatter");
    if (shown.empty()) return {};
    const ir::Type type = graph_.type(graph_.node(id).results[0]);
    for (;;) {
      const ir::Value& whole = graph_.value(graph_.node(id).operands[0]);
      if (whole.kind != ir::ValueKind::result) return {};
      const ir::Node& write = graph_.node(whole.node);
      const Part written = part_of(graph_, write, std::string(write.op));
      if (written.empty() || graph_.value(write.operands[1]).kind == ir::ValueKind::literal) return {};
      const ir::Type& source = graph_.type(write.operands[1]);
      if (!machine_.worth_writing_part(elements(graph_.type(write.operands[0])), elements(source))) return {};
      if (same(shown, written)) return source.shape == type.shape && source.dtype == type.dtype ? std::optional(write.operands[1]) : std::nullopt;
      if (!apart(shown, type.shape, written, source.shape)) return {};
      graph_.mutable_node(id).operands[0] = write.operands[0];
    }
  }

  double elements(const ir::Type& type) const { return algebra_.estimate(type.element_count()); }

  static bool same(const Part& a, const Part& b) {
    return std::ranges::equal(a, b, [](const ops::ShownDim& x, const ops::ShownDim& y) { return x.start == y.start && x.step == y.step && x.kept == y.kept; });
  }

  /// Whether along some dimension one part ends before the other begins.
  bool apart(const Part& a, const ir::Shape& of_a, const Part& b, const ir::Shape& of_b) const {
    std::size_t at_a = 0, at_b = 0;
    for (std::size_t d = 0; d < a.size(); ++d) {
      const Dim last_a = last(a[d], of_a, at_a), last_b = last(b[d], of_b, at_b);
      if (algebra_.always_less(last_a, b[d].start) || algebra_.always_less(last_b, a[d].start)) return true;
    }
    return false;
  }

  static Dim last(const ops::ShownDim& dim, const ir::Shape& shape, std::size_t& at) {
    return dim.kept ? dim.start + (shape[at++] - Dim(1)) * Dim(dim.step) : dim.start;
  }

  ir::Graph& graph_;
  const Machine& machine_;
  IndexAlgebra algebra_;
};

}  // namespace

void forward_written_parts(ir::Graph& graph, const Machine& machine) { PartReads(graph, machine).forward(); }

}  // namespace tenon::codegen
