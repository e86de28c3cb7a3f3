#include "core/ops/notation/window.h"

#include "core/ops/notation/move.h"

namespace tenon::ops {

using ir::Dim;
using ir::Shape;

namespace {

/// Products of two such numbers, and sums of a few of those, fit into 64 bits.
constexpr std::int64_t kFarthest = (std::int64_t{1} << 30) - 1;

}  // namespace

Dim padding_after(const Dim& in, const Dim& out, const Dim& kernel, const Dim& stride, const Dim& dilation, const Dim& before) {
  return (out - Dim(1)) * stride + dilation * (kernel - Dim(1)) + Dim(1) - in - before;
}

Dim window_count(const ir::Graph& graph, const WindowDim& w, bool ceil_mode) {
  const Dim reach = w.in + Dim(w.before) + Dim(w.after) - Dim(w.dilation) * (Dim(w.kernel) - Dim(1)) - Dim(1);
  if (!ceil_mode) return floor_div(reach, Dim(w.stride)) + Dim(1);
  const Dim count = floor_div(reach + Dim(w.stride - 1), Dim(w.stride)) + Dim(1);
  const infer::Interval beyond = infer::range(graph, (count - Dim(1)) * Dim(w.stride) - w.in - Dim(w.before));
  if (beyond.least >= 0) return count - Dim(1);
  if (beyond.most < 0) return count;
  throw Exception(Code::unsupported, "ceil_mode with a size that is not known");
}

std::vector<Dim> dims_of(const std::vector<std::int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

ir::Attributes window_attributes(const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
                                 const std::vector<std::int64_t>& dilation, std::int64_t groups) {
  return {{"after", dims_of(after)}, {"before", dims_of(before)}, {"dilation", dims_of(dilation)}, {"groups", Dim(groups)}, {"stride", dims_of(stride)}};
}

std::vector<std::int64_t> per_dim(const OpQuery& q, std::string_view name, std::size_t rank, std::int64_t otherwise) {
  std::vector<std::int64_t> all;
  if (q.find(name))
    for (const Dim& d : q.integers(name)) {
      TENON_USER_CHECK(d.is_constant(), "attribute '{}' must be constant", name);
      all.push_back(d.constant());
    }
  if (all.empty()) all.push_back(otherwise);
  if (all.size() == 1) all.resize(rank, all[0]);
  TENON_USER_CHECK(all.size() == rank, "attribute '{}' has {} numbers for {} spatial dimensions", name, all.size(), rank);
  for (std::int64_t n : all) TENON_USER_CHECK(n >= -kFarthest && n <= kFarthest, "attribute '{}' is {}; windows reach {} elements at most", name, n, kFarthest);
  return all;
}

std::int64_t kernel_size(const Dim& size) {
  if (!size.is_constant()) throw Exception(Code::unsupported, "a convolution with a kernel of unknown size");
  TENON_USER_CHECK(size.constant() <= kFarthest, "a kernel of {} elements; windows reach {} elements at most", size.constant(), kFarthest);
  return size.constant();
}

std::vector<Dim> per_dim(ForeignArguments& a, std::string_view name, std::size_t rank, const std::vector<Dim>& otherwise) {
  std::vector<Dim> all = a.given(name) ? a.integers(name) : otherwise;
  if (all.size() == 1) all.resize(rank, all[0]);
  TENON_USER_CHECK(all.size() == rank, "expected {} to be a single integer value or a list of {} values, but got {} of them", name, rank,
                   all.size());
  return all;
}

WindowPlace window_place(Scalars& s, const WindowDim& w, Scalar o, Scalar k) {
  IndexMath m(s);
  const Scalar first = m.mul(o, Dim(w.stride));
  const Scalar step = w.kernel == 1 ? m.of(0) : m.mul(k, Dim(w.dilation));
  const Scalar index = m.add(w.kernel == 1 ? first : s.add(first, step), Dim(-w.before));
  WindowPlace place{index, {}};
  if (w.before > 0) place.inside = s.ge(index, m.of(0));
  if (w.after > 0) place.inside = both(s, place.inside, s.lt(index, m.of(w.in)));
  return place;
}

std::optional<Scalar> both(Scalars& s, std::optional<Scalar> a, std::optional<Scalar> b) {
  if (a && b) return s.logical_and(*a, *b);
  return a ? a : b;
}

Scalar load_or_zero(Scalars& s, std::optional<Scalar> inside, DType stored, const std::vector<Scalar>& index) {
  return inside ? s.load_if(*inside, 0, stored, index, s.constant(compute_type(stored), std::int64_t{0})) : s.load(0, stored, index);
}

Batched with_batch(ForeignArguments& a, ir::ValueId x, std::size_t rank) {
  Shape shape = a.type(x).shape;
  if (shape.size() != rank) return {x, false};
  shape.insert(shape.begin(), Dim(1));
  return {reshape_to(a.builder(), x, std::move(shape)), true};
}

ir::ValueId without_batch(ForeignArguments& a, ir::ValueId x, bool added) {
  if (!added) return x;
  Shape shape = a.type(x).shape;
  shape.erase(shape.begin());
  return reshape_to(a.builder(), x, std::move(shape));
}

}  // namespace tenon::ops
