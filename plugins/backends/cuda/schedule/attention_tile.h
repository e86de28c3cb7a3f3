// A kernel of two products with the softmax of rows between them, as the blocks of a grid compute it: neither the scores nor the softmax lie in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "schedule/product_tile.h"

namespace tenon::cuda {

/// Marks a kernel of two reductions, over the first and over the last inner loop: reduction 1 sums products up (scores), and reduction 0 products of what is made of
/// a score and a value. What is made of scores stands for its softmax over the first inner loop.
class Attended final : public codegen::Schedule {
 public:
  struct Choices {
    bool rounds = false;                     // operands of float32 may be rounded to tf32; else they are multiplied in three parts
    std::optional<std::int64_t> diagonal{};  // row r sees its scores up to r + this alone
    bool zeroes_hidden = false;              // rows whose scores are all -inf become zero, and not NaN
  };
  explicit Attended(Choices choices) : choices(choices) {}
  std::string title(const codegen::Kernel&) const override { return choices.rounds ? "attended as tf32" : "attended"; }
  std::size_t loops_apart(const codegen::Kernel&) const override { return 0; }

  const Choices choices;
};

/// What a block has of an attention. Eight warps have sixteen rows each, and pass over all values; the part of these that a step has lies in shared memory, and the
/// block's rows of the first operand do so all the time.
struct AttentionTile {
  ProductTile scores;  // all of its sum is one step
  ProductTile result;  // whose sum goes over the columns of `scores`
  codegen::OpId score = codegen::kNoOp;
  Attended::Choices choices;

  unsigned rows_bytes() const { return scores.bytes(scores.a, scores.block_rows); }
  unsigned values_start() const { return scores.bytes(scores.b, scores.block_columns); }
  unsigned stage_bytes() const { return values_start() + result.bytes(result.b, result.block_columns); }
  unsigned shared_bytes() const;
  std::string text() const;
};

/// Chooses, by the shape alone. `starts` as of `schedule`. Nothing where the kernel is not marked, or has no such form.
std::optional<AttentionTile> attention_tile(const codegen::Kernel& kernel, std::span<const std::int64_t> starts);

/// Whether a library is known to be faster.
bool is_faster_by_library(const AttentionTile& attention);

}  // namespace tenon::cuda
