#include "products/attention_emitter.h"

#include <algorithm>
#include <limits>
#include <numbers>

namespace tenon::cuda {

using llvm::Value;

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();  // a score that is not seen

}  // namespace

AttentionEmitter::Carried AttentionEmitter::Rows::carried() const {
  Carried all = sums;
  all.insert(all.end(), {largest[0], largest[1], weight[0], weight[1]});
  return all;
}

AttentionEmitter::Rows AttentionEmitter::Rows::of(Carried values) {
  const std::size_t at = values.size() - 4;
  Rows rows{{}, {values[at], values[at + 1]}, {values[at + 2], values[at + 3]}};
  values.resize(at);
  rows.sums = std::move(values);
  return rows;
}

void AttentionEmitter::emit(const std::string& name) {
  begin(name, attention_.shared_bytes());
  within([&] {
    find_rows();
    const Carried made = result(attend());
    isa_.wait_for_copies(b_, 0);
    isa_.meet(b_);
    put_sums(made);
    if (product_.is_exact()) {
      Value* odd = real(0);
      for (Value* sum : made) odd = b_.fused_multiply_add(sum, real(0), odd);
      where(isa_.any_of_block(b_, ir_.CreateFCmpUNO(odd, real(0))), [&] { put_plain_sums(); });
    }
    finish_sums();
  });
  ir_.CreateRetVoid();
}

/// Where rows see what is before them, those that see most come first: they take longest. What none of a block's rows sees is not read.
void AttentionEmitter::find_rows() {
  Value* block = isa_.block_number(b_);
  if (attention_.choices.diagonal) block = ir_.CreateSub(number(static_cast<unsigned>(product_.blocks()) - 1), block);
  find_block(block);
  sides_[1].start = attention_.values_start(), sides_[1].summed = along_loop();
  if (!attention_.choices.diagonal) return;
  const auto limit = [&](Value* v, std::int64_t low, std::int64_t high) {
    v = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, ir_.getInt64(static_cast<std::uint64_t>(low)));
    return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, ir_.getInt64(static_cast<std::uint64_t>(high)));
  };
  Value* behind = ir_.CreateAdd(ir_.CreateZExt(sides_[0].first, ir_.getInt64Ty()), ir_.getInt64(static_cast<std::uint64_t>(product_.block_rows + *attention_.choices.diagonal)));
  end_step_ = ir_.CreateUDiv(ir_.CreateAdd(limit(behind, 0, product_.depth), ir_.getInt64(at_once() - 1)), ir_.getInt64(at_once()));
}

Value* AttentionEmitter::stage_of(Value* step) {
  Value* place = ir_.CreateMul(ir_.CreateURem(ir_.CreateTrunc(step, ir_.getInt32Ty()), number(product_.stages)), number(attention_.stage_bytes()));
  return shared(ir_.CreateAdd(place, number(attention_.rows_bytes())));
}

void AttentionEmitter::load_part(Value* stage, Value* step) {
  Value* step32 = ir_.CreateTrunc(step, ir_.getInt32Ty());
  within([&] { load_operand(key(ir_.CreateMul(step32, number(at_once()))), stage, number(0)); });
  within([&] { load_operand(sides_[1], stage, step32); });
}

AttentionEmitter::Rows AttentionEmitter::attend() {
  const unsigned ahead = product_.stages - 1;
  const auto load = [&](Value* step) {
    where(ir_.CreateICmpULT(step, end_step_), [&] { load_part(stage_of(step), step); });
    isa_.commit_copies(b_);
  };
  within([&] { load_operand(query(), memory_, number(0)); });
  loop(first_step_, ir_.getInt64(ahead), 1, false, SymbolId(), {}, [&](Value* step, Carried) {
    load(step);
    return Carried{};
  });
  if (product_.dtype != DType::f32) {
    isa_.wait_for_copies(b_, ahead - 1);
    isa_.meet(b_);
    for (unsigned part = 0; part < scores_.block_bytes / kPartBytes; ++part) kept_.push_back(fragments(query(), memory_, part, 1, warp_row_));
  }
  const Rows none{Carried(product_.block_columns / 2, real(0)), {real(kNothing), real(kNothing)}, {real(0), real(0)}};
  Carried all = loop(first_step_, end_step_, 1, false, SymbolId(), none.carried(), [&](Value* step, Carried before) {
    Rows rows = Rows::of(std::move(before));
    isa_.wait_for_copies(b_, ahead - 1);
    isa_.meet(b_);
    load(ir_.CreateAdd(step, ir_.getInt64(ahead)));
    Value* stage = stage_of(step);
    Carried weights = scored(step, scores(stage, step));
    weigh(rows, weights);
    add_values(rows, stage, weights);
    return rows.carried();
  });
  all.pop_back();  // the position
  return Rows::of(std::move(all));
}

void AttentionEmitter::accumulate(const Fragments& a, const Fragments& b, Carried& sums) {
  if (!product_.is_exact()) return multiply(a, b, sums);
  Carried part(sums.size(), real(0));
  multiply(a, b, part);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = ir_.CreateFAdd(sums[i], part[i]);
}

AttentionEmitter::Carried AttentionEmitter::scores(Value* stage, Value* step) {
  Carried sums(at_once() / 2, real(0));
  const Side columns = key(ir_.CreateMul(ir_.CreateTrunc(step, ir_.getInt32Ty()), number(at_once())));
  for (unsigned part = 0; part < scores_.block_bytes / kPartBytes; ++part) {
    const Fragments left = kept_.empty() ? fragments(query(), memory_, part, 1, warp_row_) : kept_[part];
    accumulate(left, fragments(columns, stage, part, at_once() / 8, number(0)), sums);
  }
  return sums;
}

/// What is made of a sum of products, at the loops' present places.
Value* AttentionEmitter::score_of(Value* sum) {
  for (codegen::OpId id = 0; id < kernel_.operations.size(); ++id)
    if (kernel_.operations[id].kind == codegen::OperationKind::reduced) here().values[id] = {sum, DType::f32, false};
  return value(attention_.score).value;
}

/// -inf behind the last column.
AttentionEmitter::Carried AttentionEmitter::scored(Value* step, const Carried& sums) {
  const bool even = product_.depth % at_once() == 0;
  const auto columns = static_cast<unsigned>(product_.depth);
  for (const codegen::Loop& l : product_.a.loops) symbol_depth_[l.variable.value] = depth() + 1;
  for (const codegen::Loop& l : along_loop()) symbol_depth_[l.variable.value] = depth() + 2;
  row_depth_ = depth() + 2;
  op_depth_.clear();
  on_lanes(1);
  results_vary_ = false;
  Carried made(sums.size());
  Value* row = ir_.CreateAdd(sides_[0].first, ir_.CreateAdd(warp_row_, ir_.CreateUDiv(lane_number_, number(4))));
  Value* column = ir_.CreateAdd(ir_.CreateMul(ir_.CreateTrunc(step, ir_.getInt32Ty()), number(at_once())), ir_.CreateMul(ir_.CreateURem(lane_number_, number(4)), number(2)));
  for (unsigned half = 0; half < 2; ++half)
    within([&] {
      decode(clamped(ir_.CreateAdd(row, number(8 * half)), product_.rows, 1), product_.a.loops);
      for (unsigned n = 0; n < at_once() / 8; ++n)
        for (unsigned i = 0; i < 2; ++i)
          within([&] {
            Value* at = ir_.CreateAdd(column, number(8 * n + i));
            decode(even ? at : clamped(at, product_.depth, 1), along_loop());
            Value* score = score_of(sums[4 * n + 2 * half + i]);
            made[4 * n + 2 * half + i] = even ? score : ir_.CreateSelect(ir_.CreateICmpULT(at, number(columns)), score, real(kNothing));
          });
    });
  return made;
}

/// Of the four threads that share a row.
Value* AttentionEmitter::over_row(Value* mine, const std::function<Value*(Value*, Value*)>& combine) {
  for (const unsigned other : {1u, 2u}) mine = combine(mine, ir_.CreateBitCast(isa_.from_other(b_, ir_.CreateBitCast(mine, ir_.getInt32Ty()), other), ir_.getFloatTy()));
  return mine;
}

Value* AttentionEmitter::exponential(Value* difference) { return isa_.power_of_two(b_, ir_.CreateFMul(difference, real(std::numbers::log2e))); }

/// What is taken from scores: where a row has seen nothing, -inf taken from itself would be no number.
Value* AttentionEmitter::shown(Value* largest) { return ir_.CreateSelect(ir_.CreateFCmpOEQ(largest, real(kNothing)), real(0), largest); }

/// Scores become weights, and what is there already is made less by what the largest score has grown.
void AttentionEmitter::weigh(Rows& rows, Carried& scores) {
  for (unsigned half = 0; half < 2; ++half) {
    std::vector<Value**> mine;
    for (std::size_t at = 2 * half; at < scores.size(); at += 4) mine.push_back(&scores[at]), mine.push_back(&scores[at + 1]);
    Value* top = *mine[0];
    for (std::size_t i = 1; i < mine.size(); ++i) top = largest_of(top, *mine[i]);
    top = largest_of(rows.largest[half], over_row(top, [&](Value* a, Value* b) { return largest_of(a, b); }));
    Value *from = shown(top), *less = exponential(ir_.CreateFSub(rows.largest[half], from)), *sum = ir_.CreateFMul(rows.weight[half], less);
    for (Value** score : mine) *score = exponential(ir_.CreateFSub(*score, from)), sum = ir_.CreateFAdd(sum, *score);
    for (std::size_t at = 2 * half; at < rows.sums.size(); at += 4)
      for (std::size_t i = 0; i < 2; ++i) rows.sums[at + i] = ir_.CreateFMul(rows.sums[at + i], less);
    rows.largest[half] = top, rows.weight[half] = sum;
  }
}

/// Sums lie as results do: of half precision as a left operand does too, of float32 but for the order of the sum, in which values are read then.
AttentionEmitter::Fragments AttentionEmitter::fragments_of(const Carried& weights, unsigned part) {
  Fragments made;
  if (product_.dtype != DType::f32) {
    Registers words;
    for (unsigned i = 0; i < 4; ++i) words.push_back(isa_.packed(b_, product_.dtype, weights[8 * part + 2 * i], weights[8 * part + 2 * i + 1]));
    made.large = {words};
    return made;
  }
  Registers words, small;
  for (const unsigned i : {0u, 2u, 1u, 3u}) words.push_back(ir_.CreateBitCast(weights[4 * part + i], ir_.getInt32Ty()));
  if (product_.is_exact()) split(Registers(words), words, small), made.small = {small};
  else words = rounded(words);
  made.large = {words};
  return made;
}

void AttentionEmitter::add_values(Rows& rows, Value* stage, const Carried& weights) {
  for (unsigned part = 0; part < product_.block_bytes / kPartBytes; ++part)
    accumulate(fragments_of(weights, part), fragments(sides_[1], stage, part, product_.block_columns / 8, number(0)), rows.sums);
}

Value* AttentionEmitter::divided(Value* sum, Value* weight) {
  Value* quotient = ir_.CreateFDiv(sum, weight);
  return attention_.choices.zeroes_hidden ? ir_.CreateSelect(ir_.CreateFCmpOEQ(weight, real(0)), real(0), quotient) : quotient;
}

AttentionEmitter::Carried AttentionEmitter::result(const Rows& rows) {
  Carried made = rows.sums;
  for (unsigned half = 0; half < 2; ++half) {
    Value* weight = over_row(rows.weight[half], [&](Value* a, Value* b) { return ir_.CreateFAdd(a, b); });
    for (std::size_t at = 2 * half; at < made.size(); at += 4)
      for (std::size_t i = 0; i < 2; ++i) made[at + i] = divided(made[at + i], weight);
  }
  return made;
}

/// Where something is no finite number, a remainder was none: all is added up once more as it is, an element of the result after the other.
void AttentionEmitter::put_plain_sums() {
  isa_.meet(b_);
  const unsigned elements = product_.block_rows * product_.block_columns / kBlock;
  loop(ir_.getInt64(0), ir_.getInt64(elements), 1, false, SymbolId(), {}, [&](Value* pass, Carried) {
    Value* at = ir_.CreateAdd(thread32_, ir_.CreateMul(ir_.CreateTrunc(pass, ir_.getInt32Ty()), number(kBlock)));
    Value *row = ir_.CreateUDiv(at, number(product_.block_columns)), *column = ir_.CreateURem(at, number(product_.block_columns));
    for (const auto* loops : {&product_.a.loops, &product_.b.loops})
      for (const codegen::Loop& l : *loops) symbol_depth_[l.variable.value] = depth();
    decode(clamped(ir_.CreateAdd(sides_[0].first, row), product_.rows, 1), product_.a.loops);
    decode(column, product_.b.loops);
    ir_.CreateStore(plain_sum(), tile_of_sums(row, column, number(0)));
    return Carried{};
  });
}

Value* AttentionEmitter::plain_sum() {
  const codegen::Operation &scored = kernel_.operations[kernel_.reductions[1].elements[0]], &weighted = kernel_.operations[kernel_.reductions[0].elements[0]];
  const codegen::Loop &along = kernel_.inner[0], &depths = kernel_.inner[1];
  symbol_depth_[along.variable.value] = depth() + 1, symbol_depth_[depths.variable.value] = depth() + 2;
  row_depth_ = depth() + 1;
  op_depth_.clear();
  on_lanes(1);
  results_vary_ = false;
  const Carried none{real(0), real(kNothing), real(0)};
  const Carried all = loop(ir_.getInt64(0), ir_.getInt64(static_cast<std::uint64_t>(product_.depth)), 1, false, SymbolId(), none, [&](Value* position, Carried before) {
    here().symbols[along.variable.value] = ir_.CreateZExtOrTrunc(position, index_type_);
    const auto dot = loop(ir_.getInt64(0), ir_.getInt64(static_cast<std::uint64_t>(scores_.depth)), 1, false, SymbolId(), {real(0)}, [&](Value* at, Carried sum) {
      here().symbols[depths.variable.value] = ir_.CreateZExtOrTrunc(at, index_type_);
      return Carried{b_.fused_multiply_add(value(scored.args[0]).value, value(scored.args[1]).value, sum[0])};
    });
    Value *score = score_of(dot[0]), *top = largest_of(before[1], score), *from = shown(top);
    Value *less = exponential(ir_.CreateFSub(before[1], from)), *weight = exponential(ir_.CreateFSub(score, from));
    Value* sum = b_.fused_multiply_add(weight, b_.convert(value(weighted.args[1]), DType::f32).value, ir_.CreateFMul(before[0], less));
    return Carried{sum, top, ir_.CreateFAdd(ir_.CreateFMul(before[2], less), weight)};
  });
  return divided(all[0], all[2]);
}

}  // namespace tenon::cuda
