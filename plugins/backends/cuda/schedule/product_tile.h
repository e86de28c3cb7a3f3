// A kernel whose reduction is a product, as the blocks of a grid multiply it: which loops belong to which operand, what a block has of the
// result, and how it reads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "loops/kernel.h"

namespace tenon::cuda {

/// Marks a kernel whose one reduction tensor cores sum up.
class Multiplied final : public codegen::Schedule {
 public:
  struct Choices {
    bool rounds = false;         // operands of float32 may be rounded to tf32; else they are multiplied in three parts
    std::int64_t blocks = 1;     // that share a rectangle of the result
    bool by_warpgroups = false;  // four warps may multiply together
    bool over_windows = false;   // of a convolution
    std::vector<bool> rounded{}; // by buffer: who writes it has rounded it to tf32; empty: none
  };
  explicit Multiplied(Choices choices) : choices(std::move(choices)) {}
  std::string title(const codegen::Kernel&) const override { return choices.rounds ? "multiplied as tf32" : "multiplied"; }
  std::size_t loops_apart(const codegen::Kernel&) const override { return 0; }

  const Choices choices;
};

/// The part of a sum that tensor cores take at once, in bytes.
inline constexpr unsigned kPartBytes = 32;
/// A sum of float32 so short is rounded after each part: a library's sums err as little.
inline constexpr std::int64_t kShortSum = 640;

/// An operand as a block reads it: a part of it lies in shared memory, `rows` of `row_bytes`, each with some bytes behind it that keep rows in
/// different banks.
struct TileOperand {
  codegen::OpId element = codegen::kNoOp;
  std::vector<codegen::Loop> loops;  // of the result that it steps along alone
  bool along_sum = true;             // a row is a part of the sum; else it is along `loops`
  unsigned lanes = 1;                // elements that a thread reads at once, along a row
  codegen::OpId copied = codegen::kNoOp, mask = codegen::kNoOp;  // the load that is copied while the block computes, if it is; zeros where the mask does not hold
  bool rounded = false;              // to tf32, where it lies
  bool in_pairs = false;             // of float32 along `loops`: four threads take elements of the sum that follow each other, two each
  bool swizzled = false;             // its rows of 128 bytes follow each other as warpgroups read them: 16 bytes `i` of row `r` lie at `i ^ r % 8`
};

/// What a block has of a product. Eight warps share it, each with a rectangle of 16 x 8 tiles; or groups of them, each with a part of every step of the sum.
struct ProductTile {
  DType dtype = DType::f32;          // of what is multiplied
  bool rounds = false;               // of float32: Multiplied
  bool over_windows = false;         // the same
  std::vector<codegen::Loop> batch;  // outer loops of both operands, or of none
  TileOperand a, b;                  // b steps along the last outer loop
  std::int64_t rows = 1, columns = 1, depth = 1;       // of the product
  unsigned block_rows = 0, block_columns = 0;          // of the result
  unsigned block_bytes = 0;                            // of the sum, a step
  unsigned stages = 0;                                 // steps that are in shared memory
  unsigned warps_down = 0;                             // of those of a group
  unsigned groups = 1;                                 // of warps
  unsigned lanes = 1;                                  // of the result that a thread finishes at once
  unsigned cluster = 1;                                // blocks that share a rectangle: each sums a part of the sum up
  bool by_warpgroups = false;                          // four warps have 64 rows and all columns, and read what is swizzled from shared memory
  bool lays_out = false;                               // threads lay b out in front of the stages, swizzled: rounded, or in two tiles what tf32 holds and what that leaves

  unsigned block_depth() const { return block_bytes / static_cast<unsigned>(size_of(dtype)); }
  std::int64_t row_tiles() const { return (rows + block_rows - 1) / block_rows; }
  std::int64_t column_tiles() const { return (columns + block_columns - 1) / block_columns; }
  std::int64_t steps() const { return (depth + block_depth() - 1) / block_depth(); }
  std::int64_t batches() const;
  std::int64_t blocks() const { return row_tiles() * column_tiles() * batches() * cluster; }
  /// Of float32 that is not rounded.
  bool is_exact() const { return dtype == DType::f32 && !rounds; }
  unsigned row_elements(const TileOperand& operand, unsigned side) const { return operand.along_sum ? block_depth() : side; }
  unsigned row_bytes(const TileOperand& operand, unsigned side) const;
  unsigned bytes(const TileOperand& operand, unsigned side) const;
  unsigned laid_tile_bytes() const { return lays_out ? block_columns * block_bytes : 0; }
  unsigned laid_bytes() const { return (is_exact() ? 2 : 1) * laid_tile_bytes(); }
  unsigned stage_bytes() const { return bytes(a, block_rows) + bytes(b, block_columns); }
  /// Elements from one row of sums to the next, in shared memory, when all are there.
  unsigned sum_stride() const { return block_columns + 4; }
  /// Bytes of the sums of one group of warps.
  unsigned sum_bytes() const { return block_rows * sum_stride() * static_cast<unsigned>(sizeof(float)); }
  unsigned shared_bytes() const;
  /// All of it that code depends on beside the kernel's text.
  std::string text() const;
};

/// True when the dtype is one of those that tensor cores multiply here.
bool is_multiplied(DType dtype);

/// The sizes of a product, by what a kernel reads.
struct ProductSides {
  std::vector<codegen::Loop> batch = {}, rows = {}, columns = {};
  codegen::OpId a = codegen::kNoOp, b = codegen::kNoOp;

  std::array<codegen::OpId, 2> operands() const { return {a, b}; }
};
/// Nothing where the kernel's one reduction is no product of a constant size, or where an operand steps along no loop of its own.
std::optional<ProductSides> product_sides(const codegen::Kernel& kernel);

/// In how many parts of equal length the longest loop of the sum is done, by the shape alone: 1, or so many that the blocks fill a card. `cluster`: so
/// many blocks share a rectangle.
std::int64_t parts_of_product(const codegen::Kernel& kernel, bool rounds, std::int64_t cluster);
/// How many blocks share a rectangle where they read each other's memory, each with a part of the sum, of any length: a power of two.
std::int64_t cluster_of_product(const codegen::Kernel& kernel, bool rounds);

/// Whether all sizes of a kernel are known, and something is there.
bool has_fixed_sizes(const codegen::Kernel& kernel);
/// What operands are multiplied as: half precision where all are, else float32.
DType multiplied_dtype(const codegen::Kernel& kernel, std::span<const codegen::OpId> operands);
/// How a block reads an operand of a sum over the loop. `along_side`: a row is along the loops of the result, whatever lies side by side.
TileOperand operand_of(const codegen::Kernel& kernel, codegen::OpId element, const codegen::Loop& sum, std::vector<codegen::Loop> loops, DType dtype, std::span<const std::int64_t> starts, bool along_side = false);
/// ProductTile::lanes: of what is stored, and read for it alone, along the last loop of the result.
unsigned lanes_of_result(const codegen::Kernel& kernel, std::span<const codegen::OpId> operands, std::span<const std::int64_t> starts);

/// Chooses, by the shape alone. `starts` as of `schedule`.
std::optional<ProductTile> product_tile(const codegen::Kernel& kernel, std::span<const std::int64_t> starts);

/// Whether a library is known to be faster: at large products, the sooner where they are of half precision, or matrices are rounded; and at long sums whose
/// operands are not read in whole vectors.
bool is_faster_by_library(const ProductTile& product);

}  // namespace tenon::cuda
