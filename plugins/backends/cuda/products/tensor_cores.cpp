// Fragments of a block's operands, and their products.
//
// A product of float32 is that of three of tf32: each element is split in what tf32 holds and what that leaves, and the product of the two remainders is
// below what float32 holds. The sums of a step are added to those before it by an addition that rounds: tensor cores cut what they add off.
#include "products/product_emitter.h"

#include <algorithm>
#include <span>

namespace tenon::cuda {

using llvm::Value;

namespace {

/// What a matrix of eight rows has of a part.
constexpr unsigned kMatrixBytes = kPartBytes / 2;
/// Of float32: half of the last place of tf32, and what that holds.
constexpr unsigned kHalfOfLast = 1u << 12, kHeld = ~0u << 13;

}  // namespace

/// The sums with those of a step.
ProductEmitter::Carried ProductEmitter::multiplied(Value* stage, Carried sums) {
  const bool exact = product_.is_exact(), is_short = product_.depth <= kShortSum;
  const unsigned parts = product_.block_bytes / kPartBytes / product_.groups;
  Value *left = of_group(sides_[0], stage), *right = of_group(sides_[1], stage);
  Carried part = sums;
  for (unsigned i = 0; i < parts; ++i) {
    if (exact && (i == 0 || is_short)) std::ranges::fill(part, llvm::ConstantFP::get(ir_.getFloatTy(), 0));
    const Fragments a = fragments(sides_[0], left, i, tiles_down(), warp_row_), b = fragments(sides_[1], right, i, tiles_across(), warp_column_);
    multiply(a, b, part);
    if (exact && (i + 1 == parts || is_short))
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] = ir_.CreateFAdd(sums[k], part[k]);
  }
  return exact ? sums : part;
}

/// The same by four warps together. The left operand comes from their registers, where it is not read from shared memory as the right one is.
ProductEmitter::Carried ProductEmitter::multiplied_by_warpgroup(Value* stage, const Carried& sums) {
  constexpr unsigned kWarpgroupRows = 64;
  const unsigned parts = product_.block_bytes / kPartBytes / product_.groups;
  Value *left = of_group(sides_[0], stage), *right = at_bytes(of_group(sides_[1], stage), number(sides_[1].start));
  if (product_.lays_out) right = shared(ir_.CreateMul(group_, number(product_.block_bytes / product_.groups)));
  Registers words, small;
  Value* rows = nullptr;
  if (product_.a.swizzled) {
    Value* first = ir_.CreateMul(ir_.CreateUDiv(warp_row_, number(kWarpgroupRows)), number(kWarpgroupRows * product_.block_bytes));
    rows = at_bytes(left, ir_.CreateAdd(number(sides_[0].start), first));
  } else {
    for (unsigned i = 0; i < parts; ++i) {
      const Fragments a = fragments(sides_[0], left, i, tiles_down(), warp_row_);
      words.insert(words.end(), a.large[0].begin(), a.large[0].end());
      if (product_.is_exact()) small.insert(small.end(), a.small[0].begin(), a.small[0].end());
    }
  }
  std::vector<PtxIsa::WarpgroupOperands> all;
  if (product_.is_exact()) all = {{small, nullptr, right, parts}, {words, nullptr, at_bytes(right, number(product_.laid_tile_bytes())), parts}};
  all.push_back({words, rows, right, parts});
  return isa_.multiply_by_warpgroup(b_, product_.dtype, all, sums);
}

/// The right operand of a stage in tiles that warpgroups read, in rows of the sum. Threads that follow each other take vectors that do.
void ProductEmitter::lay_out_right(Value* stage) {
  const Side& side = sides_[1];
  const unsigned columns = product_.block_columns, in_row = product_.block_bytes / kMatrixBytes;
  const bool along = side.operand.along_sum;
  constexpr unsigned kLanes = kMatrixBytes / sizeof(float);
  auto* four = llvm::FixedVectorType::get(ir_.getFloatTy(), kLanes);
  auto* words = llvm::FixedVectorType::get(ir_.getInt32Ty(), kLanes);
  for (unsigned first = 0; first < columns * in_row; first += kBlock) {
    Value* at = ir_.CreateAdd(thread32_, number(first));
    Value *column = along ? ir_.CreateUDiv(at, number(in_row)) : ir_.CreateURem(at, number(columns)), *vector = along ? ir_.CreateURem(at, number(in_row)) : ir_.CreateUDiv(at, number(columns));
    Value *depth = ir_.CreateMul(vector, number(kLanes)), *element = llvm::PoisonValue::get(four);
    if (along) element = ir_.CreateAlignedLoad(four, place_of_element(side, stage, column, depth), llvm::Align(kMatrixBytes));
    else for (unsigned i = 0; i < kLanes; ++i) element = ir_.CreateInsertElement(element, element_at(side, stage, column, ir_.CreateAdd(depth, number(i))), i);
    const auto all = [&](unsigned n) { return ir_.CreateVectorSplat(kLanes, number(n)); };
    Value *bits = ir_.CreateBitCast(element, words), *more = ir_.CreateAdd(bits, all(kHalfOfLast));
    Value* place = ir_.CreateAdd(ir_.CreateMul(column, number(product_.block_bytes)), ir_.CreateMul(ir_.CreateXor(vector, ir_.CreateURem(column, number(8))), number(kMatrixBytes)));
    const auto store = [&](Value* made, unsigned tile) { ir_.CreateAlignedStore(made, shared(ir_.CreateAdd(place, number(tile * product_.laid_tile_bytes()))), llvm::Align(kMatrixBytes)); };
    if (!product_.is_exact()) {
      store(ir_.CreateSelect(ir_.CreateFCmpUNO(element, element), bits, more), 0);
      continue;
    }
    Value* large = ir_.CreateAnd(more, all(kHeld));
    store(large, 0), store(ir_.CreateFSub(element, ir_.CreateBitCast(large, four)), 1);
  }
}

/// A stage from where the warp's group has its parts of the sum.
Value* ProductEmitter::of_group(const Side& side, Value* stage) {
  if (product_.groups == 1) return stage;
  const unsigned bytes = product_.block_bytes / product_.groups, elements = bytes / static_cast<unsigned>(size_of(product_.dtype));
  return at_bytes(stage, ir_.CreateMul(group_, number(side.operand.along_sum ? bytes : elements * side.row_bytes())));
}

void ProductEmitter::multiply(const Fragments& a, const Fragments& b, Carried& sums) {
  if (!a.small.empty()) multiply_tiles(a.small, b.large, sums), multiply_tiles(a.large, b.small, sums);
  multiply_tiles(a.large, b.large, sums);
}

void ProductEmitter::multiply_tiles(const std::vector<Registers>& a, const std::vector<Registers>& b, Carried& sums) {
  for (std::size_t m = 0; m < a.size(); ++m)
    for (std::size_t n = 0; n < b.size(); ++n) {
      const std::size_t at = 4 * (m * b.size() + n);
      const auto made = isa_.multiply(b_, product_.dtype, a[m], b[n], std::span(sums).subspan(at, 4));
      std::ranges::copy(made, sums.begin() + static_cast<std::ptrdiff_t>(at));
    }
}

/// Of `a` a tile has 16 rows and four registers, of `b` 8 columns and two: those of two tiles are read together.
ProductEmitter::Fragments ProductEmitter::fragments(const Side& side, Value* stage, unsigned part, unsigned tiles, Value* first) {
  const bool is_left = side.is_left(), by_words = product_.dtype == DType::f32 && !side.operand.along_sum;
  Fragments made;
  for (unsigned at = 0; at < tiles * (is_left ? 16 : 8); at += 16) {
    Value* place = ir_.CreateAdd(first, number(at));
    Registers words = by_words ? words_of(side, stage, part, place, is_left) : matrices_of(side, stage, part, place, is_left);
    Registers small;
    if (product_.is_exact()) split(Registers(words), words, small);
    else if (product_.rounds && !side.operand.rounded) words = rounded(words);
    const auto add = [&](std::size_t begin, std::size_t count) {
      made.large.emplace_back(words.begin() + static_cast<std::ptrdiff_t>(begin), words.begin() + static_cast<std::ptrdiff_t>(begin + count));
      if (!small.empty()) made.small.emplace_back(small.begin() + static_cast<std::ptrdiff_t>(begin), small.begin() + static_cast<std::ptrdiff_t>(begin + count));
    };
    if (is_left) add(0, 4);
    else add(0, 2), add(2, 2);
  }
  return made;
}

/// Four matrices of 8 x 16 bytes; a thread says where one row of one of them is.
ProductEmitter::Registers ProductEmitter::matrices_of(const Side& side, Value* stage, unsigned part, Value* first, bool is_left) {
  Value *row = ir_.CreateURem(lane_number_, number(8)), *low = ir_.CreateURem(ir_.CreateUDiv(lane_number_, number(8)), number(2)), *high = ir_.CreateUDiv(lane_number_, number(16));
  // Registers of `a` go down its rows first, those of `b` along the sum.
  Value *of_side = is_left ? low : high, *of_sum = is_left ? high : low;
  const unsigned bytes = side.row_bytes();
  const auto place = [&](Value* down, Value* along) { return at_bytes(stage, ir_.CreateAdd(number(side.start), ir_.CreateAdd(ir_.CreateMul(down, number(bytes)), along))); };
  if (side.operand.along_sum) {
    Value* down = ir_.CreateAdd(first, ir_.CreateAdd(row, ir_.CreateMul(of_side, number(8))));
    return isa_.load_matrices(b_, place(down, ir_.CreateAdd(number(part * kPartBytes), ir_.CreateMul(of_sum, number(kMatrixBytes)))), false);
  }
  const auto element = static_cast<unsigned>(size_of(product_.dtype));
  Value* down = ir_.CreateAdd(number(part * kPartBytes / element), ir_.CreateAdd(row, ir_.CreateMul(of_sum, number(8))));
  return isa_.load_matrices(b_, place(down, ir_.CreateMul(ir_.CreateAdd(first, ir_.CreateMul(of_side, number(8))), number(element))), true);
}

/// The same of float32 along the side: nothing transposes words.
ProductEmitter::Registers ProductEmitter::words_of(const Side& side, Value* stage, unsigned part, Value* first, bool is_left) {
  Value *place = ir_.CreateAdd(first, ir_.CreateUDiv(lane_number_, number(4))), *in_row = ir_.CreateURem(lane_number_, number(4));
  Value* depth = ir_.CreateAdd(number(part * kPartBytes / sizeof(float)), side.operand.in_pairs ? ir_.CreateMul(in_row, number(2)) : in_row);
  Registers words;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned of_side = is_left ? i % 2 : i / 2, of_sum = is_left ? i / 2 : i % 2, further = side.operand.in_pairs ? 1 : 4;
    Value* element = element_at(side, stage, ir_.CreateAdd(place, number(of_side * 8)), ir_.CreateAdd(depth, number(of_sum * further)));
    words.push_back(ir_.CreateBitCast(element, ir_.getInt32Ty()));
  }
  return words;
}

Value* ProductEmitter::element_at(const Side& side, Value* stage, Value* place, Value* depth) { return ir_.CreateLoad(ir_.getFloatTy(), place_of_element(side, stage, place, depth)); }

Value* ProductEmitter::place_of_element(const Side& side, Value* stage, Value* place, Value* depth) {
  const unsigned bytes = side.row_bytes();
  Value *down = side.operand.along_sum ? place : depth, *along = side.operand.along_sum ? depth : place;
  return at_bytes(stage, ir_.CreateAdd(number(side.start), ir_.CreateAdd(ir_.CreateMul(down, number(bytes)), ir_.CreateMul(along, number(sizeof(float))))));
}

/// What tensor cores cut off of what is left is below what float32 holds. Where the element is no finite number, what is left is NaN, even where the sum of
/// bits has made a number of a NaN.
void ProductEmitter::split(const Registers& words, Registers& large, Registers& small) {
  large.clear();
  for (Value* word : words) {
    large.push_back(ir_.CreateAnd(ir_.CreateAdd(word, number(kHalfOfLast)), number(kHeld)));
    const auto as_float = [&](Value* bits) { return ir_.CreateBitCast(bits, ir_.getFloatTy()); };
    small.push_back(ir_.CreateBitCast(ir_.CreateFSub(as_float(word), as_float(large.back())), ir_.getInt32Ty()));
  }
}

/// Tensor cores cut off what tf32 does not hold: half of its last place is added before. A NaN stays what it is.
ProductEmitter::Registers ProductEmitter::rounded(const Registers& words) {
  Registers made;
  for (Value* word : words) {
    Value* element = ir_.CreateBitCast(word, ir_.getFloatTy());
    made.push_back(ir_.CreateSelect(ir_.CreateFCmpUNO(element, element), word, ir_.CreateAdd(word, number(kHalfOfLast))));
  }
  return made;
}

/// Where a sum is no finite number, an operand may have been none, whose remainder is NaN, or one that rounding made infinite: a block that meets such
/// a sum adds all up as it is.
ProductEmitter::Carried ProductEmitter::exact_where_odd(Carried sums) {
  Value *zero = llvm::ConstantFP::get(ir_.getFloatTy(), 0), *odd = zero;
  for (Value* sum : sums) odd = b_.fused_multiply_add(sum, zero, odd);
  Value* any = isa_.any_of_block(b_, ir_.CreateFCmpUNO(odd, zero));
  llvm::BasicBlock *before = ir_.GetInsertBlock(), *end = nullptr;
  Carried plain;
  where(any, [&] {
    Carried initial(sums.size(), zero);
    plain = loop(first_step_, end_step_, 1, false, SymbolId(), std::move(initial), [&](Value* step, Carried all) {
      load_step(memory_, step);
      isa_.commit_copies(b_);
      isa_.wait_for_copies(b_, 0);
      isa_.meet(b_);
      all = plain_sums(memory_, std::move(all));
      isa_.meet(b_);
      return all;
    });
    // Each group has added up all: one of them counts.
    if (product_.groups > 1)
      for (std::size_t i = 0; i < sums.size(); ++i) plain[i] = ir_.CreateSelect(ir_.CreateICmpEQ(group_, number(0)), plain[i], zero);
    end = ir_.GetInsertBlock();
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    auto* either = ir_.CreatePHI(ir_.getFloatTy(), 2);
    either->addIncoming(sums[i], before);
    either->addIncoming(plain[i], end);
    sums[i] = either;
  }
  return sums;
}

ProductEmitter::Carried ProductEmitter::plain_sums(Value* stage, Carried before) {
  Value *row = ir_.CreateAdd(warp_row_, ir_.CreateUDiv(lane_number_, number(4))), *column = ir_.CreateAdd(warp_column_, ir_.CreateMul(ir_.CreateURem(lane_number_, number(4)), number(2)));
  Carried all = loop(ir_.getInt64(0), ir_.getInt64(product_.block_depth()), 1, false, SymbolId(), std::move(before), [&](Value* at, Carried sums) {
    Value* depth = ir_.CreateTrunc(at, ir_.getInt32Ty());
    std::vector<Value*> a, b;
    for (unsigned i = 0; i < 2 * tiles_down(); ++i) a.push_back(element_at(sides_[0], stage, ir_.CreateAdd(row, number(i * 8)), depth));
    for (unsigned i = 0; i < 2 * tiles_across(); ++i) b.push_back(element_at(sides_[1], stage, ir_.CreateAdd(column, number(i / 2 * 8 + i % 2)), depth));
    for (unsigned m = 0, i = 0; m < tiles_down(); ++m)
      for (unsigned n = 0; n < tiles_across(); ++n)
        for (unsigned k = 0; k < 4; ++k, ++i) sums[i] = b_.fused_multiply_add(a[2 * m + k / 2], b[2 * n + k % 2], sums[i]);
    return sums;
  });
  all.pop_back();
  return all;
}

}  // namespace tenon::cuda
