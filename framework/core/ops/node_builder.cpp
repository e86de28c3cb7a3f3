#include "core/ops/node_builder.h"

#include "core/ops/catalog.h"

namespace tenon::ops {

std::vector<ir::ValueId> NodeBuilder::call(std::string_view name, std::vector<ir::ValueId> operands, ir::Attributes attributes) {
  const Op* op = find_op(name);
  if (!op) throw Exception(error(Code::not_found, "unknown op '{}'", name));
  auto types = op->infer(OpQuery(graph_, operands, attributes));
  if (!types) throw Exception(error(types.error().code, "{}: {}", name, types.error().message));
  const ir::NodeId node =
      graph_.add_node(std::string(name), std::move(operands), std::move(attributes), std::move(*types), location_, {}, before_);
  return graph_.node(node).results;
}

ir::ValueId NodeBuilder::one(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes) {
  const auto results = call(op, std::move(operands), std::move(attributes));
  TENON_CHECK(results.size() == 1, "{} has {} results, not one", op, results.size());
  return results[0];
}

ir::ValueId NodeBuilder::cast(ir::ValueId value, DType dtype) {
  if (graph_.type(value).dtype == dtype) return value;
  return one("_to_copy", {value}, {{"dtype", dtype}});
}

}  // namespace tenon::ops
