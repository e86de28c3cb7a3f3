// A kernel of attention on tensor cores, as the function that each thread of a grid runs: a block has some rows of the result, passes over all values once, and keeps
// of each row the largest score so far and what is added up beside it (Milakov and Gimelshein 2018, arXiv 1805.02867; Dao 2023, arXiv 2307.08691).
#pragma once

#include <array>
#include <string>

#include "products/product_emitter.h"

namespace tenon::cuda {

class AttentionEmitter final : private ProductEmitter {
 public:
  AttentionEmitter(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa)
      : ProductEmitter(module, kernel, schedule, isa), attention_(*schedule.attention), scores_(attention_.scores) {}

  void emit(const std::string& name);

 private:
  /// Of a thread's two rows.
  using OfRows = std::array<llvm::Value*, 2>;
  /// What is known of rows so far: the sums of weights times values, and for each row the largest score and this thread's part of the sum of weights.
  struct Rows {
    Carried sums;
    OfRows largest, weight;

    Carried carried() const;
    static Rows of(Carried values);
  };

  void find_rows();
  Rows attend();
  void load_part(llvm::Value* stage, llvm::Value* step);
  Carried scores(llvm::Value* stage, llvm::Value* step);
  Carried scored(llvm::Value* step, const Carried& sums);
  llvm::Value* score_of(llvm::Value* sum);
  void weigh(Rows& rows, Carried& scores);
  void add_values(Rows& rows, llvm::Value* stage, const Carried& weights);
  void accumulate(const Fragments& a, const Fragments& b, Carried& sums);
  Fragments fragments_of(const Carried& weights, unsigned part);
  Carried result(const Rows& rows);
  llvm::Value* divided(llvm::Value* sum, llvm::Value* weight);
  void put_plain_sums();
  llvm::Value* plain_sum();
  llvm::Value* exponential(llvm::Value* difference);
  llvm::Value* shown(llvm::Value* largest);
  llvm::Value* largest_of(llvm::Value* a, llvm::Value* b) { return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a, b); }
  llvm::Value* over_row(llvm::Value* mine, const std::function<llvm::Value*(llvm::Value*, llvm::Value*)>& combine);
  llvm::Value* real(double value) { return llvm::ConstantFP::get(ir_.getFloatTy(), value); }
  llvm::Value* stage_of(llvm::Value* step);
  Side query() const { return {scores_, scores_.a, depth_loop(), scores_.block_rows, scores_.rows, 0, sides_[0].first}; }
  Side key(llvm::Value* first) const { return {scores_, scores_.b, depth_loop(), scores_.block_columns, scores_.columns, 0, first}; }
  std::span<const codegen::Loop> along_loop() const { return std::span(kernel_.inner).first(1); }
  std::span<const codegen::Loop> depth_loop() const { return std::span(kernel_.inner).last(1); }
  unsigned at_once() const { return scores_.block_columns; }

  const AttentionTile& attention_;
  const ProductTile& scores_;
  std::vector<Fragments> kept_;  // of the rows of the first operand, part by part; none where they are read again for each step
};

}  // namespace tenon::cuda
