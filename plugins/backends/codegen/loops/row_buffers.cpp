#include "loops/row_buffers.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::codegen {
namespace {

class RowKeeper {
 public:
  RowKeeper(Kernel& kernel, const IndexAlgebra& algebra, const KeepRow& worth) : kernel_(kernel), worth_(worth), row_bytes_(1) {
    for (const Loop& l : kernel.inner) row_ = row_ * l.extent + Dim::symbol(l.variable), points_ = points_ * l.extent;
    row_bytes_ = algebra.estimate(points_);
    find_inner();
  }

  void run() {
    for (std::size_t s = 0; s < kernel_.stages.size(); ++s)
      if (kernel_.stages[s].kind == StageKind::reduce || runs_over_rows(kernel_.stages[s])) sweep(s);
    for (const auto& [id, row] : rows_) kernel_.stages[row.stage].stores.push_back({row.buffer, row_, in_sweep(id, row.stage)});
  }

 private:
  bool runs_over_rows(const Stage& stage) const { return stage.kind == StageKind::map && inner_loops_of(kernel_.inner, stage.stores[0]) == kernel_.inner.size(); }

  struct Row {
    std::size_t stage = 0;  // that computes it
    std::uint32_t buffer = 0;
    OpId load = kNoOp;
  };

  /// Finds the operations that differ from point to point of the inner loops.
  void find_inner() {
    inner_.assign(kernel_.operations.size(), false);
    for (std::size_t i = 0; i < inner_.size(); ++i) {
      const Operation& op = kernel_.operations[i];
      bool found = false;
      for (const Loop& l : kernel_.inner) found = found || mentions(op.offset, l.variable);
      for (OpId need : needs_of(op)) found = found || inner_[need];
      inner_[i] = found;
    }
    first_.assign(inner_.size(), kNever);
  }

  std::vector<OpId> roots_of(const Stage& stage) const {
    std::vector<OpId> roots;
    for (auto r : stage.reductions) roots.insert(roots.end(), kernel_.reductions[r].elements.begin(), kernel_.reductions[r].elements.end());
    for (const Store& s : stage.stores) roots.push_back(s.value);
    std::erase_if(roots, [&](OpId id) { return !inner_[id]; });
    return roots;
  }

  /// Inner operations of the original kernel that the roots need, in order.
  std::set<OpId> reached(const std::vector<OpId>& roots) const {
    std::set<OpId> found;
    std::vector<OpId> open = roots;
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      if (!found.insert(id).second) continue;
      for (OpId need : needs_of(kernel_.operations[id]))
        if (inner_[need]) open.push_back(need);
    }
    return found;
  }

  /// Values of earlier sweeps that this one starts from: needed by what only it computes.
  std::set<OpId> starts(const std::vector<OpId>& roots, const std::set<OpId>& all) const {
    std::set<OpId> found;
    auto look = [&](OpId id) {
      if (inner_[id] && first_[id] != kNever) found.insert(id);
    };
    for (OpId root : roots) look(root);
    for (OpId id : all)
      if (first_[id] == kNever)
        for (OpId need : needs_of(kernel_.operations[id])) look(need);
    return found;
  }

  /// Operations that computing the value anew takes, with rows that are kept read back.
  double cost(OpId id) const {
    double sum = 0;
    std::set<OpId> seen;
    std::vector<OpId> open = {id};
    while (!open.empty()) {
      const OpId next = open.back();
      open.pop_back();
      if (!inner_[next] || !seen.insert(next).second) continue;
      const Operation& op = kernel_.operations[next];
      if (op.kind == OperationKind::primitive) sum += cost_of(op.primitive, op.dtype);
      if (op.kind == OperationKind::load || op.kind == OperationKind::checked || rows_.contains(next)) sum += 1;
      if (rows_.contains(next)) continue;
      for (OpId need : needs_of(op)) open.push_back(need);
    }
    return sum;
  }

  void keep(OpId id) {
    const DType dtype = kernel_.operations[id].dtype;
    Row row;
    row.stage = first_[id];
    row.buffer = static_cast<std::uint32_t>(kernel_.buffers.size());
    row.load = static_cast<OpId>(kernel_.operations.size());
    kernel_.buffers.push_back({dtype, points_ * Dim(static_cast<std::int64_t>(size_of(dtype))), true, true});
    kernel_.operations.push_back({.kind = OperationKind::load, .dtype = compute_type(dtype), .payload = row.buffer, .offset = row_});
    rows_[id] = row;
  }

  void sweep(std::size_t number) {
    Stage& stage = kernel_.stages[number];
    const std::vector<OpId> roots = roots_of(stage);
    const std::set<OpId> all = reached(roots);
    for (OpId id : starts(roots, all)) {
      const DType dtype = kernel_.operations[id].dtype;
      const double bytes = row_bytes_ * static_cast<double>(size_of(dtype));
      if (rows_.contains(id) || !is_float(dtype) || !worth_(cost(id), bytes, kept_)) continue;
      kept_ += bytes;
      keep(id);
    }
    for (OpId id : all)
      if (first_[id] == kNever) first_[id] = number;
    for (auto r : stage.reductions)
      for (OpId& e : kernel_.reductions[r].elements) e = in_sweep(e, number);
    for (Store& s : stage.stores) s.value = in_sweep(s.value, number);
  }

  /// The operation as this sweep computes it: with loads in place of rows that are kept.
  OpId in_sweep(OpId id, std::size_t number) {
    if (!inner_[id]) return id;
    if (const auto row = rows_.find(id); row != rows_.end() && row->second.stage != number) return row->second.load;
    const auto known = made_.find({id, number});
    if (known != made_.end()) return known->second;
    const OpId mine = rewritten(id, number);
    return made_[{id, number}] = mine;
  }

  OpId rewritten(OpId id, std::size_t number) {
    Operation op = kernel_.operations[id];
    bool changed = false;
    auto mine = [&](OpId need) {
      const OpId other = in_sweep(need, number);
      changed = changed || other != need;
      return other;
    };
    for (OpId& a : op.args)
      if (a != kNoOp) a = mine(a);
    std::vector<OpId> indices;
    op.offset.for_each_symbol([&](SymbolId s) {
      if (is_value(s)) indices.push_back(s.value - kFirstValue);
    });
    for (OpId i : indices)
      if (const OpId other = mine(i); other != i) op.offset = replace_symbol(op.offset, value_symbol(i), Dim::symbol(value_symbol(other)));
    if (!changed) return id;
    kernel_.operations.push_back(std::move(op));
    return static_cast<OpId>(kernel_.operations.size() - 1);
  }

  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  Kernel& kernel_;
  const KeepRow& worth_;
  Dim row_ = Dim(0), points_ = Dim(1);
  double row_bytes_, kept_ = 0;
  std::vector<bool> inner_;        // by OpId of the original kernel
  std::vector<std::size_t> first_; // the first stage that needs it
  std::map<OpId, Row> rows_;
  std::map<std::pair<OpId, std::size_t>, OpId> made_;  // by operation and stage
};

bool has_fixed_rows(const Kernel& kernel) {
  bool fixed = !kernel.scatter;
  for (const Loop& l : kernel.inner) l.extent.for_each_symbol([&](SymbolId s) { fixed = fixed && is_graph_symbol(s); });
  return fixed;
}

}  // namespace

void keep_rows(Kernel& kernel, const IndexAlgebra& algebra, const KeepRow& worth) {
  if (has_fixed_rows(kernel)) RowKeeper(kernel, algebra, worth).run();
}

}  // namespace tenon::codegen
