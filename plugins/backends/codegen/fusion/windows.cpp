#include "fusion/windows.h"

#include "fusion/cost.h"

namespace tenon::codegen {

namespace {

bool is_zero(const Operation& op) { return op.kind == OperationKind::constant && op.payload == 0; }

/// The load behind an operand that is zero where a mask does not hold.
std::optional<Windows> masked_load(const OperationList& operations, OpId operand) {
  Windows found;
  const Operation& op = operations[operand];
  found.load = operand;
  if (op.kind == OperationKind::primitive) {
    if (op.primitive != ops::Primitive::select || !is_zero(operations[op.args[2]])) return {};
    found.mask = op.args[0], found.load = op.args[1];
  }
  const Operation& load = operations[found.load];
  if (load.kind != OperationKind::load) return {};
  if (!load.masked) return found;
  if (!is_zero(operations[load.args[1]]) || (found.mask != kNoOp && found.mask != load.args[0])) return {};
  found.mask = load.args[0];
  return found;
}

}  // namespace

std::optional<Windows> windows_of(const Draft& draft, OpId operand, std::span<const Loop> summed, const IndexAlgebra& algebra) {
  const OperationList& operations = draft.operations();
  auto found = masked_load(operations, operand);
  if (!found) return {};
  const auto masked_by = found->mask == kNoOp ? std::set<SymbolId>{} : loops_of(operations, found->mask);
  bool has_run = false;
  for (const Loop& l : summed) {
    const auto along = split_affine(operations[found->load].offset, l.variable);
    const bool runs = !has_run && along && along->coefficient == Dim(1) && !masked_by.contains(l.variable) && algebra.estimate(l.extent) >= kShortestRun;
    if (runs) found->run = l, has_run = true;
    else found->taps.push_back(l);
  }
  if (!has_run) return {};
  return found;
}

std::vector<Loop> summed_loops(const Windows& windows) {
  std::vector<Loop> loops = windows.taps;
  loops.push_back(windows.run);
  return loops;
}

}  // namespace tenon::codegen
