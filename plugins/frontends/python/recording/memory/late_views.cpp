#include "python/recording/memory/late_views.h"

#include <algorithm>

#include "core/ops/catalog.h"
#include "core/ops/infer.h"
#include "python/graph/moving_nodes.h"
#include "python/metadata/late_order.h"
#include "python/objects/graph_break.h"
#include "python/recording/memory/result_types.h"

namespace tenon::python {
namespace {

constexpr std::int64_t kMostOfLeast = 64;  // sizes below which a graph may refuse to hold

GraphBreak depends() { return GraphBreak("a size that depends on data", kDataSizeHint); }

/// The tensors in what a call gave, in the order of `StandIns::among`.
void collect_tensors(PyObject* answer, std::vector<PyObject*>& found) {
  if (!PyTuple_Check(answer) && !PyList_Check(answer)) return found.push_back(answer);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(answer); ++i) collect_tensors(PySequence_Fast_GET_ITEM(answer, i), found);
}

}  // namespace

/// How it lies in the memory that it has, whatever the size. Throws where that cannot be said.
const ViewLayout& LateViews::layout_of(Index index) {
  const StandIn& base = core_.stand_ins[core_.stand_ins.owner(index)];
  StandIn& view = core_.stand_ins[index];
  if (view.late) return *view.late;
  auto layout = layout_of_view(core_.graph, base.value, late_strides(base.shape, base.strides, core_.graph.type(base.value).shape), view.value);
  if (!layout) throw depends();
  settle_unit_strides(*layout, core_.graph.type(view.value).shape, core_.symbols.hints(layout->strides), view.strides);
  if (core_.symbols.hints(layout->strides) != view.strides || core_.symbols.hints({&layout->offset, 1}).front() != view.offset - base.offset) throw depends();
  view.late = std::move(layout);
  return *view.late;
}

void LateViews::require_elements(const ir::Shape& shape) {
  for (const ir::Dim& dim : shape)
    for (std::int64_t least = 1; ops::infer::range(core_.graph, dim).least < 1; least *= 2) {
      if (least > kMostOfLeast || core_.symbols.is_known(dim)) throw depends();
      core_.symbols.require_data_of_at_least(least, dim);
    }
}

/// Throws unless what a call made, or gave back, is the same for every size of at least 2.
void LateViews::require_one_layout(Index index, std::span<const Index> operands) {
  const StandIn& made = core_.stand_ins[index];
  require_elements(core_.graph.type(made.value).shape);
  if (std::ranges::find(operands, index) != operands.end()) return;
  if (core_.stand_ins.owner(index) == index) {  // a copy: of what has no gaps a view would have been as good for every size
    const auto is_plain = [&](Index i) { return core_.stand_ins[i].strides == row_major(core_.stand_ins[i].shape); };
    if (!is_plain(index) || !std::ranges::all_of(operands, is_plain)) throw depends();
    return;
  }
  const ViewLayout& layout = layout_of(index);
  const auto is_known = [&](const ir::Dim& dim) { return core_.symbols.is_known(dim); };
  if (!core_.is_late(made.value) && !std::ranges::all_of(layout.strides, is_known)) throw depends();
}

/// Whether the library does with a size of 1 as with other sizes: it may leave out such a dimension, or give it another stride.
bool LateViews::is_alike_at_one(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> made) {
  const auto at_one = [&](std::span<const ir::Dim> dims) { return core_.symbols.values_where_data_is(1, dims); };
  std::unordered_map<Index, Ref> twins;
  const std::function<Ref(PyObject*)> small = [&](PyObject* item) -> Ref {
    if (PyTuple_Check(item) || PyList_CheckExact(item) || PyDict_CheckExact(item)) return {};
    const auto index = core_.stand_ins.find(item);
    if (!index || !core_.in_late_memory(*index)) return core_.stand_ins.with_twins(item);
    const StandIn& s = core_.stand_ins[*index];
    Ref& twin = twins[*index];
    if (!twin) twin = make_twin(s.kind, s.dtype, at_one(core_.graph.type(s.value).shape), at_one(layout_of(*index).strides), s.writeable);
    return twin;
  };
  Ref small_args = with_replaced(args, small), small_kwargs = kwargs ? with_replaced(kwargs, small) : Ref();
  if (function.flavour == ops::Flavour::torch) {
    small_args = on_meta_device(small_args.get());
    small_kwargs = on_meta_device(small_kwargs.get());
  }
  Ref answer = Ref::steal(PyObject_Call(callable, small_args.get(), small_kwargs.get()));
  if (!answer) {
    PyErr_Clear();
    return false;
  }
  std::vector<PyObject*> tensors;
  collect_tensors(answer.get(), tensors);
  if (tensors.size() != made.size()) return false;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const StandIn& s = core_.stand_ins[made[i]];
    const TensorSpec spec = read_twin(tensors[i]);
    if (spec.shape != at_one(core_.graph.type(s.value).shape)) return false;
    const TwinPlace place = place_of_twin(tensors[i]);
    const auto viewed = std::ranges::find_if(twins, [&](const auto& twin) { return place_of_twin(twin.second.get()).storage == place.storage; });
    if (core_.stand_ins.owner(made[i]) == made[i] && !twins.contains(made[i])) {  // a copy
      if (viewed != twins.end() || spec.strides != row_major(spec.shape)) return false;
      continue;
    }
    if (viewed == twins.end() || twins.contains(made[i]) != (viewed->second.get() == tensors[i])) return false;
    const ViewLayout &from = layout_of(viewed->first), &to = layout_of(made[i]);
    const ir::Dim step = to.offset - from.offset;
    if (spec.strides != at_one(to.strides) || place.offset - place_of_twin(viewed->second.get()).offset != at_one({&step, 1}).front()) return false;
  }
  return true;
}

void LateViews::require_one_order(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands, const TensorSpec& made) {
  const auto is_plain = [&](Index i) { return core_.stand_ins[i].strides == row_major(core_.stand_ins[i].shape); };
  const bool own = results_.own_layout(function, value) || function.op->traits.layout != ops::ResultLayout::unknown;
  if (own || std::ranges::all_of(operands, is_plain)) {
    if (made.strides != row_major(made.shape) || (own && made.shape.size() > 3)) throw depends();
    return;
  }
  const ir::Shape& shape = core_.graph.type(value).shape;
  const ir::Shape strides = late_strides(made.shape, made.strides, shape);
  std::vector<LateOperand> layouts;
  for (Index index : operands) {
    const StandIn& s = core_.stand_ins[index];
    if (s.shape.size() > shape.size()) throw depends();
    if (core_.in_late_memory(index)) layouts.push_back({core_.graph.type(s.value).shape, layout_of(index).strides});
    else layouts.push_back({{s.shape.begin(), s.shape.end()}, {s.strides.begin(), s.strides.end()}});
  }
  if (core_.symbols.hints(strides) != made.strides || !lies_in_one_order(core_.graph, shape, layouts)) throw depends();
  const auto at_one = [&](std::span<const ir::Dim> dims) { return core_.symbols.values_where_data_is(1, dims); };
  std::vector<std::pair<Extents, Extents>> small;
  for (const LateOperand& layout : layouts) small.emplace_back(at_one(layout.shape), at_one(layout.strides));
  std::vector<Operand> seen;
  for (const auto& [sizes, steps] : small) seen.push_back({sizes, steps});
  if (late_symbols(shape).size() > 1 || pointwise_strides(function.flavour, at_one(shape), results_.as_computed_with(function, value, seen)) != at_one(strides))
    require_several(shape);
}

/// The symbols in it that depend on data.
std::vector<SymbolId> LateViews::late_symbols(const ir::Shape& shape) const {
  std::vector<SymbolId> late;
  for (const ir::Dim& dim : shape)
    dim.for_each_symbol([&](SymbolId s) {
      if (!core_.symbols.is_known(ir::Dim::symbol(s)) && std::ranges::find(late, s) == late.end()) late.push_back(s);
    });
  return late;
}

/// From now on the graph holds for sizes of at least 2.
void LateViews::require_several(const ir::Shape& shape) {
  for (SymbolId s : late_symbols(shape)) core_.symbols.require_data_of_at_least(2, ir::Dim::symbol(s));
}

bool LateViews::are_given(const ForeignFunction& function, PyObject* kwargs, const ops::ForeignResult& result,
                                       std::span<const Index> operands) const {
  if (!core_.symbols.any_data() || !function.op || (function.flavour == ops::Flavour::torch && !function.may_alias) || kwargs_name_a_layout(kwargs)) return false;
  const auto is_view = [&](ir::ValueId value) {
    return std::ranges::any_of(operands, [&](Index index) { return core_.in_late_memory(index) && views(core_.stand_ins[index].value, value); });
  };
  return !result.values.empty() && std::ranges::all_of(result.values, is_view);
}

/// Whether a value shows elements of another one through nodes that only choose them.
bool LateViews::views(ir::ValueId from, ir::ValueId to) const {
  const auto path = ops::find_view_path(core_.graph, from, to);
  const auto chooses = [&](const ops::ViewStep& step) {
    return core_.graph.node(step.node).op == "unbind" || (ops::loop_of(core_.graph, step.node).has_value() && only_moves(core_.graph, step.node));
  };
  return path && std::ranges::all_of(*path, chooses);
}

Ref LateViews::wrap(PyObject* callable, const ForeignFunction& function, const ops::ForeignResult& result, PyObject* args,
                                      PyObject* kwargs) {
  if (core_.in_branch()) throw depends();
  const std::vector<Index> operands = core_.stand_ins.among(args, kwargs);
  Ref wrapped = results_.wrap_like_twins(callable, function, result, args, kwargs);
  const std::vector<Index> made = core_.stand_ins.among(wrapped.get(), nullptr);
  for (Index index : made) require_one_layout(index, operands);
  ir::Shape sizes;  // of the memory that is viewed
  for (Index index : operands)
    for (const ir::Dim& dim : core_.graph.type(core_.stand_ins[core_.stand_ins.owner(index)].value).shape) sizes.push_back(dim);
  if (late_symbols(sizes).size() > 1 || !is_alike_at_one(callable, function, args, kwargs, made)) require_several(sizes);
  return wrapped;
}

void LateViews::vary(TensorOutput& output, Index index) {
  const ir::Shape& base = core_.graph.type(core_.stand_ins[core_.stand_ins.owner(index)].value).shape;
  const ViewLayout& layout = layout_of(index);
  output.varying_shape = core_.graph.type(core_.stand_ins[index].value).shape;
  output.varying_strides = layout.strides;
  output.varying_offset = layout.offset;
  ir::Shape all = output.varying_shape;
  all.insert(all.end(), output.varying_strides.begin(), output.varying_strides.end());
  all.push_back(output.varying_offset);
  for (SymbolId s : late_symbols(all))
    if (std::ranges::find(base, ir::Dim::symbol(s)) == base.end()) throw depends();
}

}  // namespace tenon::python
