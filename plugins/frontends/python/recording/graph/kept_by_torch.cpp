#include "python/recording/graph/kept_by_torch.h"

#include <algorithm>

#include "core/rewrite/differentiate.h"
#include "python/library/random_state.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/sequences.h"
#include "python/results/twins.h"

namespace tenon::python {
namespace {

/// What lies where a value does: behind nodes that cut it off from its history, or that turn it around for a product.
ir::ValueId lying_there(const ir::Graph& graph, ir::ValueId value) {
  while (graph.value(value).kind == ir::ValueKind::result) {
    const ir::Node& node = graph.node(graph.value(value).node);
    if (node.op != "detach" && node.op != "permute") break;
    value = node.operands[0];
  }
  return value;
}

}  // namespace

std::vector<KeptByTorch::Operand> KeptByTorch::operands_of(std::span<const Index> tensors) const {
  std::vector<Operand> operands;
  for (Index index : tensors) operands.push_back({index, core_.stand_ins.storage_of(index).writes, core_.stand_ins[index].requires_grad});
  return operands;
}

void KeptByTorch::note_call(Call call, Index first, std::size_t first_node) {
  std::vector<Kept> read, given;
  NotedCall noted;
  const auto at = [&](Index index) { return Kept{core_.stand_ins[index].value, core_.stand_ins.owner(index), core_.stand_ins.storage_of(index).writes}; };
  for (const Operand& operand : call.operands) {
    const Index index = operand.index;
    const bool is_written = is_written_since(index, operand.writes);
    if (is_written) given.push_back(at(index));
    else if (call.keeps || !can_require_gradient(core_.stand_ins[index].dtype)) read.push_back(at(index));
    const auto shares = [&](const Operand& other) { return core_.stand_ins[other.index].storage == core_.stand_ins[index].storage; };
    noted.writes_what_it_reads |= is_written && std::ranges::count_if(call.operands, shares) > 1;
    noted.writes.push_back(core_.stand_ins.storage_of(index).writes);
  }
  for (Index index = first; index < core_.stand_ins.size(); ++index) given.push_back(at(index));
  const bool gives = first < core_.stand_ins.size();
  if (!gives && call.operands.empty()) return;
  noted.gives = gives ? first : call.operands.front().index;
  collect_results(call.results.get(), noted);
  for (std::size_t place = 0; place < call.operands.size(); ++place)
    first_reads_.try_emplace(call.operands[place].index, FirstRead{calls_.size(), static_cast<std::int64_t>(place)});
  noted.made = std::move(call);
  const auto nodes = core_.graph.nodes().subspan(std::min(first_node, core_.graph.nodes().size()));
  noted.nodes = nodes.size();
  for (ir::NodeId id : nodes) {
    const ir::Node& node = core_.graph.node(id);
    OfNode of{calls_.size(), {}};
    const auto keep = [&](ir::ValueId value, ir::ValueId lies, const std::vector<Kept>& among) {
      if (const auto found = std::ranges::find(among, lies, &Kept::value); found != among.end()) of.kept.push_back({value, found->memory, found->writes});
    };
    for (ir::ValueId v : node.operands) {
      keep(v, v, read);
      if (const ir::ValueId lies = lying_there(core_.graph, v); lies != v) keep(v, lies, read);
    }
    for (ir::ValueId v : node.results) keep(v, v, given);
    by_node_.try_emplace(id.value, std::move(of));
  }
  calls_.push_back(std::move(noted));
}

std::int64_t KeptByTorch::turn_of_leaf(Index leaf) const {
  constexpr std::int64_t kMostOperands = 64;
  const auto read = first_reads_.find(leaf);
  if (read == first_reads_.end()) return -1;
  const auto [call, place] = read->second;
  // Of one call the engine comes to operands in their order. A dense layer is a product with the weight turned around, to which the bias comes first.
  static PyObject* const dense = checked(PyObject_GetAttrString(checked(imported("torch.nn.functional")).get(), "linear")).release();
  const std::int64_t turn = calls_[call].made.callable.is(dense) ? (place + 1) % 3 : place;
  return static_cast<std::int64_t>(call) * kMostOperands + kMostOperands - 1 - turn;
}

void KeptByTorch::collect_results(PyObject* results, NotedCall& call) const {
  if (PyTuple_Check(results) || PyList_Check(results)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(results); ++i) collect_results(PySequence_Fast_GET_ITEM(results, i), call);
  } else if (const auto index = core_.stand_ins.find(results)) {
    call.results.emplace_back(*index, core_.stand_ins.storage_of(*index).writes);
  }
}

bool KeptByTorch::is_any_written(const NotedCall& call) const {
  if (call.writes_what_it_reads) return true;
  for (std::size_t k = 0; k < call.writes.size(); ++k)
    if (is_written_since(call.made.operands[k].index, call.writes[k])) return true;
  return std::ranges::any_of(call.results, [&](const auto& result) { return is_written_since(result.first, result.second); });
}

bool KeptByTorch::is_any_written() const {
  const auto any = [this](const auto& node) { return std::ranges::any_of(node.second.kept, [&](const Kept& kept) { return is_written(kept); }); };
  return std::ranges::any_of(calls_, [this](const NotedCall& call) { return is_any_written(call); }) || std::ranges::any_of(by_node_, any);
}

/// Asks torch, with tensors of this call's own on the meta device. Nothing where those cannot say it.
std::optional<bool> KeptByTorch::torch_says(const char* question, const NotedCall& call) const {
  try {
    std::vector<Ref> twins, requires_grad, written, places;
    for (const Operand& operand : call.made.operands) {
      twins.push_back(Ref::borrow(core_.stand_ins.twin(operand.index)));
      requires_grad.push_back(Ref::borrow(operand.requires_grad ? Py_True : Py_False));
    }
    const KeptGenerator kept;
    const Ref asking = checked(imported("tenon._kept_by_torch"));
    const Ref made = checked(PyObject_CallMethod(asking.get(), "operands", "OO", tuple_of(twins).get(), tuple_of(requires_grad).get()));
    PyObject* operands = PyTuple_GET_ITEM(made.get(), 0);
    const auto own = [&](PyObject* item) -> Ref {
      const auto twin = std::ranges::find_if(twins, [&](const Ref& t) { return t.is(item); });
      return twin == twins.end() ? Ref() : Ref::borrow(PyList_GET_ITEM(operands, twin - twins.begin()));
    };
    for (std::size_t k = 0; k < twins.size(); ++k)
      if (is_written_since(call.made.operands[k].index, call.writes[k])) written.push_back(own(twins[k].get()));
    for (std::size_t k = 0; k < call.results.size(); ++k)
      if (is_written_since(call.results[k].first, call.results[k].second)) places.push_back(checked(PyLong_FromSize_t(k)));
    const auto as_called = [&](const Ref& arguments) { return with_replaced(on_meta_device(core_.stand_ins.with_twins(arguments.get()).get()).get(), own); };
    const Ref kwargs = call.made.kwargs ? as_called(call.made.kwargs) : checked(PyDict_New());
    const Ref answer = checked(PyObject_CallMethod(asking.get(), question, "OOOOOO", call.made.callable.get(), as_called(call.made.args).get(), kwargs.get(),
                                                   PyTuple_GET_ITEM(made.get(), 1), tuple_of(written).get(), tuple_of(places).get()));
    return answer.is(Py_None) ? std::nullopt : std::optional(answer.is(Py_True));
  } catch (const GraphBreak&) {  // a twin that does not say enough
    return std::nullopt;
  }
}

bool KeptByTorch::lets_go(std::span<const ir::NodeId> reading, std::span<const ir::NodeId> others) const {
  const auto call_of = [&](ir::NodeId id) {
    const auto found = by_node_.find(id.value);
    return found == by_node_.end() ? nullptr : &calls_[found->second.call];
  };
  // Where one node is all of a call, torch computes its gradient from the same as the graph.
  const auto is_sure = [&](ir::NodeId id) { return !call_of(id) || call_of(id)->nodes == 1; };
  if (std::ranges::any_of(reading, is_sure)) return true;
  std::unordered_set<const NotedCall*> asked;
  const auto any = [&](std::span<const ir::NodeId> nodes, bool unless_said) {
    return std::ranges::any_of(nodes, [&](ir::NodeId id) {
      const NotedCall* call = call_of(id);
      return call && asked.insert(call).second && torch_says("lets_go", *call).value_or(unless_said);
    });
  };
  return any(reading, true) || any(others, false);
}

void KeptByTorch::require_unwritten(std::span<const ir::NodeId> nodes, const std::vector<bool>& may_have) const {
  std::unordered_map<std::size_t, std::optional<bool>> refused;  // by call
  for (ir::NodeId id : nodes) {
    const auto found = by_node_.find(id.value);
    if (found == by_node_.end()) continue;
    const NotedCall& call = calls_[found->second.call];
    const auto refuse = [&] { throw Unbuildable(core_.stand_ins[call.gives].object.get(), "a tensor was written that torch keeps for a gradient"); };
    const auto [answer, is_new] = refused.try_emplace(found->second.call, false);
    if (is_new && is_any_written(call)) answer->second = torch_refuses(call);
    if (answer->second == true) refuse();
    if (answer->second.has_value()) continue;
    for (const Kept& kept : found->second.kept)
      if (is_written(kept) && rewrite::gradient_reads(core_.graph, id, kept.value, may_have)) refuse();
  }
}

}  // namespace tenon::python
