// What the gradient of an op is written with: the node's operands and results, the gradients of its results, and nodes from nodes.
#pragma once

#include <functional>

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

/// Of one node. Gradients have the shape and dtype of what they belong to.
class GradBuilder {
 public:
  using Values = std::vector<ir::ValueId>;

  /// `gradients`: of the results; an id that refers to nothing where nothing depends on a result.
  GradBuilder(NodeBuilder& nodes, const OpQuery& query, std::span<const ir::ValueId> results, std::span<const ir::ValueId> gradients)
      : nodes_(nodes), query_(query), operands_(query.operands().begin(), query.operands().end()), results_(results.begin(), results.end()),
        gradients_(gradients.begin(), gradients.end()) {}

  NodeBuilder& nodes() { return nodes_; }
  const OpQuery& query() const { return query_; }
  ir::ValueId operand(std::size_t k = 0) const { return operands_[k]; }
  std::size_t operand_count() const { return operands_.size(); }
  ir::ValueId result(std::size_t k = 0) const { return results_[k]; }
  std::size_t result_count() const { return results_.size(); }
  /// The gradient of a result; zeros where nothing depends on it.
  ir::ValueId gradient(std::size_t k = 0);

  ir::Type type(ir::ValueId v) const { return nodes_.graph().type(v); }
  const ir::Shape& shape(ir::ValueId v) const { return nodes_.graph().type(v).shape; }
  ir::ValueId number(double value) { return nodes_.literal(value); }
  /// A tensor of zeros like another value.
  ir::ValueId zeros(ir::ValueId like);
  /// 0, 1, 2, … along one dimension of a shape; the other dimensions have size 1.
  ir::ValueId positions(const ir::Shape& shape, std::size_t dim);
  ir::ValueId reshape(ir::ValueId v, ir::Shape shape);
  ir::ValueId one(std::string_view op, Values operands, ir::Attributes attributes = {}) { return nodes_.one(op, std::move(operands), std::move(attributes)); }
  ir::ValueId sum(ir::ValueId v, std::vector<ir::Dim> dims);  // dimensions are kept

 private:
  NodeBuilder& nodes_;
  const OpQuery& query_;
  Values operands_, results_, gradients_;
};

/// A gradient as the member `grad` of an op has it. The function gives a value an operand, or an id that refers to nothing.
std::function<std::vector<ir::ValueId>(NodeBuilder&, const OpQuery&, std::span<const ir::ValueId>, std::span<const ir::ValueId>)> written(
    GradBuilder::Values (*gradient)(GradBuilder&));

}  // namespace tenon::ops
