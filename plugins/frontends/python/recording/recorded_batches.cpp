#include "python/recording/recorded_batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ops/catalog.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

/// What is indexed along its first dimension begins with the dimensions of the indices.
bool is_index(const ir::Graph& graph, const ir::Node& node) {
  return node.op == "index" && ops::OpQuery(graph, node.operands, node.attributes).integers("dims").front() == ir::Dim(0);
}

/// Whether a node makes of operands with one more first dimension what it makes of each part of them.
bool keeps_batch(const ir::Graph& graph, const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  return op && (op->body || node.op == "expand" || is_index(graph, node));
}

/// Of what is broadcast when a node is computed.
std::size_t rank_of_operands(const ir::Graph& graph, const ir::Node& node) {
  std::size_t rank = 0;
  for (std::size_t k = node.op == "index" ? 1 : 0; k < node.operands.size(); ++k) rank = std::max(rank, graph.type(node.operands[k]).rank());
  return rank;
}

/// The arguments of torch.Tensor.expand with the first dimension as it is: (tensor, -1, *sizes).
Ref with_batch_size(PyObject* args) {
  PyObject* first = PyTuple_GET_ITEM(args, 1);
  const bool listed = PyTuple_Check(first) || PyList_Check(first);
  if (PyTuple_GET_SIZE(args) == 1 || (listed && PyTuple_GET_SIZE(args) > 2)) throw GraphBreak("torch.vmap of an unusual expand()");
  std::vector<Ref> given = {Ref::borrow(PyTuple_GET_ITEM(args, 0)), checked(PyLong_FromLong(-1))};
  if (listed) {
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(first); ++at) given.push_back(Ref::borrow(PySequence_Fast_GET_ITEM(first, at)));
  } else {
    for (Py_ssize_t at = 1; at < PyTuple_GET_SIZE(args); ++at) given.push_back(Ref::borrow(PyTuple_GET_ITEM(args, at)));
  }
  return tuple_of(std::move(given));
}

}  // namespace

Ref RecordedBatches::example_of(Index tensor, Batch& batch) {
  const StandIn s = core_.stand_ins[tensor];
  const ir::ValueId value = core_.present.of(tensor);
  const bool plain = s.kind == TensorKind::torch && s.type == reinterpret_cast<PyTypeObject*>(known_torch_library()->tensor.get());
  if (!plain || s.requires_grad || s.shape.empty() || s.shape.front() == 0 || core_.is_late(value)) throw GraphBreak("torch.vmap of what is no plain tensor, or of one that requires grad");
  const ir::Dim size = core_.graph.type(value).shape.front();
  if (batch.made.empty()) batch.size = size;
  if (!(batch.size == size)) throw GraphBreak("torch.vmap of sizes that may differ");
  TensorSpec spec;
  spec.dtype = s.dtype;
  spec.type = s.type;
  spec.shape.assign(s.shape.begin() + 1, s.shape.end());
  spec.strides.assign(s.strides.begin() + 1, s.strides.end());
  const ir::ValueId example = core_.builder.one("select", {value}, {{"dim", ir::Dim(0)}, {"index", ir::Dim(0)}});
  Ref object = core_.stand_ins[core_.add_fresh(s.kind, example, spec)].object;
  batch.made[object.get()] = {s.object, true};
  batch.given.insert(example);
  return object;
}

std::vector<Ref> RecordedBatches::begin(std::span<PyObject* const> tensors) {
  branches_.begin();
  Batch batch;
  batch.written = core_.stand_ins.written().size();
  batch.draws = core_.draws.size();
  std::vector<Ref> examples;
  for (Index tensor : core_.stand_ins.require(tensors)) examples.push_back(example_of(tensor, batch));
  batches_.push_back(std::move(batch));
  return examples;
}

/// Nodes that no element of the example goes into may be any.
void RecordedBatches::require_pointwise(const RecordedBranches::Branch& branch) const {
  std::unordered_set<ir::ValueId> of_example = batches_.back().given;
  for (ir::NodeId id : branch.nodes) {
    const ir::Node& node = core_.graph.node(id);
    const auto depends = [&](ir::ValueId v) { return of_example.contains(v); };
    const bool begins = std::ranges::any_of(node.results, depends);
    if (begins || std::ranges::none_of(node.operands, depends)) continue;
    if (!keeps_batch(core_.graph, node) || (node.op == "index" && depends(node.operands.front()))) throw GraphBreak(fmt::format("torch.vmap of {}, which is not computed point by point", node.op));
    of_example.insert(node.results.begin(), node.results.end());
  }
}

/// Before its own dimensions it gets as many as it lacks beside others that are broadcast with it.
Ref RecordedBatches::aligned(const Made& made, std::size_t own_rank, std::size_t rank) {
  static PyObject* const unsqueeze = checked(PyObject_GetAttrString(known_torch_library()->module.get(), "unsqueeze")).release();
  Ref tensor = made.object;
  for (std::size_t lacking = own_rank; lacking < rank; ++lacking) {
    Ref args = checked(Py_BuildValue("(Oi)", tensor.get(), 1));
    tensor = uses_.call(unsqueeze, args.get(), nullptr);
  }
  return tensor;
}

Ref RecordedBatches::of_batch(PyObject* argument, const Batch& batch, std::size_t rank) {
  if (const auto found = batch.made.find(argument); found != batch.made.end())
    return found->second.batched ? aligned(found->second, core_.stand_ins[core_.stand_ins.require(argument)].shape.size(), rank) : found->second.object;
  if (PyDict_CheckExact(argument)) {
    Ref dict = checked(PyDict_New());
    PyObject *key = nullptr, *item = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(argument, &at, &key, &item);) checked(PyDict_SetItem(dict.get(), key, of_batch(item, batch, rank).get()));
    return dict;
  }
  if (!PyTuple_CheckExact(argument) && !PyList_CheckExact(argument)) return Ref::borrow(argument);
  std::vector<Ref> items;
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(argument); ++at) items.push_back(of_batch(PySequence_Fast_GET_ITEM(argument, at), batch, rank));
  return PyTuple_CheckExact(argument) ? tuple_of(std::move(items)) : list_of(std::move(items));
}

void RecordedBatches::make_again(const TracedCall& call, Batch& batch) {
  const auto index = call.result ? core_.stand_ins.find(call.result.get()) : std::nullopt;
  if (!index || !call.branches.empty() || call.gives_number) throw GraphBreak("torch.vmap of what gives no tensor, or several");
  if (batch.made.contains(call.result.get())) return;  // what it was given
  const StandIn s = core_.stand_ins[*index];
  const ir::Type type = core_.graph.type(s.value);
  const bool is_new = batch.given.insert(s.value).second && core_.graph.value(s.value).kind == ir::ValueKind::result;
  if (!is_new) throw GraphBreak("torch.vmap of a view");
  const std::size_t rank = rank_of_operands(core_.graph, core_.graph.node(core_.graph.value(s.value).node));
  const bool expands = core_.graph.node(core_.graph.value(s.value).node).op == "expand" && PyTuple_GET_SIZE(call.args.get()) > 1;
  Ref args = of_batch(call.args.get(), batch, expands ? s.shape.size() : rank), kwargs = call.kwargs ? of_batch(call.kwargs.get(), batch, rank) : Ref();
  if (expands && batch.made.contains(PyTuple_GET_ITEM(call.args.get(), 0)) && batch.made.at(PyTuple_GET_ITEM(call.args.get(), 0)).batched) args = with_batch_size(args.get());
  Made made{uses_.call(call.callable.get(), args.get(), kwargs.get())};
  const auto now = core_.stand_ins.find(made.object.get());
  if (!now) throw GraphBreak("torch.vmap of what gives no tensor, or several");
  ir::Type whole = type;
  whole.shape.insert(whole.shape.begin(), batch.size);
  const ir::Type& found = core_.graph.type(core_.stand_ins[*now].value);
  made.batched = found.shape == whole.shape;
  if ((!made.batched && found.shape != type.shape) || found.dtype != type.dtype || !(found.device == type.device)) throw GraphBreak("torch.vmap of what gives another dtype or shape for a whole batch");
  batch.made[call.result.get()] = std::move(made);
}

std::vector<Ref> RecordedBatches::end(std::span<PyObject* const> results) {
  branches_.end(results);
  const RecordedBranches::Branch branch = branches_.take();
  require_pointwise(branch);
  Batch batch = std::move(batches_.back());
  batches_.pop_back();
  if (core_.stand_ins.written().size() != batch.written || core_.draws.size() != batch.draws) throw GraphBreak("torch.vmap of a function that writes, or takes random numbers");
  for (const TracedCall& call : branch.trace->trace.calls) make_again(call, batch);
  std::vector<Ref> whole;
  for (PyObject* result : results) {
    const auto made = batch.made.find(result);
    if (made == batch.made.end() || made->second.object.is(result)) throw GraphBreak("torch.vmap of a function that gives what it was given");
    whole.push_back(made->second.object);
  }
  core_.graph.erase_nodes(branch.nodes);
  return whole;
}

}  // namespace tenon::python
