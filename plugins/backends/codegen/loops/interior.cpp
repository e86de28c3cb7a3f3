#include "loops/interior.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tenon::codegen {

using ir::DimAtom;
using ir::DimOp;
using ir::DimTerm;
using P = ops::Primitive;

namespace {

/// Where along a loop a condition has one answer.
struct Side {
  std::size_t loop;
  Dim low, high;
  bool holds;
};

/// Every loop and symbol that the kernel has, with what is known of it.
IndexAlgebra algebra_of(const Kernel& kernel) {
  std::uint32_t symbols = 0;
  const auto look = [&](const Dim& d) {
    d.for_each_symbol([&](SymbolId s) { symbols = is_graph_symbol(s) ? std::max(symbols, s.value + 1) : symbols; });
  };
  for (const auto* loops : {&kernel.outer, &kernel.inner})
    for (const Loop& l : *loops) look(l.extent);
  for (const Operation& op : kernel.operations) look(op.offset);
  IndexAlgebra algebra;
  algebra.add_symbols(symbols);
  for (const auto* loops : {&kernel.outer, &kernel.inner})
    for (const Loop& l : *loops) algebra.add_loop(l.variable, l.extent);
  return algebra;
}

class InteriorMaker {
 public:
  explicit InteriorMaker(Kernel& kernel) : kernel_(kernel), algebra_(algebra_of(kernel)), lane_(kernel.outer.back().variable) {
    for (const Loop& l : kernel.outer) ranges_.push_back({l.variable, Dim(0), l.extent});
    along_ = dependents(kernel.operations, [&](const Operation& op) { return mentions(op.offset, lane_); });
  }

  std::optional<Interior> make() {
    const std::size_t operations = kernel_.operations.size(), reductions = kernel_.reductions.size();
    for (OpId id = 0; id < operations; ++id) inside_.push_back(settled(id));
    Interior interior{ranges_, kernel_.stages};
    for (Stage& stage : interior.stages) {
      for (auto& r : stage.reductions) r = settled_reduction(r);
      for (Store& store : stage.stores) store.value = inside_[store.value];
    }
    if (reads_freely_ && is_most() && checks_as_much(interior)) return interior;
    kernel_.operations.resize(operations);
    kernel_.reductions.resize(reductions);
    return {};
  }

 private:
  /// Whether every index that is checked elsewhere is checked inside, though nothing may be read there.
  bool checks_as_much(const Interior& interior) const {
    const std::vector<bool> everywhere = needed_by(kernel_, kernel_.stages), needed = needed_by(kernel_, interior.stages);
    for (OpId id = 0; id < inside_.size(); ++id) {
      const Operation& op = kernel_.operations[id];
      const bool asks = op.kind == OperationKind::checked && everywhere[id];
      if (asks && !needed[inside_[id]] && !(op.masked && known_truth(inside_[op.args[1]]) == false)) return false;
    }
    return true;
  }

  // ---- where conditions have one answer
  bool is_most() const {
    double part = 1;
    for (std::size_t i = 0; i < ranges_.size(); ++i) part *= share(ranges_[i].low, ranges_[i].high, i);
    return part >= 0.5;
  }

  double share(const Dim& low, const Dim& high, std::size_t loop) const {
    const double all = algebra_.estimate(kernel_.outer[loop].extent);
    return (std::min(all, algebra_.estimate(high)) - algebra_.estimate(low)) / std::max(1.0, all);
  }

  /// The least or greatest value over all iterations of the loops; nothing where that is not their first or last one.
  std::optional<Dim> extreme(const Dim& dim, bool greatest) const {
    Dim sum(dim.offset());
    for (const DimTerm& term : dim.terms()) {
      const Dim whole = term_of(term);
      bool fixed = true;
      whole.for_each_symbol([&](SymbolId s) { fixed = fixed && is_graph_symbol(s); });
      if (fixed) {
        sum = sum + whole;
        continue;
      }
      if (term.atoms.size() != 1 || term.atoms[0].op != DimOp::symbol || !is_loop(term.atoms[0].symbol)) return {};
      if ((term.coefficient > 0) == greatest) sum = sum + Dim(term.coefficient) * (algebra_.extent(term.atoms[0].symbol) - Dim(1));
    }
    bool fixed = true;
    sum.for_each_symbol([&](SymbolId s) { fixed = fixed && is_graph_symbol(s); });
    return fixed ? std::optional(sum) : std::nullopt;
  }

  std::optional<std::size_t> only_outer_loop(const Dim& dim) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < kernel_.outer.size(); ++i) {
      if (!mentions(dim, kernel_.outer[i].variable)) continue;
      if (found) return {};
      found = i;
    }
    return found;
  }

  /// Where x / k + rest < 0 or -(x / k) + rest < 0, the same of x; other expressions as they are.
  static Dim without_quotient(const Dim& negative) {
    for (const DimTerm& term : negative.terms()) {
      if (term.atoms.size() != 1 || term.atoms[0].op != DimOp::floor_div || std::abs(term.coefficient) != 1) continue;
      const Dim &divided = term.atoms[0].operands[0], &divisor = term.atoms[0].operands[1], rest = negative - term_of(term);
      if (!divisor.is_constant() || divisor.constant() <= 0) continue;
      return term.coefficient == 1 ? divided + rest * divisor : (rest + Dim(1)) * divisor - divided - Dim(1);
    }
    return negative;
  }

  /// Where `negative` is below 0, or where it is not: the longer of both, if that is half of the loop's iterations or more.
  std::optional<Side> longer_side(const Dim& condition) const {
    const Dim negative = without_quotient(condition);
    const auto loop = only_outer_loop(negative);
    const auto along = loop ? split_affine(negative, kernel_.outer[*loop].variable) : std::nullopt;
    if (!along || !along->coefficient.is_constant() || along->coefficient == Dim(0)) return {};
    const auto least = extreme(along->rest, false), greatest = extreme(along->rest, true);
    if (!least || !greatest) return {};
    const std::int64_t step = along->coefficient.constant();
    const Dim stride(std::abs(step)), end = kernel_.outer[*loop].extent;
    const Side holds = step > 0 ? Side{*loop, Dim(0), -floor_div(*greatest, stride), true} : Side{*loop, floor_div(*greatest, stride) + Dim(1), end, true};
    const Side fails = step > 0 ? Side{*loop, -floor_div(*least, stride), end, false} : Side{*loop, Dim(0), floor_div(*least, stride) + Dim(1), false};
    const double first = share(holds.low, holds.high, *loop), second = share(fails.low, fails.high, *loop);
    if (std::max(first, second) < 0.5) return {};
    return first >= second ? holds : fails;
  }

  bool take(const Side& side) {
    Interior::Range& range = ranges_[side.loop];
    range.low = max(range.low, side.low);
    range.high = min(range.high, side.high);
    return side.holds;
  }

  /// Whether `negative` is below 0 inside; narrows the ranges to where it has one answer.
  std::optional<bool> is_negative(const Dim& negative) {
    if (negative.is_constant()) return negative.constant() < 0;
    const auto side = longer_side(negative);
    return side ? std::optional(take(*side)) : std::nullopt;
  }

  /// Which of two conditions that exclude each other, but for where both hold, holds inside.
  std::optional<std::size_t> which_is_negative(const Dim& first, const Dim& second) {
    const Dim* conditions[] = {&first, &second};
    for (std::size_t i : {0u, 1u}) {
      const auto side = longer_side(*conditions[i]);
      if (!side || !side->holds) continue;
      take(*side);
      return i;
    }
    return {};
  }

  std::optional<bool> is_zero(const Dim& difference) { return which_is_negative(difference, -difference) ? std::optional(false) : std::nullopt; }

  // ---- places
  Dim settled(const Dim& dim) {
    if (dim.is_constant()) return dim;
    Dim sum(dim.offset());
    for (const DimTerm& term : dim.terms()) {
      Dim product(term.coefficient);
      for (const DimAtom& atom : term.atoms) product = product * settled(atom);
      sum = sum + product;
    }
    return algebra_.simplify(sum);
  }

  Dim settled(const DimAtom& atom) {
    if (atom.op == DimOp::symbol) return is_value(atom.symbol) ? Dim::symbol(value_symbol(inside_[atom.symbol.value - kFirstValue])) : Dim::symbol(atom.symbol);
    const Dim a = settled(atom.operands[0]), b = settled(atom.operands[1]);
    if (atom.op == DimOp::min || atom.op == DimOp::max) {
      if (const auto less = which_is_negative(a - b - Dim(1), b - a - Dim(1))) return (*less == 0) == (atom.op == DimOp::min) ? a : b;
      return atom.op == DimOp::min ? min(a, b) : max(a, b);
    }
    const bool quotient = atom.op == DimOp::floor_div;
    if (const auto rounds = known_quotient(a, b)) return quotient ? Dim(*rounds) : a - Dim(*rounds) * b;
    return quotient ? algebra_.floor_div(a, b) : algebra_.mod(a, b);
  }

  /// The quotient of what wraps at most once.
  std::optional<std::int64_t> known_quotient(const Dim& divided, const Dim& divisor) {
    if (!divisor.is_constant() || divisor.constant() <= 0) return {};
    const auto least = extreme(divided, false), greatest = extreme(divided, true);
    if (!least || !greatest || !least->is_constant() || !greatest->is_constant()) return {};
    if (least->constant() < 0 || greatest->constant() >= 2 * divisor.constant()) return {};
    const auto below = is_negative(divided - divisor);
    return below ? std::optional<std::int64_t>(*below ? 0 : 1) : std::nullopt;
  }

  // ---- operations
  bool varies_along(const Operation& op) const {
    return mentions(op.offset, lane_) || std::ranges::any_of(needs_of(op), [&](OpId need) { return along_[need]; });
  }

  OpId add(Operation op) {
    along_.push_back(varies_along(op));
    kernel_.operations.push_back(std::move(op));
    return static_cast<OpId>(kernel_.operations.size() - 1);
  }

  OpId truth(bool value) {
    OpId& known = truths_[value];
    if (known == kNoOp) known = add({.kind = OperationKind::constant, .dtype = DType::b8, .payload = value});
    return known;
  }

  std::optional<bool> known_truth(OpId id) const {
    const Operation& op = kernel_.operations[id];
    if (op.kind != OperationKind::constant || op.dtype != DType::b8) return {};
    return op.payload != 0;
  }

  std::optional<Dim> index_of(OpId id) const {
    const Operation& op = kernel_.operations[id];
    if (op.kind == OperationKind::index) return op.offset;
    if (op.kind == OperationKind::constant && op.dtype == DType::i64) return Dim(static_cast<std::int64_t>(op.payload));
    return {};
  }

  std::optional<bool> compared(const Operation& op) {
    const auto a = index_of(op.args[0]), b = index_of(op.args[1]);
    if (!a || !b) return {};
    const auto negation = [](std::optional<bool> answer) { return answer ? std::optional(!*answer) : answer; };
    switch (op.primitive) {
      case P::lt: return is_negative(*a - *b);
      case P::gt: return is_negative(*b - *a);
      case P::ge: return negation(is_negative(*a - *b));
      case P::le: return negation(is_negative(*b - *a));
      case P::eq: return is_zero(*a - *b);
      case P::ne: return negation(is_zero(*a - *b));
      default: return {};
    }
  }

  /// A primitive whose result is one of its operands, or known.
  std::optional<OpId> chosen(const Operation& op) {
    if (op.primitive >= P::eq && op.primitive <= P::ge) {
      const auto answer = compared(op);
      return answer ? std::optional(truth(*answer)) : std::nullopt;
    }
    const auto inside = [&](std::size_t i) { return inside_[op.args[i]]; };
    if (op.primitive == P::select) {
      const auto condition = known_truth(inside(0));
      return condition ? std::optional(inside(*condition ? 1 : 2)) : std::nullopt;
    }
    if (op.primitive == P::logical_not) {
      const auto operand = known_truth(inside(0));
      return operand ? std::optional(truth(!*operand)) : std::nullopt;
    }
    if (op.primitive != P::logical_and && op.primitive != P::logical_or) return {};
    for (std::size_t i : {0u, 1u})
      if (const auto operand = known_truth(inside(i))) return *operand == (op.primitive == P::logical_or) ? truth(*operand) : inside(1 - i);
    return {};
  }

  /// The operation that stands for this one inside.
  OpId settled(OpId id) {
    Operation op = kernel_.operations[id];
    if (op.kind == OperationKind::primitive)
      if (const auto known = chosen(op)) return *known;
    if (op.kind == OperationKind::load || op.kind == OperationKind::checked) return settled_access(id, std::move(op));
    bool changed = false;
    for (OpId& a : op.args)
      if (a != kNoOp) changed = std::exchange(a, inside_[a]) != a || changed;
    if (op.kind == OperationKind::reduced) {
      const auto reduction = static_cast<std::uint32_t>(op.payload >> 16), inside = settled_reduction(reduction);
      changed = inside != reduction;
      op.payload = (op.payload & 0xffff) | std::uint64_t{inside} << 16;
    }
    if (op.kind == OperationKind::index) {
      const Dim place = settled(op.offset);
      changed = changed || !(place == op.offset);
      op.offset = place;
    }
    return changed ? add(std::move(op)) : id;
  }

  /// What is the same for all iterations of the last loop is computed in front of it, inside or not: it keeps its mask.
  OpId settled_access(OpId id, Operation op) {
    const std::size_t mask = op.kind == OperationKind::load ? 0 : 1;
    const auto answer = op.masked ? known_truth(inside_[op.args[mask]]) : std::nullopt;
    if (op.kind == OperationKind::load && answer == false) {
      reads_freely_ = reads_freely_ || along_[id];
      return inside_[op.args[1]];
    }
    if (!along_[id]) return id;
    const Operation before = op;
    for (OpId& a : op.args)
      if (a != kNoOp) a = inside_[a];
    if (answer == true) {
      op.masked = false;
      op.args[mask] = kNoOp;
      if (op.kind == OperationKind::load) op.args[1] = kNoOp;
    }
    op.offset = settled(op.offset);
    const bool same = op.masked == before.masked && std::ranges::equal(op.args, before.args) && op.offset == before.offset;
    if (same || !varies_along(op)) return id;
    reads_freely_ = reads_freely_ || op.kind == OperationKind::load;
    return add(std::move(op));
  }

  std::uint32_t settled_reduction(std::uint32_t number) {
    if (const auto known = reductions_.find(number); known != reductions_.end()) return known->second;
    Reduction inside = kernel_.reductions[number];
    bool changed = false;
    for (OpId& e : inside.elements) changed = std::exchange(e, inside_[e]) != e || changed;
    if (changed) kernel_.reductions.push_back(std::move(inside));
    return reductions_[number] = changed ? static_cast<std::uint32_t>(kernel_.reductions.size() - 1) : number;
  }

  Kernel& kernel_;
  IndexAlgebra algebra_;
  SymbolId lane_;
  std::vector<Interior::Range> ranges_;
  std::vector<bool> along_;     // operations that differ between iterations of the last loop
  std::vector<OpId> inside_;    // by operation, what stands for it
  std::map<std::uint32_t, std::uint32_t> reductions_;
  OpId truths_[2] = {kNoOp, kNoOp};
  bool reads_freely_ = false;
};

}  // namespace

std::optional<Interior> add_interior(Kernel& kernel) {
  if (kernel.outer.empty() || kernel.scatter) return {};
  return InteriorMaker(kernel).make();
}

}  // namespace tenon::codegen
