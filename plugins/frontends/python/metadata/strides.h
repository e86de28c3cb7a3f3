// Which strides a result has in eager execution.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/memory/row_major.h"
#include "core/ops/foreign/alias_layout.h"
#include "core/ops/foreign/foreign_call.h"

namespace tenon::python {

using Extents = std::vector<std::int64_t>;

/// Bytes of the elements of a tensor.
std::size_t byte_count(DType dtype, std::span<const std::int64_t> shape);

/// Row-major strides, in elements; a dimension of size 0 counts as 1.
Extents row_major(std::span<const std::int64_t> shape);

/// One operand of a pointwise operation, before broadcasting.
struct Operand {
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;
};

/// The strides of the result of a pointwise torch operation: TensorIterator's rule (aten/src/ATen/TensorIterator.cpp, reorder_dimensions
/// and compute_fast_setup_type): the operands' own strides where all agree and are dense, else dimensions sorted by the operands' strides.
Extents torch_pointwise_strides(std::span<const std::int64_t> shape, std::span<const Operand> operands);

/// The strides of the result of a NumPy ufunc with order='K' (numpy/_core/src/multiarray/nditer_constr.c, npyiter_find_best_axis_ordering).
Extents numpy_pointwise_strides(std::span<const std::int64_t> shape, std::span<const Operand> operands);

/// The one or the other.
Extents pointwise_strides(ops::Flavour flavour, std::span<const std::int64_t> shape, std::span<const Operand> operands);

/// The strides of the result of an operation that keeps the memory format of its operands: channels last where one of them is
/// (c10/core/MemoryFormat.h, is_channels_last_strides_2d_s4; aten/src/ATen/native/ConvUtils.h), else row-major.
Extents memory_format_strides(std::span<const std::int64_t> shape, std::span<const Operand> operands);

/// The strides that a rule for an alias gives a result, from those of the operands.
Extents strides_by(const ops::AliasLayout& rule, std::span<const std::int64_t> shape, std::span<const Operand> operands);

/// Dimensions as they lie in memory, outermost first.
using MemoryOrder = std::vector<std::int64_t>;

/// The order of a dense tensor; empty when it has gaps or overlaps.
MemoryOrder memory_order(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

/// The order of what torch makes like a tensor (empty_like): its own, without gaps; empty where strides do not say which dimension is the outer one.
MemoryOrder order_of_like(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

/// Strides without gaps in an order of the dimensions, outermost first.
Extents dense_strides(std::span<const std::int64_t> shape, std::span<const std::int64_t> order);

/// Whether strides place the elements alike: those of dimensions of size 1 do not matter.
bool same_layout(std::span<const std::int64_t> shape, std::span<const std::int64_t> a, std::span<const std::int64_t> b);

/// Where each dimension is in that order.
MemoryOrder inverse(const MemoryOrder& order);

}  // namespace tenon::python
