// A matrix product as tiles: its operands as they lie or as kernels pack them, and what runs on each tile of the result.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "decisions/cpu_machine.h"
#include "fusion/plan.h"
#include "tiles/tile.h"

namespace tenon::llvm_backend {

/// Where an operand lies, with strides in elements; or the kernel that writes it, part by part. Of a left operand that lies in windows
/// `table` writes for each step of the sum and each row where the run of elements starts, from the first element of the value, or −1 where all of
/// it is zero; rows are kFinishedRows apart, as i64.
struct TiledOperand {
  ValueId value;
  ir::Dim offset;
  std::vector<ir::Dim> batch_strides;
  ir::Dim row_stride, column_stride;
  ir::Dim step_stride;  // of a right operand beside windows: between steps of the sum; rows are inside a step
  std::optional<codegen::KernelStep> pack, table;  // of a right operand `table` writes where runs of its columns start, kPlacesOfTable apart
  std::optional<DType> widened;  // a right operand of half precision with contiguous columns: few rows are multiplied by it where it lies
  bool in_halves = false;  // a right operand of pairs whose rows hold single elements: strides are in those
  bool packs_rows_of_value = false;  // `pack` reads rows of a left operand from `value`, each of them contiguous: the strides say where
};

/// Which columns of the result the taps and the elements of the runs of a right operand are: loops, and how far a step along them is in columns.
struct ColumnLoops {
  std::vector<ir::Dim> extents, steps;
};

/// A convolution that is transformed: its pictures, and the side of the squares of results that are computed together.
struct TransformedPicture {
  ir::Dim height, width;
  std::int64_t square_side;
};

/// Rows of a value that the kernel on tiles reads beside the product: element (row, column) of the result is read with the element
/// start + row * stride + column of a buffer of that kernel, of so many bytes.
struct RowsBeside {
  std::size_t buffer;
  std::int64_t start, stride, size;
};

/// A pooling in bands of rows of its results: the rows of a picture that a band reads lie in a block of the thread's memory.
struct BandedPooling {
  codegen::Pooling pooling;
  std::int64_t band;  // rows of results
  std::int64_t row_bytes = 0;  // of a picture

  /// Rows of a picture that a band reads at most.
  std::int64_t rows_of_block() const { return (band - 1) * pooling.step + pooling.window; }
};

/// c[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], with k of `steps` times `step_depth`. Its kernels take TileSymbols.
struct TiledProduct {
  DType dtype = DType::f32;  // what is multiplied: of bfloat16 two of the sum are one element (MatrixProduct)
  std::vector<ir::Dim> batch;
  ir::Dim m, n, steps, step_depth;
  TiledOperand a, b;
  ValueId c;
  std::optional<TransformedPicture> picture;  // m (with `runs`, the sum) counts pictures, each row by row; steps (with `runs`, its taps) are the taps, row by row
  std::optional<std::pair<ColumnLoops, ColumnLoops>> runs;  // taps and runs, where `b` has a table
  std::vector<ir::Dim> c_batch_strides;
  ir::Dim c_row_stride, c_offset;
  std::optional<codegen::KernelStep> epilogue;  // reads a tile of the product and stores what the step gives; else the step gives c
  std::vector<RowsBeside> rows_beside;          // of the epilogue; empty where they are near
  std::optional<codegen::KernelStep> sums;      // of the columns of rows that are finished, for the part `step`; what it has not written is zero
  std::optional<BandedPooling> pooling;         // reads what the epilogue gives, or c, and stores what the step gives
};

/// What tiles are made with: the loops of the plan are the algebra's, to which the symbols of tiles were added.
struct TilingContext {
  const ir::Graph& graph;
  const CpuMachine& machine;
  codegen::IndexAlgebra& algebra;
  TileSymbols symbols;
};

/// Of a chain, which multiplies no pairs.
TiledProduct tiled(const codegen::Product& product, const TilingContext& context);
/// With what follows the product.
TiledProduct tiled(codegen::ContractionStep step, const TilingContext& context);

}  // namespace tenon::llvm_backend
