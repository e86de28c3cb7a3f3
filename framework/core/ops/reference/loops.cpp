#include "core/ops/reference/loops.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/ops/reference/program.h"
#include "core/ops/reference/scalar_kernels.h"

namespace tenon::ops::reference {
namespace {

constexpr std::size_t kLanes = 512;
/// From this many result elements on, lanes run over results; below it they run over the elements of one reduction.
constexpr std::int64_t kManyResults = 32;

std::vector<std::int64_t> evaluate_all(std::span<const ir::Dim> dims, std::span<const std::int64_t> symbols) {
  std::vector<std::int64_t> values;
  for (const ir::Dim& d : dims) values.push_back(d.evaluate(symbols));
  return values;
}

std::int64_t count(std::span<const std::int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

/// Walks the points of some loops in row-major order and writes their indices to the lanes of a program.
class Walk {
 public:
  explicit Walk(std::span<const std::int64_t> extents, std::size_t first_loop)
      : extents_(extents), first_(first_loop), at_(extents.size()) {}

  /// Writes the indices of the next `n` points to lanes 0 to n - 1 and goes on.
  void next(const Program& program, std::size_t n) {
    for (std::size_t lane = 0; lane < n; ++lane, advance())
      for (std::size_t d = 0; d < at_.size(); ++d)
        if (std::int64_t* index = program.loop_index(first_ + d)) index[lane] = at_[d];
  }

  /// Writes the current point's indices to all of the first `n` lanes and goes on by one point.
  void broadcast_next(const Program& program, std::size_t n) {
    for (std::size_t d = 0; d < at_.size(); ++d)
      if (std::int64_t* index = program.loop_index(first_ + d)) std::fill_n(index, n, at_[d]);
    advance();
  }

  /// The offsets of the next `n` points in a tensor with these strides.
  void offsets(std::span<const std::int64_t> strides, std::int64_t* out, std::size_t n) {
    for (std::size_t lane = 0; lane < n; ++lane, advance())
      out[lane] = std::inner_product(at_.begin(), at_.end(), strides.begin(), std::int64_t{0});
  }

 private:
  void advance() {
    for (std::size_t d = at_.size(); d-- > 0;) {
      if (++at_[d] < extents_[d]) return;
      at_[d] = 0;
    }
  }

  std::span<const std::int64_t> extents_;
  std::size_t first_;
  std::vector<std::int64_t> at_;
};

/// Writes consecutive results of a program to the outputs.
class Store {
 public:
  Store(std::span<TensorView> outputs, std::span<const std::int64_t> extents) : outputs_(outputs), offsets_(kLanes) {
    for (const TensorView& o : outputs) {
      TENON_CHECK(std::ranges::equal(o.shape, extents), "output of rank {} for {} loops, or of other sizes", o.shape.size(),
                  extents.size());
      walks_.emplace_back(extents, 0);
    }
  }

  void next(const Program& program, std::size_t n) {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      TensorView& out = outputs_[k];
      walks_[k].offsets(out.strides, offsets_.data(), n);
      scatter(program.result_dtype(k), program.result(k), out.dtype, out.data, offsets_.data(), n);
    }
  }

 private:
  std::span<TensorView> outputs_;
  std::vector<Walk> walks_;
  std::vector<std::int64_t> offsets_;
};

void run_pointwise(const LoopBody& body, const NodeRun& run, std::span<const std::int64_t> extents) {
  Program element(run.precision == Precision::judge ? widened(body.element) : body.element, run.inputs, run.symbols, kLanes);
  Walk walk(extents, 0);
  Store store(run.outputs, extents);
  const std::int64_t total = count(extents);
  for (std::int64_t at = 0; at < total; at += kLanes) {
    const auto n = static_cast<std::size_t>(std::min<std::int64_t>(kLanes, total - at));
    walk.next(element, n);
    element.run(n);
    store.next(element, n);
  }
}

/// The programs of a reduction. Floats are reduced in float64, so that the order of the additions does not show in the result.
struct Reduction {
  Program element, init, combine, finish;
  std::size_t width;  // accumulators

  Reduction(const LoopBody& body, const NodeRun& run)
      : element(widened(body.element), run.inputs, run.symbols, kLanes),
        init(widened(body.reducer->init), run.inputs, run.symbols, kLanes),
        combine(widened(body.reducer->combine), run.inputs, run.symbols, kLanes),
        finish(widened(body.reducer->finish), run.inputs, run.symbols, kLanes),
        width(body.reducer->accumulators.size()) {
    init.run(kLanes);
  }

  std::size_t bytes(std::size_t k) const { return size_of(init.result_dtype(k)); }

  /// accumulators(to) = combine(a, b) for the first n lanes; `to` may be `a`.
  void merge(std::span<std::byte* const> to, std::span<const std::byte* const> a, std::span<const std::byte* const> b, std::size_t n) {
    for (std::size_t k = 0; k < width; ++k) {
      if (void* p = combine.parameter(k)) std::memcpy(p, a[k], n * bytes(k));
      if (void* p = combine.parameter(width + k)) std::memcpy(p, b[k], n * bytes(k));
    }
    combine.run(n);
    for (std::size_t k = 0; k < width; ++k) std::memcpy(to[k], combine.result(k), n * bytes(k));
  }

  void finish_lanes(std::span<std::byte* const> accumulators, std::size_t n) {
    for (std::size_t k = 0; k < width; ++k)
      if (void* p = finish.parameter(k)) std::memcpy(p, accumulators[k], n * bytes(k));
    finish.run(n);
  }
};

/// Lanes of every accumulator.
struct Accumulators {
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> lanes;

  Accumulators(const Reduction& r) {
    for (std::size_t k = 0; k < r.width; ++k) memory.emplace_back(kLanes * kLaneBytes);
    for (auto& m : memory) lanes.push_back(m.data());
  }
  void reset(const Reduction& r, std::size_t n) {
    for (std::size_t k = 0; k < r.width; ++k) std::memcpy(lanes[k], r.init.result(k), n * r.bytes(k));
  }
  std::vector<const std::byte*> read() const { return {lanes.begin(), lanes.end()}; }
};

std::vector<const std::byte*> results_of(const Program& p) {
  std::vector<const std::byte*> all;
  for (std::size_t k = 0; k < p.result_count(); ++k) all.push_back(static_cast<const std::byte*>(p.result(k)));
  return all;
}

/// Lanes are results: every lane walks the whole reduction.
void reduce_across(Reduction& r, const NodeRun& run, std::span<const std::int64_t> outer, std::span<const std::int64_t> inner) {
  Walk results(outer, 0);
  Store store(run.outputs, outer);
  Accumulators sum(r);
  const std::int64_t total = count(outer), points = count(inner);
  for (std::int64_t at = 0; at < total; at += kLanes) {
    const auto n = static_cast<std::size_t>(std::min<std::int64_t>(kLanes, total - at));
    results.next(r.element, n);
    sum.reset(r, n);
    Walk reduced(inner, outer.size());
    for (std::int64_t p = 0; p < points; ++p) {
      reduced.broadcast_next(r.element, n);
      r.element.run(n);
      r.merge(sum.lanes, sum.read(), results_of(r.element), n);
    }
    r.finish_lanes(sum.lanes, n);
    store.next(r.finish, n);
  }
}

/// Combines neighbouring lanes until one is left, keeping their order.
void fold_lanes(Reduction& r, Accumulators& values, std::size_t n) {
  Accumulators odd(r);
  for (; n > 1; n = (n + 1) / 2) {
    for (std::size_t k = 0; k < r.width; ++k) {
      const std::size_t w = r.bytes(k);
      std::byte* even = values.lanes[k];
      for (std::size_t i = 0; i < n / 2; ++i) {
        std::memcpy(odd.lanes[k] + i * w, even + (2 * i + 1) * w, w);
        std::memmove(even + i * w, even + 2 * i * w, w);
      }
      if (n % 2) std::memmove(even + (n / 2) * w, even + (n - 1) * w, w);
    }
    r.merge(values.lanes, values.read(), odd.read(), n / 2);
  }
}

/// Lanes are elements of one reduction.
void reduce_along(Reduction& r, const NodeRun& run, std::span<const std::int64_t> outer, std::span<const std::int64_t> inner) {
  Walk results(outer, 0);
  Store store(run.outputs, outer);
  Accumulators sum(r), part(r);
  const std::int64_t total = count(outer), points = count(inner);
  for (std::int64_t at = 0; at < total; ++at) {
    results.broadcast_next(r.element, kLanes);
    sum.reset(r, 1);
    Walk reduced(inner, outer.size());
    for (std::int64_t p = 0; p < points; p += kLanes) {
      const auto n = static_cast<std::size_t>(std::min<std::int64_t>(kLanes, points - p));
      reduced.next(r.element, n);
      r.element.run(n);
      for (std::size_t k = 0; k < r.width; ++k) std::memcpy(part.lanes[k], r.element.result(k), n * r.bytes(k));
      fold_lanes(r, part, n);
      r.merge(sum.lanes, sum.read(), part.read(), 1);
    }
    r.finish_lanes(sum.lanes, 1);
    store.next(r.finish, 1);
  }
}

/// Checks a target of a scatter and gives its offset.
std::int64_t target_offset(const Program& target, const TensorView& out, std::size_t lane) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < out.shape.size(); ++d) {
    const std::int64_t index = static_cast<const std::int64_t*>(target.result(d))[lane];
    TENON_USER_CHECK(index >= 0 && index < out.shape[d], "index {} is out of bounds for dimension {} with size {}", index, d, out.shape[d]);
    offset += index * out.strides[d];
  }
  return offset;
}

}  // namespace

void run_loop(const LoopBody& body, const NodeRun& run) {
  const auto extents = evaluate_all(body.extents, run.symbols);
  if (!body.reducer) return run_pointwise(body, run, extents);
  const std::span<const std::int64_t> all(extents);
  const auto outer = all.first(body.outer()), inner = all.last(body.reduced);
  Reduction reduction(body, run);
  if (count(outer) >= kManyResults) return reduce_across(reduction, run, outer, inner);
  reduce_along(reduction, run, outer, inner);
}

void run_scatter(const ScatterBody& body, const NodeRun& run) {
  TensorView& out = run.outputs[0];
  copy_tensor(run.inputs[body.base], out);
  const bool judge = run.precision == Precision::judge;
  const auto extents = evaluate_all(body.extents, run.symbols);
  Program target(judge ? widened(body.target) : body.target, run.inputs, run.symbols, kLanes);
  Program combine(judge ? widened(body.combine) : body.combine, run.inputs, run.symbols, 1);
  const std::size_t rank = out.shape.size(), width = size_of(target.result_dtype(rank));
  Walk walk(extents, 0);
  const std::int64_t total = count(extents);
  for (std::int64_t at = 0; at < total; at += kLanes) {
    const auto n = static_cast<std::size_t>(std::min<std::int64_t>(kLanes, total - at));
    walk.next(target, n);
    target.run(n);
    for (std::size_t lane = 0; lane < n; ++lane) {
      const std::int64_t offset = target_offset(target, out, lane);
      const auto* value = static_cast<const std::byte*>(target.result(rank)) + lane * width;
      if (void* old = combine.parameter(0)) gather(out.dtype, out.data, &offset, target.result_dtype(rank), old, 1);
      if (void* p = combine.parameter(1)) std::memcpy(p, value, width);
      combine.run(1);
      scatter(combine.result_dtype(0), combine.result(0), out.dtype, out.data, &offset, 1);
    }
  }
}

void copy_tensor(const TensorView& from, TensorView& to) {
  TENON_CHECK(from.shape == to.shape, "a copy between tensors of different shapes");
  Walk source(from.shape, 0), target(to.shape, 0);
  std::vector<std::int64_t> source_offsets(kLanes), target_offsets(kLanes);
  std::vector<std::byte> lanes(kLanes * kLaneBytes);
  const DType common = from.dtype == to.dtype && !is_reduced_float(from.dtype) ? from.dtype : compute_type(to.dtype);
  const std::int64_t total = count(from.shape);
  for (std::int64_t at = 0; at < total; at += kLanes) {
    const auto n = static_cast<std::size_t>(std::min<std::int64_t>(kLanes, total - at));
    source.offsets(from.strides, source_offsets.data(), n);
    target.offsets(to.strides, target_offsets.data(), n);
    gather(from.dtype, from.data, source_offsets.data(), common, lanes.data(), n);
    scatter(common, lanes.data(), to.dtype, to.data, target_offsets.data(), n);
  }
}

}  // namespace tenon::ops::reference
