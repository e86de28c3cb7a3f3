#include "decisions/paired_points.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tenon::llvm_backend {

using namespace codegen;
namespace {

using P = ops::Primitive;

constexpr std::size_t kMostPaired = 500;

bool is_truth(const Operation& op, bool value) { return op.kind == OperationKind::constant && op.dtype == DType::b8 && (op.payload != 0) == value; }

std::optional<std::int64_t> known_index(const Operation& op) {
  if (op.kind == OperationKind::constant && op.dtype == DType::i64) return static_cast<std::int64_t>(op.payload);
  return {};
}

/// What a comparison of known indices gives.
std::optional<bool> compared(P p, std::int64_t a, std::int64_t b) {
  switch (p) {
    case P::eq: return a == b;
    case P::ne: return a != b;
    case P::lt: return a < b;
    case P::le: return a <= b;
    case P::gt: return a > b;
    case P::ge: return a >= b;
    default: return {};
  }
}

class PairedPoints {
 public:
  PairedPoints(Kernel& kernel, IndexAlgebra& algebra) : kernel_(kernel), algebra_(algebra) {}

  void run() {
    if (!may_pair()) return;
    const Loop last = kernel_.outer.back();
    const Dim half = Dim(last.extent.constant() / 2);
    const std::optional<SymbolId> pair = half == Dim(1) ? std::nullopt : std::optional(algebra_.new_loop(half));
    const Dim first = pair ? Dim::symbol(*pair) * Dim(2) : Dim(0);
    variable_ = last.variable, points_[0] = first, points_[1] = first + Dim(1);
    if (!chooses_by_parity()) return;
    std::vector<Store> stores;
    for (const Store& s : kernel_.stages[0].stores)
      for (int point : {0, 1}) stores.push_back({s.buffer, at(s.offset, point), copy(s.value, point)});
    kernel_.stages[0].stores = std::move(stores);
    kernel_.operations = std::move(made_);
    kernel_.outer.pop_back();
    if (pair) kernel_.outer.push_back({*pair, half});
  }

 private:
  bool may_pair() const {
    if (kernel_.scatter || !kernel_.inner.empty() || !kernel_.reductions.empty() || kernel_.outer.empty() || kernel_.stages.size() != 1) return false;
    if (kernel_.stages[0].kind != StageKind::row || kernel_.operations.size() > kMostPaired) return false;
    const Loop& last = kernel_.outer.back();
    if (!last.extent.is_constant() || last.extent.constant() < 2 || last.extent.constant() % 2 != 0) return false;
    const auto refers = [](const Dim& offset) {
      bool any = false;
      offset.for_each_symbol([&](SymbolId s) { any = any || is_value(s); });
      return any;
    };
    return std::ranges::none_of(kernel_.operations, [&](const Operation& op) { return refers(op.offset); }) &&
           std::ranges::all_of(kernel_.stages[0].stores, [&](const Store& s) { return !refers(s.offset) && mentions(s.offset, last.variable); });
  }

  Dim at(const Dim& index, int point) const { return algebra_.simplify(algebra_.substitute(index, variable_, points_[point])); }

  /// Whether some choice is known at each of the two points, and not the same.
  bool chooses_by_parity() const {
    return std::ranges::any_of(kernel_.operations, [&](const Operation& op) {
      if (op.kind != OperationKind::index || !mentions(op.offset, variable_)) return false;
      const Dim even = at(op.offset, 0), odd = at(op.offset, 1);
      return even.is_constant() && odd.is_constant() && !(even == odd);
    });
  }

  OpId copy(OpId id, int point) {
    known_[point].resize(kernel_.operations.size(), kNoOp);
    if (const OpId known = known_[point][id]; known != kNoOp) return known;
    Operation op = kernel_.operations[id];
    for (OpId& a : op.args)
      if (a != kNoOp) a = copy(a, point);
    op.offset = at(op.offset, point);
    const std::optional<OpId> chosen = folded(op);
    return known_[point][id] = chosen ? *chosen : add(op);
  }

  /// The operation that gives what this one would, where its choice is known.
  std::optional<OpId> folded(const Operation& op) {
    const auto arg = [&](int k) -> const Operation& { return made_[op.args[k]]; };
    if (op.kind == OperationKind::index && op.offset.is_constant())
      return add({.kind = OperationKind::constant, .dtype = DType::i64, .payload = static_cast<std::uint64_t>(op.offset.constant())});
    if (op.kind == OperationKind::load && op.masked && is_truth(arg(0), false)) return op.args[1];
    if (op.kind == OperationKind::load && op.masked && is_truth(arg(0), true)) return add({.kind = op.kind, .dtype = op.dtype, .payload = op.payload, .offset = op.offset});
    if (op.kind != OperationKind::primitive) return {};
    if (op.primitive == P::select && is_truth(arg(0), true)) return op.args[1];
    if (op.primitive == P::select && is_truth(arg(0), false)) return op.args[2];
    if (op.primitive == P::logical_and && (is_truth(arg(0), false) || is_truth(arg(1), true))) return op.args[0];
    if (op.primitive == P::logical_and && (is_truth(arg(1), false) || is_truth(arg(0), true))) return op.args[1];
    if (op.primitive < P::eq || op.primitive > P::ge) return {};
    const auto a = known_index(arg(0)), b = known_index(arg(1));
    const auto answer = a && b ? compared(op.primitive, *a, *b) : std::nullopt;
    return answer ? std::optional(add({.kind = OperationKind::constant, .dtype = DType::b8, .payload = *answer})) : std::nullopt;
  }

  OpId add(const Operation& op) {
    const auto same = [&](const Operation& o) {
      return o.kind == op.kind && o.primitive == op.primitive && o.dtype == op.dtype && o.masked == op.masked && o.payload == op.payload && std::ranges::equal(o.args, op.args) && o.offset == op.offset;
    };
    const auto found = std::ranges::find_if(made_, same);
    if (found != made_.end()) return static_cast<OpId>(found - made_.begin());
    made_.push_back(op);
    return static_cast<OpId>(made_.size() - 1);
  }

  Kernel& kernel_;
  IndexAlgebra& algebra_;
  SymbolId variable_;
  Dim points_[2] = {Dim(0), Dim(0)};
  std::vector<OpId> known_[2];
  std::vector<Operation> made_;
};

}  // namespace

void pair_points(Kernel& kernel, IndexAlgebra& algebra) { PairedPoints(kernel, algebra).run(); }

}  // namespace tenon::llvm_backend
