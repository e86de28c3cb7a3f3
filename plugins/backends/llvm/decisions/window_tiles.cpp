#include "decisions/window_tiles.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tenon::llvm_backend {

using namespace codegen;
namespace {

using P = ops::Primitive;

/// Taps of a row that are unrolled, and operations of a kernel at most: compile time grows with them.
constexpr std::int64_t kFewestTaps = 2, kMostTaps = 8;
constexpr std::size_t kMostOperations = 500;
/// Results that are computed together: sums and weights must stay in registers, of which AVX-512 has twice as many.
constexpr std::int64_t kMostTogether = 8, kMostWithFewRegisters = 4;
constexpr unsigned kLanesOfManyRegisters = 16;

/// True when the reduction adds up floats of one dtype, without more.
bool is_sum(const Reduction& reduction) {
  const auto& combine = reduction.reducer.combine.instructions;
  const bool adds = reduction.elements.size() == 1 && combine.size() == 3 && combine.back().op == P::add && is_float(combine.back().dtype);
  return adds && std::ranges::count(combine, P::parameter, &ops::Instruction::op) == 2;
}

/// The same operation: it gives the same value.
bool are_equal(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.primitive == b.primitive && a.dtype == b.dtype && a.masked == b.masked && a.payload == b.payload && std::ranges::equal(a.args, b.args) && a.offset == b.offset;
}

/// The operations of a kernel at several places, each once.
class Copies {
 public:
  Copies(const Kernel& from, const IndexAlgebra& algebra) : from_(from), algebra_(algebra) {}

  /// A place: what stands for loops, and for the reduction.
  struct Place {
    std::vector<std::pair<SymbolId, Dim>> loops;
    std::uint64_t reduction = 0;
    std::unordered_map<OpId, OpId> known = {};
  };

  Dim at(Dim index, const Place& place) const {
    for (const auto& [loop, by] : place.loops) index = algebra_.substitute(index, loop, by);
    return index;
  }

  OpId copy(OpId id, Place& place) {
    if (const auto known = place.known.find(id); known != place.known.end()) return known->second;
    Operation op = from_.operations[id];
    for (OpId& a : op.args)
      if (a != kNoOp) a = copy(a, place);
    op.offset = at(op.offset, place);
    if (op.kind == OperationKind::reduced) op.payload = place.reduction << 16 | (op.payload & 0xffff);
    return place.known[id] = chosen_anyway(op).value_or(add(op));
  }

  OpId add(const Operation& op) {
    const auto known = std::ranges::find_if(operations, [&](const Operation& other) { return are_equal(op, other); });
    if (known != operations.end()) return static_cast<OpId>(known - operations.begin());
    operations.push_back(op);
    return static_cast<OpId>(operations.size() - 1);
  }

  std::vector<Operation> operations;

 private:
  /// What a choice gives where it chooses as a masked load has chosen before.
  std::optional<OpId> chosen_anyway(const Operation& op) const {
    if (op.kind != OperationKind::primitive || op.primitive != P::select) return {};
    const Operation& load = operations[op.args[1]];
    const bool same = load.kind == OperationKind::load && load.masked && load.dtype == op.dtype && load.args[0] == op.args[0] && load.args[1] == op.args[2];
    return same ? std::optional(op.args[1]) : std::nullopt;
  }

  const Kernel& from_;
  const IndexAlgebra& algebra_;
};

class WindowTiles {
 public:
  WindowTiles(Kernel& kernel, IndexAlgebra& algebra, unsigned lanes) : kernel_(kernel), algebra_(algebra), most_(lanes >= kLanesOfManyRegisters ? kMostTogether : kMostWithFewRegisters) {}

  void run() {
    if (!is_window_sum()) return;
    const auto loop = shared_loop();
    if (!loop) return;
    for (std::int64_t together = most_; together > 1; --together)
      if (kernel_.outer[*loop].extent.constant() % together == 0 && unroll(*loop, together)) return;
  }

 private:
  const Loop& taps() const { return kernel_.inner.back(); }

  /// A sum of products over at least two loops, the last of which is short, and one pass that stores what comes of it.
  bool is_window_sum() const {
    if (kernel_.inner.size() < 2 || kernel_.outer.size() < 2 || kernel_.reductions.size() != 1 || kernel_.stages.size() != 2 || kernel_.scatter) return false;
    const Stage &sum = kernel_.stages[0], &row = kernel_.stages[1];
    if (sum.kind != StageKind::reduce || row.kind != StageKind::row || !sum.stores.empty() || !is_sum(kernel_.reductions[0])) return false;
    const Dim& count = taps().extent;
    if (!count.is_constant() || count.constant() < kFewestTaps || count.constant() > kMostTaps) return false;
    const Operation& element = kernel_.operations[kernel_.reductions[0].elements[0]];
    if (element.kind != OperationKind::primitive || element.primitive != P::mul) return false;
    return std::ranges::none_of(kernel_.operations, [](const Operation& op) { return op.kind == OperationKind::checked || is_computed(op.offset); });
  }

  /// An outer loop, not the lanes', whose neighbours read windows that overlap along the last inner one, by a factor that others do not depend on.
  std::optional<std::size_t> shared_loop() const {
    for (std::size_t i = kernel_.outer.size() - 1; i-- > 0;) {
      const Loop& loop = kernel_.outer[i];
      if (!loop.extent.is_constant()) continue;
      bool overlaps = false, apart = false;
      for (const Operation& op : kernel_.operations) {
        if (op.kind != OperationKind::load || !mentions(op.offset, taps().variable)) continue;
        const auto along = split_affine(op.offset, loop.variable), by_tap = split_affine(op.offset, taps().variable);
        if (!along || !by_tap || !along->coefficient.is_constant() || !by_tap->coefficient.is_constant()) return {};
        if (along->coefficient == Dim(0)) apart = true;
        else overlaps = overlaps || along->coefficient.constant() % by_tap->coefficient.constant() == 0;
      }
      if (overlaps && apart) return i;
    }
    return {};
  }

  /// Makes so many neighbours along the loop one, and all taps one; not where too much comes of it.
  bool unroll(std::size_t outer, std::int64_t together) {
    Loop& loop = kernel_.outer[outer];
    const Dim extent(loop.extent.constant() / together);
    const SymbolId blocks = algebra_.new_loop(extent);
    Copies copies(kernel_, algebra_);
    std::vector<Reduction> sums;
    Stage row{StageKind::row, {}, {}}, sum{StageKind::reduce, {}, {}};
    for (std::int64_t j = 0; j < together; ++j) {
      const std::pair stands{loop.variable, Dim::symbol(blocks) * Dim(together) + Dim(j)};
      sums.push_back({kernel_.reductions[0].reducer, {sum_of_taps(copies, stands)}});
      sum.reductions.push_back(static_cast<std::uint32_t>(j));
      Copies::Place place{{stands}, static_cast<std::uint64_t>(j)};
      for (const Store& store : kernel_.stages[1].stores) row.stores.push_back({store.buffer, copies.at(store.offset, place), copies.copy(store.value, place)});
      if (copies.operations.size() > kMostOperations) return false;
    }
    loop = {blocks, extent};
    kernel_.inner.pop_back();
    kernel_.operations = std::move(copies.operations), kernel_.reductions = std::move(sums), kernel_.stages = {std::move(sum), std::move(row)};
    return true;
  }

  /// The products of all taps, added up in order.
  OpId sum_of_taps(Copies& copies, const std::pair<SymbolId, Dim>& stands) {
    const OpId element = kernel_.reductions[0].elements[0];
    OpId sum = kNoOp;
    for (std::int64_t t = 0; t < taps().extent.constant(); ++t) {
      Copies::Place place{{stands, {taps().variable, Dim(t)}}};
      Operation product = kernel_.operations[element];
      for (OpId& a : product.args)
        if (a != kNoOp) a = copies.copy(a, place);
      if (sum != kNoOp) product.primitive = P::fma, product.args[2] = sum;
      sum = copies.add(product);
    }
    return sum;
  }

  Kernel& kernel_;
  IndexAlgebra& algebra_;
  std::int64_t most_;
};

}  // namespace

void tile_windows(Kernel& kernel, IndexAlgebra& algebra, unsigned lanes) { WindowTiles(kernel, algebra, lanes).run(); }

}  // namespace tenon::llvm_backend
