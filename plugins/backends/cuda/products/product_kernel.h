// A kernel over all loops of a product, with what follows it at each point of the result.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fusion/plan.h"

namespace tenon::cuda {

class ProductKernel {
 public:
  /// What stands for variables of other loops.
  using Places = std::vector<std::pair<ir::SymbolId, codegen::Dim>>;
  /// Nothing where the operation is joined as it is; what is given belongs to this kernel already.
  using Instead = std::function<std::optional<codegen::Operation>(const codegen::Operation&)>;

  /// `algebra` outlives it.
  ProductKernel(const codegen::ContractionStep& step, const ir::Graph& graph, const codegen::IndexAlgebra& algebra);

  codegen::KernelStep& step() { return made_; }
  codegen::KernelStep take() { return std::move(made_); }
  codegen::OpId add(codegen::Operation op);
  /// Adds a sum of products over inner loops: gives its number.
  std::uint32_t add_sum(codegen::OpId a, codegen::OpId b, DType dtype);
  /// Adds operations over other loops, whose loads number `values`: gives the number of the first one.
  codegen::OpId join(std::span<const codegen::Operation> operations, std::span<const ir::ValueId> values, const Places& places, const Instead& instead);

 private:
  codegen::Kernel& kernel() { return made_.kernel; }
  std::uint32_t buffer(ir::ValueId value);
  void sum_up(const codegen::Product& product);
  void store(const codegen::Product& product);
  void follow(const codegen::Product& product, const codegen::KernelStep& after);
  codegen::Dim placed(codegen::Dim place, const Places& places, std::size_t first) const;

  const ir::Graph& graph_;
  const codegen::IndexAlgebra& algebra_;
  codegen::KernelStep made_;
  codegen::OpId sum_ = codegen::kNoOp;
};

}  // namespace tenon::cuda
