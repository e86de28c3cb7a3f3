// Sliding windows taken apart (unfold, im2col) and put together (fold, col2im), and maxima put back where they were.
#include <algorithm>

#include "core/ops/build/grad_builder.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/reduce.h"
#include "core/ops/notation/window.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

std::vector<WindowDim> folded_windows(const OpQuery& q, std::span<const Dim> spatial) {
  const std::size_t rank = spatial.size();
  const auto kernel = per_dim(q, "kernel_size", rank, 1), stride = per_dim(q, "stride", rank, 1);
  const auto padding = per_dim(q, "padding", rank, 0), dilation = per_dim(q, "dilation", rank, 1);
  std::vector<WindowDim> windows;
  for (std::size_t d = 0; d < rank; ++d) {
    WindowDim w{spatial[d], Dim(0), kernel[d], stride[d], dilation[d], padding[d], padding[d]};
    TENON_USER_CHECK(w.kernel > 0 && w.stride > 0 && w.dilation > 0 && w.before >= 0, "kernel_size, stride and dilation should be greater than zero");
    w.out = window_count(q.graph(), w, false);
    TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), w.out - Dim(1)), "the sliding blocks of dimension {} have no elements", d);
    windows.push_back(w);
  }
  return windows;
}

constexpr const char* kWindow = "int[] kernel_size, int[] stride, int[] padding, int[] dilation";

ir::Attributes window_set(std::vector<Dim> kernel, std::vector<Dim> stride, std::vector<Dim> padding, std::vector<Dim> dilation) {
  return {{"dilation", std::move(dilation)}, {"kernel_size", std::move(kernel)}, {"padding", std::move(padding)}, {"stride", std::move(stride)}};
}

// ---- im2col: [N, C, in...] → [N, C, kernel..., out...]

Shape windows_shape(const OpQuery& q) {
  TENON_USER_CHECK(q.type(0).rank() >= 3, "takes a tensor of at least 3 dimensions, not {}", q.type(0).rank());
  const auto windows = folded_windows(q, std::span(q.type(0).shape).subspan(2));
  Shape shape{q.type(0).shape[0], q.type(0).shape[1]};
  for (const WindowDim& w : windows) shape.emplace_back(w.kernel);
  for (const WindowDim& w : windows) shape.push_back(w.out);
  return shape;
}

/// Each of the two ops is the other's adjoint.
GradBuilder::Values together(GradBuilder& g) {
  const Shape& shape = g.type(g.operand()).shape;
  ir::Attributes attributes = g.query().attributes();
  attributes.emplace_back("size", std::vector<Dim>(shape.begin() + 2, shape.end()));
  return {g.one("col2im", {g.gradient()}, std::move(attributes))};
}

GradBuilder::Values apart(GradBuilder& g) {
  ir::Attributes attributes = g.query().attributes();
  std::erase_if(attributes, [](const auto& a) { return a.name == "size"; });
  return {g.one("im2col", {g.gradient()}, std::move(attributes))};
}

Op im2col_op(std::vector<Alias> aliases) {
  Op op;
  op.name = "im2col";
  op.schema = fmt::format("(Tensor self, *, {}) -> Tensor", kWindow);
  op.aliases = std::move(aliases);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    return infer::one(q, q.type(0).dtype, windows_shape(q));
  };
  op.loop = [](const OpQuery& q) {
    const auto windows = folded_windows(q, std::span(q.type(0).shape).subspan(2));
    return elementwise(windows_shape(q), [&](Scalars& s) {
      const std::size_t rank = windows.size();
      std::vector<Scalar> index{s.loop_index(0), s.loop_index(1)};
      std::optional<Scalar> inside;
      for (std::size_t d = 0; d < rank; ++d) {
        const WindowPlace place = window_place(s, windows[d], s.loop_index(2 + rank + d), s.loop_index(2 + d));
        index.push_back(place.index);
        inside = both(s, inside, place.inside);
      }
      return load_or_zero(s, inside, q.type(0).dtype, index);
    });
  };
  op.grad = written(together);
  op.samples = [] {
    return std::vector<Sample>{
        {.name = "plane", .operands = {{.shape = {2, 3, 6, 5}}}, .attributes = window_set({2, 3}, {2, 1}, {1, 1}, {1, 1})},
        {.name = "dilated", .operands = {{.dtype = DType::f16, .shape = {1, 2, 9, 7}}}, .attributes = window_set({3, 2}, {1, 2}, {0, 2}, {2, 3})}};
  };
  return op;
}

// ---- col2im: [N, C, kernel..., out...] → [N, C, size...]

LoopBody fold_loop(const OpQuery& q) {
  const std::vector<Dim> size = q.integers("size");
  const auto windows = folded_windows(q, size);
  const std::size_t rank = windows.size();
  LoopBody body{.extents = {q.type(0).shape[0], q.type(0).shape[1]}, .reduced = rank, .element = {}};
  for (const WindowDim& w : windows) body.extents.push_back(w.in);
  for (const WindowDim& w : windows) body.extents.emplace_back(w.kernel);
  Scalars s;
  IndexMath m(s);
  std::vector<Scalar> kernel, places;
  std::optional<Scalar> inside;
  for (std::size_t d = 0; d < rank; ++d) {
    const WindowDim& w = windows[d];
    const Scalar k = s.loop_index(2 + rank + d);
    const Scalar reach = s.sub(m.add(s.loop_index(2 + d), Dim(w.before)), m.mul(k, Dim(w.dilation)));
    const Scalar o = m.floor_div(reach, Dim(w.stride));
    if (w.stride != 1) inside = both(s, inside, s.eq(m.mod(reach, Dim(w.stride)), m.of(0)));
    inside = both(s, inside, s.logical_and(s.ge(o, m.of(0)), s.lt(o, m.of(w.out))));
    kernel.push_back(k);
    places.push_back(o);
  }
  std::vector<Scalar> index{s.loop_index(0), s.loop_index(1)};
  index.insert(index.end(), kernel.begin(), kernel.end());
  index.insert(index.end(), places.begin(), places.end());
  const DType stored = q.type(0).dtype, t = compute_type(stored);
  s.result(s.load_if(*inside, 0, stored, index, s.constant(t, std::int64_t{0})));
  body.element = s.take();
  body.reducer = simple_reducer(t, 0, Primitive::add);
  return body;
}

Op col2im_op(std::vector<Alias> aliases) {
  Op op;
  op.name = "col2im";
  op.schema = fmt::format("(Tensor self, *, int[] size, {}) -> Tensor", kWindow);
  op.aliases = std::move(aliases);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    const std::vector<Dim> size = q.integers("size");
    const auto windows = folded_windows(q, size);
    const Shape& shape = q.type(0).shape;
    TENON_USER_CHECK(shape.size() == 2 + 2 * windows.size(), "takes {} dimensions, not {}", 2 + 2 * windows.size(), shape.size());
    for (std::size_t d = 0; d < windows.size(); ++d) {
      infer::require_equal(q.graph(), shape[2 + d], Dim(windows[d].kernel), "kernel sizes");
      infer::require_equal(q.graph(), shape[2 + windows.size() + d], windows[d].out, "numbers of sliding blocks");
    }
    Shape result{shape[0], shape[1]};
    result.insert(result.end(), size.begin(), size.end());
    return infer::one(q, q.type(0).dtype, std::move(result));
  };
  op.loop = fold_loop;
  op.grad = written(apart);
  op.samples = [] {
    ir::Attributes set = window_set({2, 3}, {2, 1}, {1, 1}, {1, 1});
    set.push_back({"size", std::vector<Dim>{6, 5}});
    return std::vector<Sample>{{.name = "plane", .operands = {{.shape = {2, 3, 2, 3, 4, 5}}}, .attributes = set, .tolerance = 4}};
  };
  return op;
}

// ---- foreign calls

ir::Attributes foreign_windows(ForeignArguments& a) {
  return window_set(per_dim(a, "kernel_size", 2, {}), per_dim(a, "stride", 2, {Dim(1)}), per_dim(a, "padding", 2, {Dim(0)}), per_dim(a, "dilation", 2, {Dim(1)}));
}

/// The kernel joins the channels, and the places become one dimension.
Values unfold_adapt(ForeignArguments& a) {
  const Batched x = with_batch(a, a.value("self"), 3);
  TENON_USER_CHECK(a.type(x.value).rank() == 4, "Expected 3D or 4D (batch mode) tensor for im2col");
  const ir::ValueId y = a.one("im2col", {x.value}, foreign_windows(a));
  const Shape shape = a.type(y).shape;
  const ir::ValueId flat = reshape_to(a.builder(), y, {shape[0], shape[1] * shape[2] * shape[3], shape[4] * shape[5]});
  return {without_batch(a, flat, x.added)};
}

Values fold_adapt(ForeignArguments& a) {
  const Batched x = with_batch(a, a.value("self"), 2);
  TENON_USER_CHECK(a.type(x.value).rank() == 3, "Expected 2D or 3D (batch mode) tensor for input to col2im");
  ir::Attributes set = foreign_windows(a);
  const auto size = per_dim(a, "output_size", 2, {}), kernel = per_dim(a, "kernel_size", 2, {}), stride = per_dim(a, "stride", 2, {Dim(1)});
  const auto padding = per_dim(a, "padding", 2, {Dim(0)}), dilation = per_dim(a, "dilation", 2, {Dim(1)});
  const Shape shape = a.type(x.value).shape;
  Shape parts{shape[0], floor_div(shape[1], kernel[0] * kernel[1]), kernel[0], kernel[1]};
  for (std::size_t d = 0; d < 2; ++d) parts.push_back(floor_div(size[d] + padding[d] + padding[d] - dilation[d] * (kernel[d] - Dim(1)) - Dim(1), stride[d]) + Dim(1));
  set.push_back({"size", size});
  const ir::ValueId y = a.one("col2im", {reshape_to(a.builder(), x.value, parts)}, std::move(set));
  return {without_batch(a, y, x.added)};
}

/// torch.nn.functional.max_unpool: the elements at their places in planes of zeros.
Adapt unpool_adapt(std::size_t rank) {
  return [rank](ForeignArguments& a) -> Values {
    const ir::ValueId x = a.value("self"), places = a.value("indices");
    const auto size = per_dim(a, "output_size", rank, {});
    Shape shape = a.type(x).shape;
    TENON_USER_CHECK(shape == a.type(places).shape, "Expected shape of indices to be same as that of the input tensor");
    TENON_USER_CHECK(shape.size() == rank + 1 || shape.size() == rank + 2, "max_unpool: {} dimensions", shape.size());
    const Dim inner = ir::product(std::span(shape).subspan(shape.size() - rank));
    const Dim outer = ir::product(std::span(shape).first(shape.size() - rank));
    std::copy(size.begin(), size.end(), shape.end() - static_cast<std::ptrdiff_t>(rank));
    const DType t = a.type(x).dtype;
    const ir::ValueId zero = is_float(t) ? a.builder().literal(0.0) : a.builder().literal(Dim(0));
    const ir::ValueId planes = a.builder().one("full", {zero}, {{"dtype", t}, {"size", Shape{outer, ir::product(size)}}});
    const auto flat = [&](ir::ValueId v) { return reshape_to(a.builder(), v, {outer, inner}); };
    return {reshape_to(a.builder(), a.one("scatter", {planes, flat(places), flat(x)}, {{"dim", Dim(1)}}), shape)};
  };
}

}  // namespace

Family folding_ops() {
  return {im2col_op(names({"torch.im2col"}, "(self, kernel_size, dilation, padding, stride)", unfold_adapt)),
          col2im_op(names({"torch.col2im"}, "(self, output_size, kernel_size, dilation, padding, stride)", fold_adapt) +
                    names({"torch._C._nn.max_unpool2d"}, "(self, indices, output_size)", unpool_adapt(2)) +
                    names({"torch._C._nn.max_unpool3d"}, "(self, indices, output_size, stride, padding)", unpool_adapt(3)))};
}

}  // namespace tenon::ops
