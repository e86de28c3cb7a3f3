#include "python/recording/recorded_branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/ir/printer.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

constexpr const char* kCloneHint = "return a .clone() of it: the result of a branch is a tensor of its own";

/// Cuts a run of nodes out as a region with the given inputs.
class RegionCut {
 public:
  RegionCut(const ir::Graph& graph, std::span<const ir::ValueId> inputs) : from_(graph) {
    for (ir::ValueId input : inputs) values_[input] = region_.add_input(graph.type(input), graph.value(input).name);
  }

  ir::Graph run(std::span<const ir::NodeId> nodes, std::span<const ir::ValueId> results, const char* name) {
    region_.name = name;
    for (ir::NodeId node : nodes) copy(from_.node(node));
    for (ir::ValueId result : results) region_.add_output({value(result), ir::OutputKind::result, {}});
    return std::move(region_);
  }

 private:
  ir::ValueId value(ir::ValueId id) {
    if (const auto known = values_.find(id); known != values_.end()) return known->second;
    return values_[id] = region_.add_literal(from_.value(id).literal);
  }

  void copy(const ir::Node& node) {
    std::vector<ir::ValueId> operands;
    for (ir::ValueId operand : node.operands) operands.push_back(value(operand));
    std::vector<ir::RegionId> regions;
    for (ir::RegionId region : node.regions) regions.push_back(region_.add_region(from_.region(region).clone()));
    std::vector<ir::Type> types;
    std::vector<std::string> names;
    for (ir::ValueId result : node.results) {
      types.push_back(from_.type(result));
      names.push_back(from_.value(result).name);
    }
    const ir::NodeId made = region_.add_node(node.op, std::move(operands), node.attributes, std::move(types), node.location, std::move(regions), {}, names);
    for (std::size_t i = 0; i < node.results.size(); ++i) values_[node.results[i]] = region_.node(made).results[i];
  }

  const ir::Graph& from_;
  ir::Graph region_;
  std::unordered_map<ir::ValueId, ir::ValueId> values_;
};

/// What nodes, and results that leave them, read from outside, each once.
void add_values_from_outside(const ir::Graph& graph, std::span<const ir::NodeId> nodes, std::span<const ir::ValueId> results, std::vector<ir::ValueId>& found) {
  std::unordered_set<ir::ValueId> inside;
  for (ir::NodeId node : nodes) inside.insert(graph.node(node).results.begin(), graph.node(node).results.end());
  const auto add = [&](ir::ValueId id) {
    const bool literal = graph.value(id).kind == ir::ValueKind::literal;
    if (!literal && !inside.contains(id) && std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
  };
  for (ir::NodeId node : nodes)
    for (ir::ValueId operand : graph.node(node).operands) add(operand);
  for (ir::ValueId result : results) add(result);
}

}  // namespace

void RecordedBranches::begin() {
  Branch branch;
  branch.first_node = core_.graph.nodes().size();
  branch.first_call = trace_.now();
  branch.random_token = core_.random_token;
  for (Index index = 0; index < core_.stand_ins.size(); ++index)
    branch.before.push_back({core_.stand_ins[index].value, core_.stand_ins[index].version, core_.stand_ins.storage_of(index).version});
  branches_.push_back(std::move(branch));
  ++core_.branches;
}

void RecordedBranches::end(std::span<PyObject* const> results) {
  Branch& branch = branches_.back();
  const auto older = static_cast<Index>(branch.before.size());
  for (PyObject* object : results) {
    const Index index = core_.stand_ins.require(object);
    if (core_.stand_ins.owner(index) < older || core_.stand_ins[core_.stand_ins.owner(index)].input) throw GraphBreak("a branch of tenon.cond gives a tensor that is older than it, or a view of one", kCloneHint);
    branch.results.push_back(index);
    branch.values.push_back(core_.present.of(index));
  }
  branch.nodes.assign(core_.graph.nodes().begin() + static_cast<std::ptrdiff_t>(branch.first_node), core_.graph.nodes().end());
  // What an older tensor holds does not depend on which branch is taken. A view that was brought up to date in the branch is again when next read.
  for (Index index = 0; index < older; ++index) {
    const Branch::Present& present = branch.before[index];
    if (core_.stand_ins.storage_of(index).version != present.storage_version)
      throw GraphBreak("a branch of tenon.cond writes into a tensor that is older than it", "return the new value instead");
    core_.stand_ins[index].value = present.value;
    core_.stand_ins[index].version = present.version;
  }
  if (core_.random_token != branch.random_token)
    throw GraphBreak("a branch of tenon.cond takes random numbers", "take them before, and give them as an operand");
  for (Index input : inputs_.stand_ins())  // read in the branch for the first time
    if (input >= older && core_.stand_ins.storage_of(input).version != 0)
      throw GraphBreak("a branch of tenon.cond writes into a tensor that is older than it", "return the new value instead");
  branch.trace = cut_trace(branch, older);
}

/// Moves the calls of a branch out of the trace, with what they read from outside.
std::shared_ptr<BranchTrace> RecordedBranches::cut_trace(const Branch& branch, Index older) {
  auto trace = trace_.cut(branch.first_call);
  std::vector<Index> read;
  for (const TracedCall& call : trace->trace.calls) {
    const std::vector<Index> among = core_.stand_ins.among(call.args.get(), call.kwargs.get());
    read.insert(read.end(), among.begin(), among.end());
  }
  for (Index index : read)
    if ((index < older || core_.stand_ins[index].input) && std::find(trace->inputs.begin(), trace->inputs.end(), index) == trace->inputs.end()) trace->inputs.push_back(index);
  for (Index result : branch.results) trace->trace.outputs.push_back(core_.stand_ins[result].object);
  return trace;
}

RecordedBranches::Branch RecordedBranches::take() {
  Branch last = std::move(branches_.back());
  branches_.pop_back();
  --core_.branches;
  return last;
}

std::vector<Ref> RecordedBranches::choose(PyObject* function, PyObject* predicate) {
  Branch otherwise = take(), then = take();
  for (std::size_t i = 0; i < then.results.size(); ++i) {
    const StandIn &a = core_.stand_ins[then.results[i]], &b = core_.stand_ins[otherwise.results[i]];
    if (a.kind != b.kind || !(core_.graph.type(then.values[i]) == core_.graph.type(otherwise.values[i])) || a.strides != b.strides)
      throw GraphBreak(fmt::format("the branches of tenon.cond give a {} and a {}", ir::print_type(core_.graph, core_.graph.type(then.values[i])),
                                   ir::print_type(core_.graph, core_.graph.type(otherwise.values[i]))),
                       "give results of one dtype, shape and layout in both");
  }
  std::vector<ir::ValueId> operands;
  for (const Branch* branch : {&then, &otherwise}) add_values_from_outside(core_.graph, branch->nodes, branch->values, operands);
  ir::Graph regions[] = {RegionCut(core_.graph, operands).run(then.nodes, then.values, "then"),
                         RegionCut(core_.graph, operands).run(otherwise.nodes, otherwise.values, "otherwise")};
  for (const Branch* branch : {&otherwise, &then}) core_.graph.erase_nodes(branch->nodes);

  const std::size_t first_node = core_.graph.nodes().size();
  std::vector<ir::ValueId> all = {core_.condition(predicate)};
  all.insert(all.end(), operands.begin(), operands.end());
  std::vector<ir::Type> types;
  for (const ir::Output& output : regions[0].outputs()) {
    types.push_back(regions[0].type(output.value));
    types.back().strides.reset();  // an operand that is given back is a copy of it
  }
  const ir::NodeId node = core_.graph.add_node("cond", std::move(all), {}, std::move(types), {}, {core_.graph.add_region(std::move(regions[0])), core_.graph.add_region(std::move(regions[1]))});
  std::vector<Ref> results;
  for (std::size_t i = 0; i < then.results.size(); ++i) {
    StandIn result = core_.stand_ins[then.results[i]];
    TensorSpec spec;
    spec.kind = result.kind;
    spec.dtype = result.dtype;
    spec.shape = result.shape;
    spec.strides = result.strides;
    spec.type = result.type;
    results.push_back(core_.stand_ins[core_.add_fresh(result.kind, core_.graph.node(node).results[i], spec)].object);
  }
  trace_choice(function, predicate, {then.trace, otherwise.trace}, results, first_node);
  return results;
}

void RecordedBranches::trace_choice(PyObject* function, PyObject* predicate, std::vector<std::shared_ptr<BranchTrace>> branches, const std::vector<Ref>& results,
                                  std::size_t first_node) {
  std::vector<Index> read;
  for (const auto& branch : branches)
    for (Index index : branch->inputs)
      if (std::find(read.begin(), read.end(), index) == read.end()) read.push_back(index);
  for (const auto& branch : branches) branch->inputs = read;
  Ref operands = checked(PyTuple_New(static_cast<Py_ssize_t>(read.size()))), given = checked(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (std::size_t i = 0; i < read.size(); ++i) PyTuple_SET_ITEM(operands.get(), static_cast<Py_ssize_t>(i), Py_NewRef(core_.stand_ins[read[i]].object.get()));
  for (std::size_t i = 0; i < results.size(); ++i) PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i), Py_NewRef(results[i].get()));
  for (const auto& branch : branches)
    for (Index index : read) branch->trace.inputs.push_back(core_.stand_ins[index].object);
  TracedCall call;
  call.callable = Ref::borrow(function);
  call.args = checked(PyTuple_Pack(2, predicate, operands.get()));
  call.result = given;
  call.branches = std::move(branches);
  trace_.add_choice(std::move(call), first_node);
}

}  // namespace tenon::python
