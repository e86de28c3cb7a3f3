// Which kernels run on the rows of a product's pictures while those are near: the pooling behind the first convolution of a network.
#include <algorithm>

#include "fusion/planner.h"

namespace tenon::codegen {
namespace {

/// Pictures in memory, dense, each row by row: count x height x width x channels elements.
struct Pictures {
  Dim count;
  std::int64_t height, width, channels;

  std::int64_t row_elements() const { return width * channels; }
};

std::optional<Pictures> pictures_of(const ir::Type& type, const Dim& columns) {
  if (type.shape.size() != 4 || !columns.is_constant()) return {};
  std::vector<std::pair<std::int64_t, Dim>> dims;  // stride and size
  const auto strides = type.resolved_strides();
  for (std::size_t i = 0; i < 4; ++i) {
    if (!strides[i].is_constant()) return {};
    dims.emplace_back(strides[i].constant(), type.shape[i]);
  }
  std::ranges::stable_sort(dims, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::int64_t dense = 1;
  for (std::size_t i = 4; i-- > 0;) {
    if (dims[i].first != dense || (i > 0 && (!dims[i].second.is_constant() || dims[i].second.constant() < 1))) return {};
    if (i > 0) dense *= dims[i].second.constant();
  }
  const Pictures found{dims[0].second, dims[1].second.constant(), dims[2].second.constant(), dims[3].second.constant()};
  return found.channels == columns.constant() ? std::optional(found) : std::nullopt;
}

/// The rows that the loads of a kernel read, as those of Pooling, where its first loops go over pictures and rows of results for all of them.
class Reach {
 public:
  Reach(const Kernel& kernel, const Pictures& pictures) : kernel_(kernel), pictures_(pictures) {}

  /// False where it is not known which rows the load reads.
  bool add(const Dim& place) {
    std::vector<Loop> loops = kernel_.outer;
    loops.insert(loops.end(), kernel_.inner.begin(), kernel_.inner.end());
    Dim rest = place;
    std::vector<std::int64_t> strides;
    for (const Loop& loop : loops) {
      const auto along = split_affine(rest, loop.variable);
      if (!along || !along->coefficient.is_constant()) return false;
      strides.push_back(along->coefficient.constant());
      rest = along->rest;
    }
    const std::int64_t row = pictures_.row_elements();
    const bool over_pictures = !strides.empty() && strides[0] == pictures_.height * row;
    const std::size_t rows = over_pictures ? 1 : 0;
    if (!rest.is_constant() || kernel_.outer.size() <= rows || strides[rows] <= 0 || strides[rows] % row != 0) return false;
    if (step_ && (over_pictures != over_pictures_ || strides[rows] != step_ * row)) return false;
    std::int64_t low = rest.constant(), high = low;
    for (std::size_t i = rows + 1; i < loops.size(); ++i) {
      if (!loops[i].extent.is_constant()) return false;
      (strides[i] < 0 ? low : high) += strides[i] * (loops[i].extent.constant() - 1);
    }
    const std::int64_t from = floor_div(Dim(low), Dim(row)).constant(), end = floor_div(Dim(high), Dim(row)).constant() + 1;
    first_ = step_ ? std::min(first_, from) : from, end_ = step_ ? std::max(end_, end) : end;
    step_ = strides[rows] / row, over_pictures_ = over_pictures;
    return true;
  }

  /// What the loops go over, when they begin with pictures and rows; or with the rows of all pictures, which then step as one.
  std::optional<Pooling> pooling() const {
    const std::size_t loop = over_pictures_ ? 1 : 0;
    if (step_ == 0 || loops_apart() <= loop) return {};
    Pooling found{{}, pictures_.count, kernel_.outer[loop].extent, Dim(pictures_.height), pictures_.width, step_, first_, end_ - first_};
    if (over_pictures_) return kernel_.outer[0].extent == pictures_.count && found.rows.is_constant() ? std::optional(found) : std::nullopt;
    if (pictures_.count == Dim(1)) return found;
    const Dim rows(pictures_.height / step_);
    if (pictures_.height % step_ || !(found.rows == pictures_.count * rows)) return {};
    found.pictures = Dim(1), found.height = pictures_.count * found.height;
    return found;
  }

 private:
  std::size_t loops_apart() const { return kernel_.schedule ? kernel_.schedule->loops_apart(kernel_) : kernel_.outer.size(); }

  const Kernel& kernel_;
  const Pictures& pictures_;
  bool over_pictures_ = false;
  std::int64_t step_ = 0, first_ = 0, end_ = 0;
};

/// The kernel as one over the pictures of a value. Nothing where it reads them in another way.
std::optional<Pooling> pooling_of(const KernelStep& step, ValueId value, const Pictures& pictures) {
  if (step.kernel.scatter) return {};
  Reach reach(step.kernel, pictures);
  for (const Operation& op : step.kernel.operations) {
    if (op.kind == OperationKind::checked) return {};
    if (op.kind == OperationKind::load && step.buffers[op.payload] == value && !reach.add(op.offset)) return {};
  }
  return reach.pooling();
}

}  // namespace

/// True when nothing but `until`, and what comes after it, has to wait for the step.
bool Planner::may_wait(std::size_t step, std::size_t until) const {
  for (std::size_t s = 0; s < steps_.size(); ++s)
    if (s != until && runs_after(s, step) && !runs_after(s, until)) return false;
  return true;
}

/// True when the value, which the step computes, lies row by row of the step's product: as dense as that, if it had memory.
bool Planner::lies_as_product(std::size_t step, ValueId value) const {
  const Draft& draft = *steps_[step].draft;
  const Product& product = *steps_[step].product;
  const ValueId result = graph_.node(product.node).results[0];
  const ir::Type &own = graph_.type(value), &other = graph_.type(result);
  const Lying place = context_.place_of(value);
  return product.is_result_matrix() && product.result_row_stride() == product.column_count() && own.dtype == other.dtype && own.shape == other.shape && own.resolved_strides() == other.resolved_strides() &&
         draft.member(value)->index == draft.member(result)->index && place.value == value && !place.joined && context_.place_of(result).value == result;
}

/// The product whose pictures the step reads, with the step, if they may run together.
std::optional<Planner::Pooled> Planner::pooled_at(std::size_t last, const std::vector<std::size_t>& reads, const std::vector<bool>& stored) {
  if (!options_.fuse || !steps_[last].draft || steps_[last].product) return {};
  Draft draft = *steps_[last].draft;
  for (ValueId value : steps_[last].draft->buffers()) {
    const std::size_t first = draft.member(value) || value.value >= step_of_.size() ? kNoStep : step_of_[value.value];
    if (first == kNoStep || !steps_[first].product || !gives_once(*steps_[first].draft, value, reads)) continue;
    const Product& product = *steps_[first].product;
    const auto pictures = pictures_of(graph_.type(value), product.column_count());
    if (!product.a.windows || product.picture || !product.batch.empty() || !pictures || !lies_as_product(first, value) || !may_wait(first, last)) continue;
    const double elements = algebra_.estimate(graph_.type(value).element_count());
    KernelStep kernel = finish(draft, stored);
    if (kernel.kernel.stages.empty()) return {};
    shape(kernel);
    auto pooling = pooling_of(kernel, value, *pictures);
    if (!pooling || !machine_.worth_pooling(elements, pictures->row_elements(), pooling->window)) {
      log(fmt::format("{} is not pooled as it comes", name_of_node(product.node)));
      return {};
    }
    PendingStep copy{std::make_unique<Draft>(*steps_[first].draft), {}, steps_[first].product, {}, false, false};
    Pooled found{product_of(copy, stored), first, value};
    pooling->kernel = std::move(kernel);
    for (KernelStep* reader : {&pooling->kernel, found.step.epilogue ? &*found.step.epilogue : nullptr})
      if (reader) std::ranges::replace(reader->buffers, value, kBlock);
    log(fmt::format("{} is pooled as it comes", name_of_node(product.node)));
    found.step.pooling = std::move(pooling);
    return found;
  }
  return {};
}

}  // namespace tenon::codegen
