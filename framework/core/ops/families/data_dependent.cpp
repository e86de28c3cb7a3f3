// Ops whose result's size, or whose failing, depends on values.
#include <algorithm>
#include <array>

#include "core/ops/lanes/lanes.h"
#include "core/ops/notation/formula.h"
#include "core/ops/reference/scalar_kernels.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// Lanes are taken along the last dimension.
std::size_t last_of(const TensorView& x) { return x.shape.empty() ? 0 : x.shape.size() - 1; }

/// Where the true elements of each lane stand in it, lane after lane in row-major order.
class Places {
 public:
  explicit Places(const TensorView& x) : x_(x) {
    each_place(x, last_of(x), [&](std::span<const std::int64_t> at) {
      add_lane(at);
      ends_.push_back(found_.size());
    });
  }
  const std::vector<std::int64_t>& found() const { return found_; }
  /// How many places were found up to the end of each lane.
  const std::vector<std::size_t>& ends() const { return ends_; }

 private:
  void add_lane(std::span<const std::int64_t> at) {
    const std::size_t last = last_of(x_);
    const std::int64_t start = lane_offset(x_, last, at, 0), stride = lane_step(x_, last), count = lane_size(x_, last);
    std::array<std::uint8_t, kChunk> truth;
    std::array<std::int64_t, kChunk> offsets;
    const auto* bytes = static_cast<const std::uint8_t*>(x_.data) + start;
    const bool direct = x_.dtype == DType::b8 && stride == 1;
    for (std::int64_t done = 0; done < count; done += kChunk) {
      const std::int64_t chunk = std::min<std::int64_t>(count - done, kChunk);
      for (std::int64_t i = 0; i < chunk; ++i) offsets[static_cast<std::size_t>(i)] = start + (done + i) * stride;
      if (!direct) reference::gather(x_.dtype, x_.data, offsets.data(), DType::b8, truth.data(), static_cast<std::size_t>(chunk));
      add_chunk(direct ? bytes + done : truth.data(), done, chunk);
    }
  }

  /// Without a branch on the data: each place is written, and kept where the element is true.
  void add_chunk(const std::uint8_t* truth, std::int64_t first, std::int64_t count) {
    std::size_t kept = found_.size();
    found_.resize(kept + static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      found_[kept] = first + i;
      kept += truth[i] != 0;
    }
    found_.resize(kept);
  }

  static constexpr std::int64_t kChunk = 512;

  const TensorView& x_;
  std::vector<std::int64_t> found_;
  std::vector<std::size_t> ends_;
};

/// The places of true elements of a dense vector, written where they go.
void places_in_vector(KernelCall& call) {
  constexpr std::int64_t kChunk = 512;
  const TensorView& x = call.inputs[0];
  const auto* truth = static_cast<const std::uint8_t*>(x.data);
  const std::int64_t size = x.shape[0];
  std::int64_t count = 0, next = 0;
  for (std::int64_t i = 0; i < size; ++i) count += truth[i] != 0;
  const TensorView out = call.outputs[0].data ? call.outputs[0] : call.allocate(0, {count, 1});
  TENON_CHECK(out.shape[0] == count, "nonzero found {} elements; its output has {} rows", count, out.shape[0]);
  for (std::int64_t first = 0; first < size; first += kChunk) {
    std::array<std::int64_t, kChunk> found;
    std::int64_t kept = 0;
    for (std::int64_t i = first; i < std::min(first + kChunk, size); ++i) {
      found[static_cast<std::size_t>(kept)] = i;
      kept += truth[i] != 0;
    }
    for (std::int64_t i = 0; i < kept; ++i) static_cast<std::int64_t*>(out.data)[(next + i) * out.strides[0]] = found[static_cast<std::size_t>(i)];
    next += kept;
  }
}

/// One row a place: its indices.
void write_places(const Places& places, const TensorView& x, const TensorView& out) {
  const std::size_t last = last_of(x);
  std::size_t lane = 0, row = 0;
  each_place(x, last, [&](std::span<const std::int64_t> at) {
    for (const std::size_t end = places.ends()[lane++]; row < end; ++row) {
      std::int64_t* indices = static_cast<std::int64_t*>(out.data) + static_cast<std::int64_t>(row) * out.strides[0];
      for (std::size_t d = 0; d < last; ++d) indices[static_cast<std::int64_t>(d) * out.strides[1]] = at[d];
      indices[static_cast<std::int64_t>(last) * out.strides[1]] = places.found()[row];
    }
  });
}

void nonzero_kernel(KernelCall& call) {
  const TensorView& x = call.inputs[0];
  if (x.dtype == DType::b8 && x.shape.size() == 1 && x.strides[0] == 1) return places_in_vector(call);
  const Places places(x);
  const auto rows = static_cast<std::int64_t>(places.found().size());
  TensorView out = call.outputs[0].data ? call.outputs[0] : call.allocate(0, {rows, static_cast<std::int64_t>(x.shape.size())});
  TENON_CHECK(out.shape[0] == rows, "nonzero found {} elements; its output has {} rows", rows, out.shape[0]);
  if (!x.shape.empty()) write_places(places, x, out);
}

/// The places, of elements that a kernel of its own has compared with 0.
ir::ValueId nonzero(ForeignArguments& a, ir::ValueId x) { return a.one("nonzero", {a.builder().cast(x, DType::b8)}); }

Values as_matrix(ForeignArguments& a) { return {nonzero(a, a.value("self"))}; }

Values masked_select(ForeignArguments& a) {
  ir::ValueId x = a.value("self"), mask = a.value("mask");
  TENON_USER_CHECK(is_bool(a.type(mask).dtype), "masked_select: expected BoolTensor for mask");
  const Shape shape = infer::broadcast(a.graph(), a.type(x).shape, a.type(mask).shape);
  x = reshape_to(a.builder(), expand_to(a.builder(), x, shape), {Dim(-1)});
  mask = reshape_to(a.builder(), expand_to(a.builder(), mask, shape), {Dim(-1)});
  const ir::ValueId places = select_of(a.builder(), a.one("nonzero", {mask}), 1, Dim(0));
  return a.call("index_select", {x, places}, {{"dim", Dim(0)}});
}

Op nonzero_op() {
  Op op;
  op.name = "nonzero";
  op.schema = "(Tensor self) -> Tensor";
  op.aliases = torch_names("nonzero", "(self, *, out=None, as_tuple=False)",
                           [](ForeignArguments& a) {
                             return a.flag("as_tuple") ? nonzero_as_tuple(a, a.value("self")) : as_matrix(a);
                           }) +
               torch_names("argwhere", "(self)", as_matrix) + names({"numpy.argwhere"}, "(a -> self)", as_matrix) +
               names({"numpy.nonzero"}, "(a -> self)", [](ForeignArguments& a) { return nonzero_as_tuple(a, a.value("self")); }) +
               names({"numpy.ndarray.nonzero"}, "(self)", [](ForeignArguments& a) { return nonzero_as_tuple(a, a.value("self")); }) +
               names({"numpy.flatnonzero"}, "(a -> self)",
                     [](ForeignArguments& a) -> Values {
                       return {select_of(a.builder(), nonzero(a, reshape_to(a.builder(), a.value("self"), {Dim(-1)})), 1, Dim(0))};
                     }) +
               torch_names("masked_select", "(self, mask, *, out=None)", masked_select) + unique_names();
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    return infer::one(q, DType::i64, {infer::fresh_symbol(q), Dim(static_cast<std::int64_t>(q.type(0).rank()))});
  };
  op.kernel = nonzero_kernel;
  op.no_grad_reason = "its result is an integer";
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::b8, DType::i32, DType::f32, DType::f16})
      all.push_back(
          {.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {4, 6}, .fill = is_float(t) ? Fill::special : Fill::unit}}});
    all.push_back({.name = "vector", .operands = {{.dtype = DType::b8, .shape = {50}}}});
    all.push_back({.name = "strided", .operands = {{.dtype = DType::b8, .shape = {4, 6}, .strides = {{1, 4}}}}});
    all.push_back({.name = "nothing", .operands = {{.dtype = DType::b8, .shape = {0, 3}}}});
    all.push_back({.name = "scalar", .operands = {{.dtype = DType::b8, .shape = {}}}});
    return all;
  };
  return op;
}

/// Hands integers on, and fails where one is 0: torch refuses integer division by zero.
Op nonzero_divisor_op() {
  Op op;
  op.name = "nonzero_divisor";
  op.schema = "(Tensor self) -> Tensor";
  op.traits.may_raise = true;
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(is_int(q.type(0).dtype), "takes integers, not {}", name_of(q.type(0).dtype));
    TENON_USER_CHECK(q.type(0).rank() > 0, "takes a tensor of at least one dimension");
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.loop = [](const OpQuery& q) {
    const std::size_t rank = q.type(0).rank();
    return elementwise(q.type(0).shape, [&](Scalars& s) {
      const auto at = IndexMath(s).loops(rank);
      const Scalar x = s.load(0, q.type(0).dtype, at);
      // A zero reads out of range: the check of indices that depend on data is what fails the call.
      std::vector<Scalar> checked = at;
      checked.back() = s.select(s.eq(x, s.like(x, 0)), s.extent(-1), at.back());
      return s.load(0, q.type(0).dtype, checked);
    });
  };
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::u8, DType::i32, DType::i64})
      all.push_back({.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {4, 6}, .fill = Fill::nonzero}}});
    return all;
  };
  return op;
}

}  // namespace

Values nonzero_as_tuple(ForeignArguments& a, ir::ValueId x) {
  a.container = Container::tuple;
  return a.call("unbind", {nonzero(a, x)}, {{"dim", Dim(1)}});
}

Family data_dependent_ops() { return {nonzero_op(), nonzero_divisor_op()}; }

}  // namespace tenon::ops
