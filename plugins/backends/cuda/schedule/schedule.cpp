#include "schedule/schedule.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "isa/ptx_functions.h"

namespace tenon::cuda {

using codegen::Dim;
using codegen::Kernel;
using codegen::Loop;
using codegen::Operation;
using codegen::OperationKind;
using ir::SymbolId;

namespace {

/// Points of a row, where they are known, up to which a warp has it.
constexpr std::int64_t kRowOfWarp = 1024;

std::optional<std::string> without_code(ops::Primitive p, DType dtype) {
  if (!is_function(p) || has_function(p, compute_type(dtype))) return {};
  return fmt::format("{} of {} has no code", ops::name_of(p), name_of(dtype));
}

std::optional<std::string> without_code(const Kernel& kernel) {
  if (kernel.scatter) return "a scatter has no code";
  if (kernel.inner.empty() && !kernel.reductions.empty()) return "a reduction of single elements has no code";
  for (const codegen::Buffer& b : kernel.buffers) {
    if (b.row) return "a row that is kept has no place";
    if (is_complex(b.dtype)) return fmt::format("{} has no code", name_of(b.dtype));
  }
  const auto dtype_of = [&](const Operation& op) { return op.args[0] == codegen::kNoOp ? op.dtype : kernel.operations[op.args[0]].dtype; };
  for (const Operation& op : kernel.operations) {
    if (op.kind == OperationKind::checked) return "an index that is checked has no code";
    if (op.kind == OperationKind::product || op.kind == OperationKind::old_value) return "a product has no code";
    if (op.kind != OperationKind::primitive) continue;
    if (auto why = without_code(op.primitive, dtype_of(op))) return why;
  }
  for (const codegen::Reduction& r : kernel.reductions)
    for (const ops::ScalarProgram* program : {&r.reducer.init, &r.reducer.combine, &r.reducer.finish})
      for (const ops::Instruction& i : program->instructions)
        if (auto why = without_code(i.op, i.dtype)) return why;
  return {};
}

/// Calls `visit` with each buffer that the kernel reads or writes, and the place in it.
template <class Visit>
void for_each_place(const Kernel& kernel, Visit visit) {
  for (const Operation& op : kernel.operations)
    if (op.kind == OperationKind::load) visit(op.payload, op.offset);
  for (const codegen::Stage& stage : kernel.stages)
    for (const codegen::Store& store : stage.stores) visit(std::uint64_t{store.buffer}, store.offset);
}

/// As many as the widest elements of a vector may be where every contiguous place is aligned; else 1.
unsigned lanes_along(const Kernel& kernel, const Loop& loop, std::span<const std::int64_t> starts) {
  std::size_t widest = 0;
  for_each_place(kernel, [&](std::uint64_t buffer, const Dim& place) {
    if (codegen::mentions(place, loop.variable)) widest = std::max(widest, size_of(kernel.buffers[buffer].dtype));
  });
  if (widest == 0) return 1;
  const auto lanes = static_cast<std::int64_t>(kVectorBytes / widest);
  bool contiguous = false, aligned = true;
  for_each_place(kernel, [&](std::uint64_t buffer, const Dim& place) {
    const auto along = codegen::split_affine(place, loop.variable);
    if (!along || !(along->coefficient == Dim(1))) return;
    contiguous = true;
    aligned = aligned && is_aligned(place, loop.variable, lanes) && (starts.empty() || starts[buffer] % lanes == 0);
  });
  const bool fills = !loop.extent.is_constant() || loop.extent.constant() >= lanes;
  return contiguous && aligned && fills ? static_cast<unsigned>(lanes) : 1;
}

std::vector<SymbolId> graph_symbols(const Kernel& kernel) {
  std::set<std::uint32_t> found;
  const auto add = [&](const Dim& dim) {
    dim.for_each_symbol([&](SymbolId s) {
      if (codegen::is_graph_symbol(s)) found.insert(s.value);
    });
  };
  for (const auto* loops : {&kernel.outer, &kernel.inner})
    for (const Loop& l : *loops) add(l.extent);
  for (const Operation& op : kernel.operations) add(op.offset);
  for_each_place(kernel, [&](std::uint64_t, const Dim& place) { add(place); });
  for (const codegen::Reduction& r : kernel.reductions)
    for (const ops::ScalarProgram* program : {&r.reducer.init, &r.reducer.combine, &r.reducer.finish}) std::ranges::for_each(program->dims, add);
  std::vector<SymbolId> symbols;
  for (std::uint32_t s : found) symbols.emplace_back(s);
  return symbols;
}

}  // namespace

bool is_aligned(const Dim& place, SymbolId loop, std::int64_t elements) {
  const auto along = codegen::split_affine(place, loop);
  if (!along || !(along->coefficient == Dim(1)) || along->rest.offset() % elements != 0) return false;
  return std::ranges::all_of(along->rest.terms(), [&](const ir::DimTerm& term) { return term.coefficient % elements == 0; });
}

const Loop* Schedule::lane_loop(const Kernel& kernel) const {
  const auto& loops = kind == Kind::rows ? kernel.inner : kernel.outer;
  return loops.empty() ? nullptr : &loops.back();
}

Result<Schedule> schedule(const Kernel& kernel, std::span<const std::int64_t> starts) {
  if (auto why = without_code(kernel)) return error(Code::unsupported, "{} for this target", *why);
  Schedule made;
  made.kind = kernel.inner.empty() ? Schedule::Kind::points : Schedule::Kind::rows;
  made.symbols = graph_symbols(kernel);
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
    const std::size_t size = size_of(kernel.buffers[i].dtype);
    const bool at_vector = starts.empty() || starts[i] * static_cast<std::int64_t>(size) % kVectorBytes == 0;
    made.alignments.push_back(at_vector ? kVectorBytes : static_cast<unsigned>(size));
  }
  const Loop* last = made.lane_loop(kernel);
  if (last) made.lanes = lanes_along(kernel, *last, starts);
  made.units = Dim(1);
  for (const Loop& l : kernel.outer) made.units = made.units * l.extent;
  if (made.kind == Schedule::Kind::rows) {
    made.team = last->extent.is_constant() && last->extent.constant() <= kRowOfWarp ? kWarp : kBlock;
  } else if (last) {
    made.units = Dim(1);
    for (std::size_t i = 0; i + 1 < kernel.outer.size(); ++i) made.units = made.units * kernel.outer[i].extent;
    made.units = made.units * floor_div(last->extent + Dim(made.lanes - 1), Dim(made.lanes));
  }
  return made;
}

}  // namespace tenon::cuda
