#include "drafts/product.h"

#include <algorithm>

namespace tenon::codegen {

Dim count_of(std::span<const Loop> loops) {
  Dim count(1);
  for (const Loop& l : loops) count = count * l.extent;
  return count;
}

std::vector<Loop> loops_of(std::span<const Role> roles) {
  std::vector<Loop> loops;
  for (const Role& r : roles) loops.push_back(r.loop);
  return loops;
}

std::size_t stepping_as_one(std::span<const Loop> loops, std::span<const Dim> strides) {
  std::size_t count = loops.empty() ? 0 : 1;
  while (count < loops.size()) {
    const std::size_t i = loops.size() - 1 - count;
    if (!(strides[i] == strides[i + 1] * loops[i + 1].extent)) break;
    ++count;
  }
  return count;
}

Dim Product::row_count() const { return count_of(loops_of(rows)); }

Dim Product::column_count() const { return count_of(loops_of(columns)); }

Dim Product::depth() const { return count_of(summed); }

bool Product::is_result_matrix() const {
  const auto steps_as_one = [](std::span<const Role> roles) {
    std::vector<Dim> strides;
    for (const Role& r : roles) strides.push_back(r.c);
    return stepping_as_one(loops_of(roles), strides) == roles.size();
  };
  return steps_as_one(rows) && steps_as_one(columns) && (columns.empty() || columns.back().c == Dim(1));
}

std::vector<ir::ValueId> Product::reads(const ProductOperand& operand) const {
  std::vector<ir::ValueId> values;
  for (const OpId id : all_needs_of(operations, {operand.element})) {
    const Operation& op = operations[id];
    if (op.kind == OperationKind::load && std::ranges::find(values, buffers[op.payload]) == values.end()) values.push_back(buffers[op.payload]);
  }
  return values;
}

}  // namespace tenon::codegen
