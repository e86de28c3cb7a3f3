// Random numbers as a function of a generator's state: what is drawn from counters, as CUDA's generators draw.
#include <array>

#include "core/ops/notation/move.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011). Words are of 32 bits, in int64.
class Philox {
 public:
  explicit Philox(Scalars& s) : s_(s) {}

  using Block = std::array<Scalar, 4>;

  Block block(Block counter, Scalar key_low, Scalar key_high) {
    constexpr int kRounds = 10;
    constexpr std::int64_t kStepLow = 0x9E3779B9, kStepHigh = 0xBB67AE85;
    for (int round = 0; round < kRounds; ++round) {
      counter = mixed(counter, key_low, key_high);
      key_low = low(s_.add(key_low, number(kStepLow))), key_high = low(s_.add(key_high, number(kStepHigh)));
    }
    return counter;
  }

  Scalar number(std::int64_t n) { return s_.constant(DType::i64, n); }
  Scalar low(Scalar x) { return s_.binary(Primitive::bitwise_and, x, number(0xFFFFFFFF)); }
  Scalar high(Scalar x) { return low(s_.binary(Primitive::shift_right, x, number(32))); }

 private:
  Block mixed(const Block& c, Scalar key_low, Scalar key_high) {
    const Scalar first = s_.mul(c[0], number(0xD2511F53)), second = s_.mul(c[2], number(0xCD9E8D57));
    const auto exclusive = [&](Scalar a, Scalar b, Scalar c) { return s_.binary(Primitive::bitwise_xor, s_.binary(Primitive::bitwise_xor, a, b), c); };
    return {exclusive(high(second), c[1], key_low), low(second), exclusive(high(first), c[3], key_high), low(first)};
  }

  Scalars& s_;
};

/// Who draws an element: a thread, in which of its turns, and which word of its block.
struct Drawn {
  Scalar thread, turn, word;
};

/// Threads take elements in turns: four each, so many apart as there are threads; or `vector` of them side by side, four to a block.
Drawn drawn_at(Scalars& s, Scalar place, const Dim& threads, std::int64_t vector) {
  IndexMath math(s);
  constexpr std::int64_t kWords = 4;
  if (vector == 1) {
    const Scalar of_turn = math.mod(place, threads * Dim(kWords));
    return {math.mod(of_turn, threads), math.floor_div(place, threads * Dim(kWords)), math.floor_div(of_turn, threads)};
  }
  const Scalar group = math.floor_div(place, Dim(vector)), within = math.mod(place, Dim(vector));
  const Scalar thread = math.mod(group, threads), turn = math.floor_div(group, threads);
  if (vector <= kWords) return {thread, turn, within};
  return {thread, s.add(math.mul(turn, Dim(vector / kWords)), math.floor_div(within, Dim(kWords))), math.mod(within, Dim(kWords))};
}

Scalar place_of_point(Scalars& s, const Shape& size) {
  IndexMath math(s);
  Scalar place = math.of(Dim(0));
  for (std::size_t d = 0; d < size.size(); ++d) place = d == 0 ? s.loop_index(0) : s.add(math.mul(place, size[d]), s.loop_index(d));
  return place;
}

LoopBody philox_uniform_loop(const OpQuery& q) {
  const Shape size = q.integers("size");
  return elementwise(size, [&](Scalars& s) {
    Philox philox(s);
    const Drawn at = drawn_at(s, place_of_point(s, size), q.integer("threads"), q.constant_integer("vector", 1));
    const Scalar seed = s.load(0, DType::i64, {}), count = s.add(s.load(1, DType::i64, {}), at.turn);
    const auto words = philox.block({philox.low(count), philox.high(count), philox.low(at.thread), philox.high(at.thread)}, philox.low(seed), philox.high(seed));
    Scalar word = words[3];
    for (int i = 2; i >= 0; --i) word = s.select(s.eq(at.word, philox.number(i)), words[static_cast<std::size_t>(i)], word);
    return s.add(s.mul(s.convert(word, DType::f32), s.constant(DType::f32, 0x1p-32)), s.constant(DType::f32, 0x1p-33));
  });
}

Op philox_uniform_op() {
  Op op;
  op.name = "philox_uniform";
  op.schema = "(Tensor seed, Tensor offset, *, int[] size, int threads, int vector=1, str? device=None) -> Tensor";
  op.aliases = names({"tenon.philox_uniform.default"}, "(seed, offset, size, threads, vector=1, *, device=None)", [](ForeignArguments& a) {
    return a.call("philox_uniform", {a.value("seed"), a.value("offset")}, {{"size", a.integers("size")}, {"threads", a.integer("threads")}, {"vector", a.integer("vector", Dim(1))}});
  });
  op.traits.creates = true;
  op.no_grad_reason = "its operands are integers";
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    for (const std::size_t i : {0, 1}) TENON_USER_CHECK(!q.literal(i) && q.type(i).rank() == 0 && q.type(i).dtype == DType::i64, "the generator's state is two int64 tensors without dimensions");
    const std::int64_t vector = q.constant_integer("vector", 1);
    TENON_USER_CHECK(vector == 1 || vector == 2 || vector == 4 || vector == 8, "a thread draws 1, 2, 4, or 8 elements side by side, not {}", vector);
    const Dim threads = q.integer("threads");
    TENON_USER_CHECK(!threads.is_constant() || (threads.constant() > 0 && threads.constant() <= INT64_MAX / 8), "{} threads", threads.constant());
    return infer::created(q, DType::f32, q.integers("size"));
  };
  op.traits.is_inferred_whole = true;
  op.loop = philox_uniform_loop;
  op.samples = [] {
    std::vector<Sample> all;
    const SampleOperand state{.dtype = DType::i64, .shape = {}, .fill = Fill::special}, small{.dtype = DType::i64, .shape = {}, .fill = Fill::positive};
    for (const std::int64_t vector : {1, 2, 4, 8})
      all.push_back({.name = fmt::format("by_{}", vector), .operands = {state, small}, .attributes = {{"size", std::vector<Dim>{7, 16}}, {"threads", Dim(8)}, {"vector", Dim(vector)}}});
    all.push_back({.name = "scalar", .operands = {state, state}, .attributes = {{"size", std::vector<Dim>{}}, {"threads", Dim(256)}}});
    all.push_back({.name = "nothing", .operands = {state, small}, .attributes = {{"size", std::vector<Dim>{0, 4}}, {"threads", Dim(256)}}});
    return all;
  };
  return op;
}

}  // namespace

Family random_ops() { return {philox_uniform_op()}; }

}  // namespace tenon::ops
