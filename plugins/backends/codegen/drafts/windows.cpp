#include "drafts/windows.h"

#include <algorithm>

#include "drafts/operand.h"

namespace tenon::codegen {

namespace {

bool is_zero(const Operation& op) { return op.kind == OperationKind::constant && op.payload == 0; }

}  // namespace

std::optional<Windows> masked_load(std::span<const Operation> operations, OpId operand) {
  Windows found;
  const Operation& op = operations[operand];
  found.load = operand;
  if (op.kind == OperationKind::primitive) {
    if (op.primitive != ops::Primitive::select || !is_zero(operations[op.args[2]])) return {};
    found.mask = op.args[0], found.load = op.args[1];
  }
  const Operation& load = operations[found.load];
  if (load.kind != OperationKind::load || (load.dtype != op.dtype && compute_type(load.dtype) != op.dtype)) return {};
  if (!load.masked) return found;
  if (!is_zero(operations[load.args[1]]) || (found.mask != kNoOp && found.mask != load.args[0])) return {};
  found.mask = load.args[0];
  return found;
}

std::optional<Windows> windows_of(std::span<const Operation> operations, OpId operand, std::span<const Loop> summed, const IndexAlgebra& algebra, const Machine& machine) {
  auto found = masked_load(operations, operand);
  if (!found) return {};
  const auto masked_by = found->mask == kNoOp ? std::set<SymbolId>{} : loops_of(operations, found->mask);
  found->taps.assign(summed.begin(), summed.end());
  Dim length(1);
  auto steps_on = [&](const Loop& l) {
    const auto along = split_affine(operations[found->load].offset, l.variable);
    return along && along->coefficient == length && !masked_by.contains(l.variable);
  };
  while (algebra.estimate(length) < machine.thresholds.shortest_run) {
    const auto next = std::find_if(found->taps.begin(), found->taps.end(), steps_on);
    if (next == found->taps.end()) return {};
    length = length * next->extent;
    found->run.insert(found->run.begin(), *next);
    found->taps.erase(next);
  }
  if (!machine.reads_runs_of(operations[found->load].dtype, length)) return {};
  return found;
}

namespace {

/// True when all that the operation reads depends on the place and the tap only by their sum.
bool slides(std::span<const Operation> operations, OpId root, SymbolId place, SymbolId tap) {
  if (root == kNoOp) return true;
  const Operation& op = operations[root];
  const auto along_place = split_affine(op.offset, place), along_tap = split_affine(op.offset, tap);
  if (!along_place || !along_tap || !(along_place->coefficient == along_tap->coefficient)) return false;
  return std::all_of(std::begin(op.args), std::end(op.args), [&](OpId a) { return slides(operations, a, place, tap); });
}

}  // namespace

std::optional<Picture> picture_of(std::span<const Operation> operations, const Windows& windows, std::span<const Loop> places) {
  if (windows.run.size() != 1 || windows.taps.size() != 2 || places.size() < 2) return {};
  places = places.last(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!(windows.taps[i].extent == Dim(3))) return {};
    for (OpId root : {windows.load, windows.mask})
      if (!slides(operations, root, places[i].variable, windows.taps[i].variable)) return {};
  }
  return Picture{places[0].extent, places[1].extent};
}

std::vector<Loop> summed_loops(const Windows& windows) {
  std::vector<Loop> loops = windows.taps;
  loops.insert(loops.end(), windows.run.begin(), windows.run.end());
  return loops;
}

}  // namespace tenon::codegen
