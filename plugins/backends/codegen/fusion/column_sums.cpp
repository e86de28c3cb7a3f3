// Sums over the rows of a product, taken as the product comes: the statistics of what a convolution gives, and what the gradient of a normalisation sums up.
#include <algorithm>

#include "fusion/parallel_reduction.h"
#include "fusion/planner.h"
#include "loops/merging.h"

namespace tenon::codegen {
namespace {

/// The loads that the elements of a kernel's reductions need.
std::vector<const Operation*> loads_of_reductions(const Kernel& kernel) {
  std::vector<OpId> elements;
  for (const Reduction& r : kernel.reductions) elements.insert(elements.end(), r.elements.begin(), r.elements.end());
  std::vector<const Operation*> loads;
  for (const OpId id : all_needs_of(kernel.operations, std::move(elements)))
    if (kernel.operations[id].kind == OperationKind::load) loads.push_back(&kernel.operations[id]);
  return loads;
}

/// Whether the result of a reduction of zeros, or of nothing, is what it begins with: a sum.
bool is_sum(const Reduction& reduction) {
  const auto is_addition = [](const ops::Instruction& i) { return i.op == ops::Primitive::parameter || i.op == ops::Primitive::add; };
  const auto is_zero = [](const ops::Instruction& i) { return i.op == ops::Primitive::constant && i.payload == 0; };
  return std::ranges::all_of(reduction.reducer.combine.instructions, is_addition) && std::ranges::all_of(reduction.reducer.init.instructions, is_zero);
}

/// A kernel of sums over one inner loop, for each point of one outer one.
bool sums_rows(const Kernel& kernel, std::int64_t rows, std::int64_t columns) {
  return kernel.outer.size() == 1 && kernel.outer[0].extent == Dim(columns) && kernel.inner.size() == 1 && kernel.inner[0].extent == Dim(rows) && std::ranges::all_of(kernel.reductions, is_sum);
}

/// Whether the kernel loads element (row, column) of a dense matrix at that point of its loops.
bool reads_matrix(const Kernel& kernel, const Dim& place, std::int64_t columns) {
  return place == Dim::symbol(kernel.inner[0].variable) * Dim(columns) + Dim::symbol(kernel.outer[0].variable);
}

}  // namespace

/// Whether sums over the rows of what the step gives may be taken as it comes. `taken`: steps that are part of others.
bool Planner::gives_rows(std::size_t step, const std::vector<bool>& taken) const {
  if (taken[step] || !steps_[step].product) return false;
  const Product& product = *steps_[step].product;
  return product.batch.empty() && !product.b.windows && product.row_count().is_constant() && product.column_count().is_constant();
}

/// How many parts the sums of a step over the rows that a product gives come in; 0 where what else they read is not there when that runs.
std::int64_t Planner::parts_of_sums(std::size_t step, std::size_t product, const KernelStep& sums, std::span<const std::size_t> place) const {
  const Product& rows = *steps_[product].product;
  const std::int64_t columns = rows.column_count().constant();
  ResultRows result{rows.row_count().constant(), columns, rows.dtype};
  if (rows.picture && rows.picture->height.is_constant() && rows.picture->width.is_constant()) result.picture_height = rows.picture->height.constant(), result.picture_width = rows.picture->width.constant();
  const std::int64_t parts = machine_.parts_of_rows(result);
  if (parts == 0 || place[product] > place[step] || !sums_rows(sums.kernel, result.rows, columns)) return 0;
  for (const Operation* load : loads_of_reductions(sums.kernel)) {
    const ValueId value = sums.buffers[load->payload];
    if (value.value >= step_of_.size()) return 0;
    for (const std::size_t writer : writers_of(value)) {
      const bool comes = writer == product && lies_as_product(product, value) && reads_matrix(sums.kernel, load->offset, columns);
      if (!comes && place[writer] >= place[product]) return 0;
    }
  }
  return parts;
}

/// Takes sums over rows of products out of the steps that compute them, where these can be taken as the products come.
void Planner::sum_columns(Plan& plan, const std::vector<bool>& taken, const std::vector<bool>& stored) {
  column_sums_.resize(steps_.size()), combined_.resize(steps_.size());
  if (!options_.fuse) return;
  std::vector<std::size_t> place(steps_.size(), 0);
  for (std::size_t i = 0; i < order_.size(); ++i) place[order_[i]] = i;
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (taken[s] || !steps_[s].draft || steps_[s].product || steps_[s].draft->outer().size() != 1 || steps_[s].draft->inner().empty()) continue;
    for (const ValueId value : steps_[s].draft->buffers()) {
      const std::size_t product = value.value < step_of_.size() ? step_of_[value.value] : kNoStep;
      if (product == kNoStep || product == s || column_sums_[product] || !gives_rows(product, taken) || !lies_as_product(product, value)) continue;
      Draft draft = *steps_[s].draft;
      KernelStep sums = finish(draft, stored);
      if (sums.kernel.scatter || !only_independent_reductions(sums.kernel)) break;
      merge_contiguous(sums.kernel, sums.kernel.inner, algebra_);
      const std::int64_t parts = parts_of_sums(s, product, sums, place);
      if (parts == 0) continue;
      PartialSums cut = in_parts(std::move(sums), parts, algebra_, plan, graph_);
      log(fmt::format("sums over what {} gives are taken as it comes", name_of_node(steps_[product].product->node)));
      column_sums_[product] = {std::move(cut.parts), cut.part.variable};
      combined_[s] = std::move(cut.whole);
      break;
    }
  }
}

}  // namespace tenon::codegen
