#include "python/recording/memory/late_sizes.h"

#include <algorithm>

#include "core/ops/catalog.h"
#include "python/objects/graph_break.h"
#include "python/opaque/quiet_calls.h"
#include "python/recording/memory/result_types.h"
#include "python/results/twins.h"

namespace tenon::python {
namespace {

/// Others give named tuples. NumPy's places in several dimensions are views of one array.
bool gives_plain_tuple(const ForeignFunction& function, std::size_t rank) {
  return (function.has(Trait::finds_places) && (function.flavour == ops::Flavour::torch || rank == 1)) || function.has(Trait::finds_distinct);
}

/// torch writes what it joins one after the other, whatever the parts' layouts are, but for channels last.
bool joins(const ForeignFunction& function, const ir::Node& node, const TensorSpec& made) {
  return function.flavour == ops::Flavour::torch && (node.op == "cat" || node.op == "stack") && made.shape.size() < 4;
}

/// Row-major strides of a shape after a permutation of it.
Extents permuted_strides(std::span<const std::int64_t> shape, const ir::Node& permute) {
  const Extents strides = row_major(shape);
  Extents permuted;
  for (const ir::Dim& d : std::get<std::vector<ir::Dim>>(*permute.attribute("dims"))) permuted.push_back(strides[static_cast<std::size_t>(d.constant())]);
  return permuted;
}

/// Dense strides where one dimension lies outside of the others: NumPy writes what it takes at an index one place after the other.
Extents strides_from_dim(const Extents& shape, std::size_t outermost) {
  Extents order(shape.begin(), shape.end());
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(outermost), order.begin() + static_cast<std::ptrdiff_t>(outermost) + 1);
  Extents strides = row_major(order);
  std::rotate(strides.begin(), strides.begin() + 1, strides.begin() + static_cast<std::ptrdiff_t>(outermost) + 1);
  return strides;
}

/// Whether all operands but numbers have one shape and one dense layout: then so has what is computed element by element, whatever the size.
bool laid_out_alike(const StandIns& stand_ins, std::span<const StandIns::Index> operands) {
  const StandIn* first = nullptr;
  for (const auto index : operands) {
    const StandIn& s = stand_ins[index];
    if (s.shape.empty()) continue;
    if (!first) first = &s;
    if (s.shape != first->shape || s.strides != first->strides) return false;
  }
  return first && !memory_order(first->shape, first->strides).empty();
}

}  // namespace

bool LateSizes::layout_varies(std::span<const Index> operands) const {
  return std::ranges::any_of(operands, [&](Index index) {
    const StandIn& s = core_.stand_ins[index];
    return core_.is_late(s.value) && (s.shape.size() > 1 || s.strides != row_major(s.shape));
  });
}

void LateSizes::refuse(std::span<const Index> operands) const {
  for (Index index : operands)
    if (core_.is_late(core_.stand_ins[index].value)) core_.symbols.values(core_.graph.type(core_.stand_ins[index].value).shape);  // breaks
}

void LateSizes::refuse(const ForeignFunction& function, std::span<const Index> operands) const {
  const bool item = function.has(Trait::subscripts);
  const auto is_torch = [&](Index index) { return core_.stand_ins[index].kind == TensorKind::torch; };
  const bool crosses = function.has(Trait::crosses) && !item && (function.flavour == ops::Flavour::torch || std::ranges::any_of(operands, is_torch));
  const auto may_write = [&] { return !operands.empty() && (core_.is_late(core_.stand_ins[operands.front()].value) ? static_cast<bool>(function.op->body) : function.flavour == ops::Flavour::torch); };
  if (function.in_graph || !function.op || crosses || (function.writes && !item && !may_write())) refuse(operands);
}

TensorSpec LateSizes::spec(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands, bool known) {
  const auto depends = [&] { return GraphBreak("a size that depends on data", kDataSizeHint); };
  const ir::Value& made = core_.graph.value(value);
  const ir::Node& node = core_.graph.node(made.node);
  TensorSpec spec = results_.fresh_spec(function, value, operands);
  if (spec.shape.size() < 2) return spec;
  if (node.op == "nonzero") {  // both libraries find the places dimension by dimension
    if (spec.shape[1] == 0) throw depends();
    spec.strides = {1, spec.shape[0]};
    return spec;
  }
  if (function.op->body) {
    if (!laid_out_alike(core_.stand_ins, operands)) views_.require_one_order(function, value, operands, spec);
    return spec;
  }
  const ops::Op* op = ops::find_op(node.op);
  const bool joined = joins(function, node, spec), always = function.op && op && op->traits.layout == ops::ResultLayout::row_major;
  for (Index index : operands)
    if (!joined && !always && core_.stand_ins[index].strides != row_major(core_.stand_ins[index].shape)) throw depends();
  if (function.has(Trait::finds_distinct) && node.op == "permute") {  // the slices were found side by side
    spec.strides = permuted_strides(core_.symbols.hints(core_.graph.type(node.operands.front()).shape), node);
    return spec;
  }
  const ir::Attribute* dims = node.attribute("dims");
  if (node.op == "index" && function.flavour == ops::Flavour::numpy) {
    const auto& indexed = std::get<std::vector<ir::Dim>>(*dims);
    if (indexed.size() == 1) {
      spec.strides = strides_from_dim(spec.shape, static_cast<std::size_t>(indexed.front().constant()));
      return spec;
    }
    if (!(indexed.front() == ir::Dim(0))) throw depends();
  }
  known |= joined || node.op == "index" || (op && op->traits.layout != ops::ResultLayout::unknown);
  if (!known || spec.strides != row_major(spec.shape)) throw depends();
  return spec;
}

/// In the container that torch gives, of whatever size its tensors are.
Ref LateSizes::in_named_tuple(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::vector<Ref> made) {
  if (function.flavour != ops::Flavour::torch) throw GraphBreak("a size that depends on data", kDataSizeHint);
  const Ref twin_args = on_meta_device(core_.stand_ins.with_twins(args).get()), twin_kwargs = kwargs ? on_meta_device(core_.stand_ins.with_twins(kwargs).get()) : Ref();
  const Ref said = call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour);
  if (!PyTuple_Check(said.get()) || PyTuple_GET_SIZE(said.get()) != std::ssize(made)) throw GraphBreak("a size that depends on data", kDataSizeHint);
  std::size_t next = 0;
  return rebuilt(said.get(), [&](PyObject*) { return std::move(made[next++]); });
}

Ref LateSizes::wrap(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const ops::ForeignResult& result,
                    std::span<const Index> operands, std::size_t first_node) {
  for (ir::ValueId value : result.values) {
    const bool made = core_.graph.value(value).kind == ir::ValueKind::result;
    const auto nodes = core_.graph.nodes().subspan(first_node);
    const bool now = made && std::ranges::find(nodes, core_.graph.value(value).node) != nodes.end();
    if (!now || kwargs_name_a_layout(kwargs) || core_.in_branch()) throw GraphBreak("a size that depends on data", kDataSizeHint);
  }
  const bool known = function.has(Trait::finds_distinct) || results_.strides_are_known(function, result, operands);  // distinct elements and their places are made row-major
  std::vector<Ref> made;
  for (ir::ValueId value : result.values) {
    const TensorSpec spec = this->spec(function, value, operands, known);
    const Index index = core_.add_fresh(spec.kind, value, spec);
    if (function.flavour == ops::Flavour::torch && function.has(Trait::finds_places) && result.container != ops::Container::single)
      core_.stand_ins[index].base = HiddenBase{spec.shape, spec.strides};  // one of the columns of a table
    made.push_back(core_.stand_ins[index].object);
  }
  if (result.container == ops::Container::single) return made.front();
  if (!gives_plain_tuple(function, core_.stand_ins[operands.front()].shape.size())) return in_named_tuple(callable, function, args, kwargs, std::move(made));
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(made.size())));
  for (std::size_t i = 0; i < made.size(); ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), made[i].release());
  return tuple;
}

void LateSizes::find_hidden_bases(PyObject* wrapped, PyObject* callable, PyObject* args, PyObject* kwargs) {
  std::vector<Ref> said;
  try {
    const Ref twin_args = core_.stand_ins.with_twins(args), twin_kwargs = kwargs ? core_.stand_ins.with_twins(kwargs) : Ref();
    collect_tensors(call_quietly(callable, twin_args.get(), twin_kwargs.get(), ops::Flavour::numpy).get(), said);
  } catch (const PythonError&) {
    PyErr_Clear();  // of zeros it finds nothing
  }
  const std::vector<Index> made = core_.stand_ins.among(wrapped, nullptr);
  if (said.size() != made.size()) return;
  for (std::size_t i = 0; i < made.size(); ++i) {
    StandIn& s = core_.stand_ins[made[i]];
    if (s.kind == TensorKind::scalar || !(s.base = hidden_base_of(said[i].get())) || read_twin(said[i].get()).shape == s.shape) continue;
    s.base = HiddenBase{s.shape, s.strides};
  }
}

}  // namespace tenon::python
