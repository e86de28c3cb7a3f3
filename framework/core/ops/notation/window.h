// Windows that slide over the trailing dimensions of a tensor: what convolutions, pooling, unfold and fold share.
#pragma once

#include "core/ops/build/index_math.h"
#include "core/ops/notation/family.h"

namespace tenon::ops {

/// One spatial dimension under a window of `kernel` elements. Output position o reads input positions
/// o * stride + k * dilation - before, for k in [0, kernel).
struct WindowDim {
  ir::Dim in, out;
  std::int64_t kernel = 1, stride = 1, dilation = 1;
  std::int64_t before = 0, after = 0;  // elements of padding
};

/// Elements of padding after the input that the last window reaches into; negative where it ends before the input does.
ir::Dim padding_after(const ir::Dim& in, const ir::Dim& out, const ir::Dim& kernel, const ir::Dim& stride, const ir::Dim& dilation, const ir::Dim& before);
/// The number of positions of a window; `ceil_mode` counts a last one that reaches beyond the padding but starts before it.
ir::Dim window_count(const ir::Graph& graph, const WindowDim& w, bool ceil_mode);

/// The attribute `name` as one constant a spatial dimension: absent gives `otherwise`, one number stands for all.
std::vector<std::int64_t> per_dim(const OpQuery& q, std::string_view name, std::size_t rank, std::int64_t otherwise);
/// The same of a foreign argument; an empty list counts as absent.
std::vector<ir::Dim> per_dim(ForeignArguments& a, std::string_view name, std::size_t rank, const std::vector<ir::Dim>& otherwise);
/// The size of a kernel along one dimension, which must be a constant.
std::int64_t kernel_size(const ir::Dim& size);

/// Of a `conv_sum`, by spatial dimension.
ir::Attributes window_attributes(const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
                                 const std::vector<std::int64_t>& dilation, std::int64_t groups);
std::vector<ir::Dim> dims_of(const std::vector<std::int64_t>& numbers);

/// The input position, and whether it lies inside; nothing where it always does.
struct WindowPlace {
  Scalar index;
  std::optional<Scalar> inside;
};
WindowPlace window_place(Scalars& s, const WindowDim& w, Scalar o, Scalar k);

std::optional<Scalar> both(Scalars& s, std::optional<Scalar> a, std::optional<Scalar> b);
/// The element of operand 0, which is stored so; 0 outside.
Scalar load_or_zero(Scalars& s, std::optional<Scalar> inside, DType stored, const std::vector<Scalar>& index);

/// The value with a batch dimension in front where it has only `rank` dimensions.
struct Batched {
  ir::ValueId value;
  bool added = false;
};
Batched with_batch(ForeignArguments& a, ir::ValueId x, std::size_t rank);
/// Takes an added batch dimension away again.
ir::ValueId without_batch(ForeignArguments& a, ir::ValueId x, bool added);

}  // namespace tenon::ops
