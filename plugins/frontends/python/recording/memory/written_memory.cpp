#include "python/recording/memory/written_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/metadata/memory_overlap.h"
#include "python/objects/graph_break.h"

namespace tenon::python {

void WrittenMemory::require_shape_of(Index target, ir::ValueId value, const ForeignFunction& function) {
  const ir::Shape &made = graph_.type(value).shape, &shape = graph_.type(stand_ins_[target].value).shape;
  if (made == shape) return;
  if (symbols_.values(made) == symbols_.values(shape))  // in a capture to come they are the same
    for (std::size_t d = 0; d < made.size(); ++d) symbols_.equal(made[d], shape[d]);
  throw GraphBreak(fmt::format("{} into a tensor of another shape than its result", function.name));
}

/// The argument that a call writes, by the value that it had; no other argument may share its memory.
WrittenMemory::Index WrittenMemory::written_operand(const ForeignFunction& function, ir::ValueId before, std::span<const Index> operands) {
  std::optional<Index> target;
  if (graph_.value(before).kind == ir::ValueKind::result && graph_.node(graph_.value(before).node).op == "detach")
    before = graph_.node(graph_.value(before).node).operands.front();  // as the call was given it
  for (Index index : operands) {
    if (!(present_.of(index) == before)) continue;
    if (target) throw GraphBreak(fmt::format("{} writes a tensor that is given twice", function.name));
    target = index;
  }
  if (!target) throw GraphBreak(fmt::format("{} writes into a tensor that is none of the program's", function.name));
  require_writable(*target);
  for (const Index& operand : operands)
    if (operand != *target) require_apart(function, *target, {&operand, 1}, true);
  return *target;
}

void WrittenMemory::write_beside(const ForeignFunction& function, std::span<const ops::ForeignWrite> writes, std::span<const Index> operands) {
  std::vector<Index> targets;
  for (const ops::ForeignWrite& write : writes) targets.push_back(written_operand(function, write.before, operands));
  for (std::size_t i = 0; i < writes.size(); ++i) {
    require_shape_of(targets[i], writes[i].after, function);
    present_.write(targets[i], writes[i].after, writes[i].counted);
    inputs_.note_write(targets[i]);
  }
}

bool WrittenMemory::same_places(Index a, Index b) const {
  const StandIn &x = stand_ins_[a], &y = stand_ins_[b];
  return x.storage == y.storage && x.offset == y.offset && x.shape == y.shape && x.strides == y.strides && x.dtype == y.dtype;
}

void WrittenMemory::require_writable(Index index) const {
  const StandIn& s = stand_ins_[index];
  if (s.kind == TensorKind::scalar) throw GraphBreak("a write to a NumPy scalar");
  if (!s.writeable) throw GraphBreak("a write to a read-only array", "write to a copy: np.array(a)");
  if (stand_ins_.storage_of(index).handed_on) throw GraphBreak("a write to a gradient that torch's engine may give to others, too", "write to a copy: gradient.clone()");
  if (stand_ins_.is_reinterpreted(index)) throw GraphBreak("a write to memory that the program also views under another dtype, or at an index that the graph computes");
  // A write goes back through all that is viewed on the way: overlapping windows would put back what they showed of the elements written.
  for (std::optional<Index> seen = index; seen; seen = stand_ins_[*seen].viewed)
    if (may_overlap_itself(stand_ins_[*seen].shape, stand_ins_[*seen].strides)) throw GraphBreak("a write to a tensor whose elements share memory");
  if (core_.is_inference(index) && !torch_state().value_or(core_.state).inference())
    throw GraphBreak("a write to an inference tensor outside of inference mode", "clone() it first, or write under torch.inference_mode()");
  if (!stand_ins_[index].path && stand_ins_[index].viewed) throw GraphBreak("a write through a view of an uncommon kind");
}

void WrittenMemory::require_apart(const ForeignFunction& function, Index target, std::span<const Index> operands, bool all) {
  if (function.flavour == ops::Flavour::numpy) return;
  const auto places = [&](Index i) {
    const StandIn& s = stand_ins_[i];
    const auto start = static_cast<std::uintptr_t>(1) << 40;  // any address: nothing is read
    return ElementPlaces{reinterpret_cast<const void*>(start + static_cast<std::uintptr_t>(s.offset * static_cast<std::int64_t>(size_of(s.dtype)))), size_of(s.dtype), s.shape, s.strides};
  };
  for (Index operand : operands) {
    if ((!all && same_places(operand, target)) || stand_ins_[operand].storage != stand_ins_[target].storage) continue;
    if (core_.in_late_memory(target)) late_.refuse({{stand_ins_.owner(target)}});
    if (may_share_memory(places(target), places(operand))) throw GraphBreak("an operation on a tensor that overlaps the one it writes");
    for (Index apart : {target, operand}) core_.fix_sizes_to_come(apart);  // of other sizes they may overlap
  }
}

}  // namespace tenon::python
