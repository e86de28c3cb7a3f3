// A sum of products as recognition leaves it: loops, what its operands are made of, and how those lie. A target makes its own matrix kernel of it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "loops/kernel.h"

namespace tenon::codegen {

/// A loop of the result, and which operand steps along it.
struct Role {
  Loop loop;
  Dim c;  // stride in the result
  bool in_a = false, in_b = false;
};

/// An operand that is one strided matrix at each point of the batch, multiplied where it lies. Strides are in elements.
struct Matrix {
  ir::ValueId value;
  Dim offset;
  std::vector<Dim> batch_strides;
  Dim row_stride, column_stride;
  Dim tap_stride;  // of a right operand beside windows: between taps; rows are inside a tap
};

/// An operand that lies in runs along one loop, or along several that step as one, multiplied where it lies. Runs of a left operand are parts of
/// the sum, whose other loops are taps; those of a right one are columns, and so are taps.
struct Windows {
  OpId load = kNoOp;
  OpId mask = kNoOp;  // where it does not hold, the whole run is zero
  std::vector<Loop> run;  // the last one is contiguous
  std::vector<Loop> taps;
};

/// An operand of a product. One that is neither a matrix nor windows is computed, before it is multiplied or while it is.
struct ProductOperand {
  OpId element = kNoOp;  // what gives it, over the loops of the product; it is zero where windows are masked
  DType dtype = DType::f32;  // of its elements, in memory where that has them: of half precision beside a sum in float32, too
  std::optional<Matrix> matrix;
  std::optional<Windows> windows;

  bool is_computed() const { return !matrix && !windows; }
};

/// The pixels of a result, rows of them, where windows of 3 x 3 pixels with whole runs of channels step by one pixel: what stands in
/// a window depends on the sums of its place and the tap alone.
struct Picture {
  Dim height, width;
  bool relaxed = false;  // a larger error is allowed
};

/// result[batch, rows, columns] = sum over `summed` of a * b, in the compute_type of all three dtypes. `dtype` is the result's.
struct Product {
  ir::NodeId node;
  DType dtype = DType::f32;
  std::vector<Operation> operations;  // in which the operands' elements are computed, over all loops
  std::vector<ir::ValueId> buffers;   // what their loads read
  std::vector<Role> batch, rows, columns;  // loops of the result: of both operands or of none, of the left one, of the right one
  std::vector<Loop> summed;           // in the order of the sum; where the left operand lies in windows, taps and then the run
  ProductOperand a, b;
  std::optional<Picture> picture;     // the last two of `rows`, or of `summed` where the right operand lies in windows, are its own, and the taps go row by row
  std::vector<Dim> index;             // of the result, over the loops
  ir::ValueId result;                 // where it lies, if nothing follows it
  Dim offset;                         // of its first element

  Dim row_count() const;
  Dim column_count() const;
  Dim depth() const;
  /// Values in memory that an operand's elements are computed from, each once.
  std::vector<ir::ValueId> reads(const ProductOperand& operand) const;
  /// True when rows of the result lie one stride apart, and columns are contiguous.
  bool is_result_matrix() const;
  Dim result_row_stride() const { return rows.empty() ? Dim(0) : rows.back().c; }
};

/// The product of the loops' extents.
Dim count_of(std::span<const Loop> loops);
/// The loops of roles.
std::vector<Loop> loops_of(std::span<const Role> roles);
/// How many of the innermost loops one stride steps through.
std::size_t stepping_as_one(std::span<const Loop> loops, std::span<const Dim> strides);

}  // namespace tenon::codegen
