// A part of `recorded_writes`: functions that make a tensor another view of its memory, and it stays the same object (unsqueeze_, t_).
#include <fmt/format.h>

#include <algorithm>

#include "python/graph/moving_nodes.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/opaque/quiet_calls.h"
#include "python/recording/recorded_writes.h"

namespace tenon::python {

/// Throws GraphBreak for all but tensors of the graph's own, of which no view was made yet: that is known by the shape that it was made from.
void RecordedWrites::require_reshapable(const ForeignFunction& function, std::optional<Index> target) const {
  const auto refuse = [&](const char* of) { throw GraphBreak(fmt::format("{} changes the shape or storage of {} in place", function.name, of), "give the result a name of its own: x = x.reshape(...)"); };
  if (!function.op || !target) return refuse("a tensor");
  const StandIn& s = core_.stand_ins[*target];
  const StandIn& owner = core_.stand_ins[core_.stand_ins.owner(*target)];
  if (owner.input) return refuse("an input of the graph, or a view of one,");
  if (owner.leaf || s.requires_grad != owner.requires_grad || history_.retains_gradient(*target) || history_.is_view_of_function(*target)) return refuse("a tensor with a place in torch's autograd graph");
  if (core_.in_late_memory(*target) || core_.stand_ins.is_reinterpreted(*target) || s.crossed || s.base || (s.viewed && !s.path)) return refuse("a view of an uncommon kind");
  if (std::ranges::any_of(core_.stand_ins, [&](const StandIn& other) { return other.viewed == target; })) return refuse("a tensor of which there are views");
}

Ref RecordedWrites::reshape(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::optional<Index> target) {
  require_reshapable(function, target);
  history_.require_writable(*target);
  const std::size_t first_node = core_.graph.nodes().size();
  const std::string name(function.last_word().substr(0, function.last_word().size() - 1));
  Ref view = checked(PyObject_GetAttrString(torch_library()->tensor.get(), name.c_str()));
  const ForeignFunction& viewing = foreign_function(view.get());
  results_.wrap_like_twins(view.get(), viewing, op_calls_.build(viewing, args, kwargs), args, kwargs);
  const StandIn& made = *std::prev(core_.stand_ins.end());
  if (made.viewed != target || !made.path) throw GraphBreak(fmt::format("{} gives no view", function.name));
  core_.stand_ins.show_as_newest(*target);
  call_quietly(callable, core_.stand_ins.with_twins(args).get(), kwargs ? core_.stand_ins.with_twins(kwargs).get() : nullptr, function.flavour);
  core_.present.note_seen_anew(*target);
  history_.note_write(*target);
  Ref self = core_.stand_ins[*target].object;
  trace_.add(callable, function, args, kwargs, self, first_node);
  return self;
}

}  // namespace tenon::python
