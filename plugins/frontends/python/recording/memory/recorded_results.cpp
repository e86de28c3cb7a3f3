#include "python/recording/memory/recorded_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "python/compat/undefined_results.h"
#include "python/foreign/foreign_arguments.h"
#include "python/graph/moving_nodes.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/metadata/convolution_layout.h"
#include "python/metadata/late_order.h"
#include "python/objects/graph_break.h"
#include "python/opaque/eager_kernels.h"
#include "python/opaque/numpy_answers.h"
#include "python/opaque/opaque_call.h"
#include "python/opaque/quiet_calls.h"
#include "python/recording/graph/varying_input.h"
#include "python/recording/memory/result_types.h"
#include "python/results/twins.h"

namespace tenon::python {
namespace {

/// Strides of a copy in NumPy's order "K": the operand's dimensions from the largest stride to the smallest, that of a broadcast last.
std::vector<std::int64_t> copied_in_order(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (is_row_major(shape, strides)) return row_major(shape);
  MemoryOrder order(shape.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto step = [&](std::int64_t dim) { return std::abs(strides[static_cast<std::size_t>(dim)]); };
  std::ranges::stable_sort(order, std::greater<>(), step);
  return dense_strides(shape, order);
}

}  // namespace

std::optional<ops::AliasLayout> RecordedResults::own_layout(const ForeignFunction& function, ir::ValueId value) const {
  const ir::Value& made = graph_.value(value);
  if (function.flavour != ops::Flavour::torch || made.kind != ir::ValueKind::result) return std::nullopt;
  const ir::Node& node = graph_.node(made.node);
  const bool number_first = !node.operands.empty() && graph_.value(node.operands.front()).kind == ir::ValueKind::literal;
  return ops::layout_of_alias(function.name, node, graph_.type(value).shape, number_first);
}

bool RecordedResults::strides_are_known(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands) const {
  if (result.container != ops::Container::single || result.values.size() != 1 || !function.op || function.has(Trait::hides_base)) return false;
  if (function.flavour == ops::Flavour::torch && any_is_empty_otherwise(operands)) return false;
  if (is_pointwise(function) || own_layout(function, result.values.front())) return true;
  std::size_t rank = 0;
  for (Index index : operands) {
    const StandIn& s = stand_ins_[index];
    if (function.flavour == ops::Flavour::torch && s.shape.size() < rank) continue;
    rank = s.shape.size();
  }
  if (operands.empty()) return true;  // made from numbers
  const ir::Value& value = graph_.value(result.values.front());
  if (value.kind != ir::ValueKind::result) return false;
  if (function.flavour == ops::Flavour::numpy) {
    for (Index index : operands)
      if (!is_row_major(stand_ins_[index].shape, stand_ins_[index].strides)) return false;
    return true;
  }
  // What torch makes of several operations may be transposed; so may what keeps the memory format of its operand, in which dimensions of
  // size 1 have a say.
  const ops::ResultLayout layout = function.op->traits.layout;
  bool exactly_row_major = true;
  for (Index index : operands) exactly_row_major &= stand_ins_[index].strides == row_major(stand_ins_[index].shape);
  const bool reshaped = graph_.node(value.node).op != function.op->name;
  // A convolution without a batch, for one. The meta device gives row-major strides, whatever the CPU would give.
  if (reshaped && layout == ops::ResultLayout::memory_format && !exactly_row_major)
    throw GraphBreak(fmt::format("{} with operands that are not row-major", function.name));
  // torch folds a product of a vector or matrix with a batch by transposing: the result is then not row-major.
  if (stand_ins_[operands.front()].shape.size() < rank && rank > 2) return false;
  if (reshaped || (function.op->decompose && layout == ops::ResultLayout::unknown)) return false;
  if (layout == ops::ResultLayout::row_major || layout == ops::ResultLayout::memory_format || exactly_row_major) return true;
  auto loop = ops::loop_of(graph_, value.node);
  return loop && loop->reducer && graph_.type(result.values.front()).rank() < rank;  // reductions are row-major whatever their operands are
}

/// Whether a number is among the operands as a 0-d tensor would be.
bool RecordedResults::has_number_operand(const ForeignFunction& function, ir::ValueId value) const {
  const ir::Value& made = graph_.value(value);
  if (function.flavour != ops::Flavour::torch || made.kind != ir::ValueKind::result) return false;
  const ir::Node& node = graph_.node(made.node);
  if (!ops::numbers_are_operands(function.name, node)) return false;
  return std::ranges::any_of(node.operands, [&](ir::ValueId operand) { return graph_.value(operand).kind == ir::ValueKind::literal; });
}

std::vector<Operand> RecordedResults::as_computed_with(const ForeignFunction& function, ir::ValueId value, std::vector<Operand> operands) const {
  if (has_number_operand(function, value)) operands.push_back({});
  if (ops::operands_are_swapped(function.name)) std::ranges::reverse(operands);
  return operands;
}

TensorSpec RecordedResults::fresh_spec(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands) const {
  TensorSpec spec;
  const ir::Type& type = graph_.type(value);
  spec.dtype = type.dtype;
  spec.shape = symbols_.hints(type.shape);
  std::vector<Operand> shapes;
  bool all_row_major = true, all_scalars = true;  // row-major: where a dimension of size 1 has another stride, it has a say
  for (Index index : operands) {
    const StandIn& s = stand_ins_[index];
    shapes.push_back({s.shape, s.strides});
    all_row_major &= s.strides == row_major(s.shape);
    all_scalars &= s.kind == TensorKind::scalar;
  }
  const auto fits = [&](const Operand& operand) { return operand.shape.size() <= spec.shape.size(); };
  const bool pointwise = is_pointwise(function) && std::ranges::all_of(shapes, fits);
  if (pointwise) shapes = as_computed_with(function, value, std::move(shapes));
  spec.strides = pointwise && !all_row_major ? pointwise_strides(function.flavour, spec.shape, shapes) : row_major(spec.shape);
  if (function.has(Trait::keeps_order) && shapes.size() == 1 && std::ranges::find(spec.shape, 0) == spec.shape.end())
    spec.strides = copied_in_order(spec.shape, shapes.front().strides);
  if (const auto own = own_layout(function, value)) {
    spec.strides = strides_by(*own, spec.shape, shapes);
  } else if (function.op->traits.layout == ops::ResultLayout::memory_format) {
    spec.strides = strides_in_memory_format(graph_, value, spec.shape, shapes);
  }
  set_result_type(spec, function, all_scalars);
  return spec;
}

/// Takes over into the version of a result what torch counts while it makes that, by its name or, where torch itself has made it, by its twin.
void RecordedResults::note_writes(const ForeignFunction& function, Index made, PyObject* twin) {
  if (function.flavour != ops::Flavour::torch) return;
  const bool has_elements = std::ranges::find(stand_ins_[made].shape, 0) == stand_ins_[made].shape.end();
  std::uint32_t& writes = stand_ins_.storage_of(made).writes;
  writes = ops::writes_of_alias(function.name, has_elements);
  if (writes > 0 || !twin) return;
  const Ref counted = Ref::steal(PyObject_GetAttrString(twin, "_version"));
  if (counted) writes = static_cast<std::uint32_t>(PyLong_AsUnsignedLong(counted.get()));
  else PyErr_Clear();  // an inference tensor keeps none
}

Ref RecordedResults::wrap_fresh(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands) {
  const ir::ValueId value = result.values.front();
  const TensorSpec spec = fresh_spec(function, value, operands);
  const Index index = core_.add_fresh(spec.kind, value, spec);
  note_writes(function, index);
  return stand_ins_[index].object;
}

Ref RecordedResults::wrap_like_twins(PyObject* callable, const ForeignFunction& function, const ops::ForeignResult& result, PyObject* args,
                                    PyObject* kwargs) {
  Ref twin_args = stand_ins_.with_twins(args);
  Ref twin_kwargs = kwargs ? stand_ins_.with_twins(kwargs) : Ref();
  if (function.flavour == ops::Flavour::torch) {
    twin_args = on_meta_device(twin_args.get());
    twin_kwargs = on_meta_device(twin_kwargs.get());
  }
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  const bool torch = function.flavour == ops::Flavour::torch;
  Ref answer = with_undefined_results(function.name, torch ? call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour)
                                                           : numpy_answer(stand_ins_, callable, function.name, operands, twin_args.get(), twin_kwargs.get()));
  if (torch && (function.composite ? any_is_empty_otherwise(operands) || any_is_odd_row(operands) : lie_unusually(operands))) answer = as_kernels_lay_out(std::move(answer), callable, args, kwargs, result);
  return wrap_answer(answer.get(), function, result.values, operands);
}

bool RecordedResults::any_is_empty_otherwise(std::span<const Index> operands) const {
  return std::ranges::any_of(operands, [&](Index index) {
    const StandIn& s = stand_ins_[index];
    return std::ranges::find(s.shape, 0) != s.shape.end() && s.strides != row_major(s.shape);
  });
}

bool RecordedResults::any_is_odd_row(std::span<const Index> operands) const {
  return std::ranges::any_of(operands, [&](Index index) {
    const StandIn& s = stand_ins_[index];
    return is_row_major(s.shape, s.strides) && s.strides != row_major(s.shape);
  });
}

bool RecordedResults::lie_unusually(std::span<const Index> operands) const {
  return std::ranges::any_of(operands, [&](Index operand) { return stand_ins_[operand].strides != row_major(stand_ins_[operand].shape); });
}

Ref RecordedResults::as_kernels_lay_out(Ref answer, PyObject* callable, PyObject* args, PyObject* kwargs, const ops::ForeignResult& result) {
  constexpr std::int64_t kMost = 1 << 20, kMostOfProducts = 1 << 14;
  const bool product = std::ranges::any_of(result.values, [&](ir::ValueId value) {
    const ir::Value& made = graph_.value(value);
    const auto loop = made.kind == ir::ValueKind::result ? ops::loop_of(graph_, made.node) : std::nullopt;
    return loop && loop->reducer && graph_.node(made.node).operands.size() > 1;
  });
  const Ref twin_args = stand_ins_.with_twins(args), twin_kwargs = kwargs ? stand_ins_.with_twins(kwargs) : Ref();
  const auto computes = [](DType t) { return is_float(t) || is_complex(t); };
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  const auto some = std::ranges::count_if(operands, [&](Index index) { return computes(stand_ins_[index].dtype); });
  // Integers beside floats may be indices, and those that give integers divisors; what makes floats of integers alone takes any.
  std::vector<Ref> given;
  collect_tensors(answer.get(), given);
  const bool makes_floats = some == 0 && std::ranges::all_of(given, [&](const Ref& twin) { return computes(read_twin(twin.get()).dtype); });
  const bool on_device = makes_floats || some == std::ssize(operands);
  return with_strides_of_kernels(std::move(answer), stand_ins_, callable, twin_args.get(), twin_kwargs.get(), product ? kMostOfProducts : kMost, on_device);
}

Ref RecordedResults::wrap_answer(PyObject* answer, const ForeignFunction& function, std::span<const ir::ValueId> values,
                                std::span<const Index> operands) {
  if (values.empty() && !is_empty_sequence(answer)) throw GraphBreak(fmt::format("{} gives no tensor", function.name));
  std::size_t next = 0;
  std::function<Ref(PyObject*)> take = [&](PyObject* twin) {
    if (PyTuple_Check(twin) || PyList_Check(twin)) return rebuilt(twin, take);
    if (twin == Py_None) return Ref::borrow(twin);
    if (next == values.size()) throw GraphBreak(fmt::format("{} gives more results than its op", function.name));
    return stand_in_for_twin(twin, values[next++], function, operands);
  };
  Ref wrapped = take(answer);
  if (next != values.size()) throw GraphBreak(fmt::format("{} gives fewer results than its op", function.name));
  return wrapped;
}

Ref RecordedResults::stand_in_for_twin(PyObject* twin, ir::ValueId value, const ForeignFunction& function,
                                     std::span<const Index> operands) {
  TensorSpec spec = read_view_twin(twin);
  if (auto known = stand_ins_.of_twin(twin)) return stand_ins_[*known].object;
  const ir::Type& type = graph_.type(value);
  const Extents sizes = core_.is_late(value) ? symbols_.hints(type.shape) : symbols_.values(type.shape);
  if (spec.dtype != type.dtype || spec.shape != sizes)
    throw GraphBreak(fmt::format("{}: the op gives {}[{}], the library {}", function.name, name_of(type.dtype), fmt::join(sizes, ", "), spec.describe()));
  const TwinPlace place = spec.kind == TensorKind::scalar ? TwinPlace() : place_of_twin(twin);
  const auto storage = spec.kind == TensorKind::scalar ? std::nullopt : stand_ins_.storage_at(place);
  const bool lazy = spec.kind == TensorKind::torch && is_lazy(twin);  // inside the graph it has its own elements
  if (lazy && (!storage || stand_ins_[stand_ins_.owner_of(*storage)].dtype != spec.dtype)) throw GraphBreak("an operation that gives a lazily conjugated or negated tensor");
  if (!storage) {
    const bool unchanged = std::ranges::any_of(operands, [&](Index operand) { return stand_ins_[operand].value == value; });
    if (unchanged && is_complex(type.dtype) && function.kind != CallClass::same_elements)
      throw GraphBreak(fmt::format("{} may compute with complex numbers", function.name));
    const Index index = core_.add_fresh(spec.kind, value, spec);
    if (spec.kind == TensorKind::scalar) return stand_ins_[index].object;
    stand_ins_[index].base = hidden_base_of(twin);
    note_writes(function, index, twin);
    stand_ins_.adopt_twin(index, twin);
    return stand_ins_[index].object;
  }
  StandIn view = stand_in_of(spec, value);
  view.device = type.device;
  // Of an index that the graph computes the twin knows nothing: the view begins anywhere.
  const bool anywhere = std::ranges::any_of(operands, [&](Index operand) { return stand_ins_[operand].kind == TensorKind::scalar; });
  if (anywhere || stand_ins_[stand_ins_.owner_of(*storage)].dtype != spec.dtype) {
    const Index seen = stand_ins_.add_reinterpreted(std::move(view), *storage, place);
    stand_ins_.storage_of(seen).is_view = spec.kind == TensorKind::torch && checked(PyObject_CallMethod(twin, "_is_view", nullptr)).is(Py_True);
    return stand_ins_[seen].object;
  }
  view.writeable = spec.writeable;
  view.storage = *storage;
  view.offset = stand_ins_.offset_in(*storage, place);
  view.twin = Ref::borrow(twin);
  view.counts_apart = function.has(Trait::counts_apart);
  if (function.has(Trait::detaches)) view.detached = Detached::itself;
  find_viewed(view, operands);
  return stand_ins_[stand_ins_.add_view(std::move(view))].object;
}

/// Finds what a view was made of, and how.
void RecordedResults::find_viewed(StandIn& view, std::span<const Index> operands) {
  Index viewed = stand_ins_.owner_of(view.storage);
  std::optional<ir::ValueId> from;
  for (Index operand : operands) {
    if (stand_ins_[operand].storage != view.storage) continue;
    viewed = operand;
    from = present_.of(operand);
    view.path = ops::find_view_path(graph_, *from, view.value);
    if (view.path) break;
  }
  if (stand_ins_[viewed].kind != view.kind) throw GraphBreak("a view of memory of which the call was not given");
  view.viewed = viewed;
  view.version = stand_ins_.storage_of(viewed).version;
  view.counts_apart |= stand_ins_[viewed].counts_apart;
  if (view.detached == Detached::no && stand_ins_[viewed].detached != Detached::no && !stand_ins_[viewed].leaf) view.detached = Detached::what_it_views;
  view.untracked = stand_ins_[viewed].untracked || !torch_state().value_or(core_.state).grad_enabled();
  view.one_of_several = stand_ins_[viewed].one_of_several && view.detached == Detached::no;
  view.inference = stand_ins_[viewed].viewed && stand_ins_[viewed].inference;
  // Whatever the grad mode: torch says so of views, but not of those of what was made in inference mode.
  view.requires_grad = stand_ins_[viewed].requires_grad && view.detached == Detached::no && !core_.is_inference(viewed);
  if (symbols_.any() && !core_.is_late(view.value) && !core_.in_late_memory(viewed)) settle_layout(view, viewed, from);
}

std::optional<ir::Shape> RecordedResults::strides_of(Index index) const {
  const StandIn& s = stand_ins_[index];
  const Index owner = stand_ins_.owner(index);
  if (s.layout) return s.layout->strides;
  if (s.crossed && s.viewed) return strides_of(*s.viewed);
  if (core_.is_late(s.value)) return std::nullopt;
  if (owner != index) return ir::Shape(s.strides.begin(), s.strides.end());  // made before anything varied
  const ir::Type& type = graph_.type(s.value);
  if (s.input) return graph_.type(graph_.inputs()[*s.input]).resolved_strides();
  if (s.strides == row_major(s.shape)) return ir::row_major_strides(type.shape);
  if (memory_order(s.shape, s.strides).empty()) return std::nullopt;
  return late_strides(s.shape, s.strides, type.shape);
}

void RecordedResults::settle_gaps(std::span<const Index> operands) {
  if (!symbols_.any()) return;
  for (Index index : operands)
    if (const auto strides = strides_of(index); strides && !core_.in_late_memory(index)) python::settle_gaps(symbols_, graph_.type(stand_ins_[index].value).shape, *strides, stand_ins_[index].strides);
}

void RecordedResults::settle_gaps_for(const ForeignFunction& function, PyObject* kwargs, std::size_t first, std::span<const Index> operands) {
  if (!symbols_.any()) return;
  const auto made = graph_.nodes().subspan(std::min(first, graph_.nodes().size()));
  if (made.empty()) return settle_gaps(operands);
  if (std::ranges::all_of(made, [&](ir::NodeId node) { return is_always_view(graph_, node); })) return;
  const bool fresh = function.op && !function.writes && (function.flavour == ops::Flavour::torch ? !function.may_alias : function.ufunc != nullptr);
  const bool by_order = fresh && !kwargs_name_a_layout(kwargs) && (is_pointwise(function) || function.op->traits.layout != ops::ResultLayout::unknown);
  const auto is_line = [&](ir::ValueId value) { return graph_.type(value).rank() <= 1; };
  const auto is_alike = [&](ir::NodeId node) { return ops::find_op(graph_.node(node).op) != nullptr && (by_order || (fresh && std::ranges::all_of(graph_.node(node).results, is_line))); };
  const auto reads_numbers = [&](ir::NodeId node) { return std::ranges::all_of(graph_.node(node).operands, [&](ir::ValueId value) { return graph_.type(value).rank() == 0; }); };
  const auto was_tried = [&](ir::NodeId node) { return std::ranges::find(without_gaps_, node) != without_gaps_.end(); };
  const bool tried = std::ranges::any_of(made, was_tried);
  if (!std::ranges::all_of(made, [&](ir::NodeId node) { return is_alike(node) || was_tried(node) || (tried && reads_numbers(node)); })) settle_gaps(operands);
}

/// For each way in which operands may lie, as far as gaps that vary go, the strides of all; empty where they are many or cannot be said.
std::vector<std::vector<Extents>> RecordedResults::ways_to_lie(std::span<const Index> operands) const {
  constexpr std::size_t kMost = 8;
  std::vector<std::vector<Extents>> ways = {{}};
  for (Index index : operands) {
    const StandIn& s = stand_ins_[index];
    const auto strides = core_.in_late_memory(index) ? std::nullopt : strides_of(index);
    const std::vector<Extents> own = strides ? python::ways_to_lie(graph_.type(s.value).shape, *strides, s.shape, s.strides) : std::vector<Extents>();
    if (own.size() * ways.size() > kMost) return {};
    std::vector<std::vector<Extents>> all;
    for (const std::vector<Extents>& way : ways)
      for (const Extents& each : own) {
        all.push_back(way);
        all.back().push_back(each);
      }
    ways = std::move(all);
  }
  return ways;
}

void RecordedResults::note_opaque(ir::NodeId node, PyObject* callable, PyObject* args, PyObject* kwargs) {
  constexpr std::int64_t kMost = 1 << 18;  // elements
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  if (!symbols_.any() || operands.empty() || !core_.device_of(operands).is_host()) return;
  std::int64_t elements = 0;
  std::vector<PyObject*> twins;
  for (Index index : operands) {
    const Extents& shape = stand_ins_[index].shape;
    elements += std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
    twins.push_back(stand_ins_.twin(index));
  }
  if (elements > kMost) return;
  const std::vector<std::vector<Extents>> ways = ways_to_lie(operands);
  if (ways.size() < 2) return;
  const Ref twin_args = stand_ins_.with_twins(args), twin_kwargs = kwargs ? stand_ins_.with_twins(kwargs) : Ref();
  if (lie_alike(callable, twin_args.get(), twin_kwargs.get(), twins, ways)) without_gaps_.push_back(node);
}

/// In which order a view lies decides what the library does with it: where numbers vary, that is guarded.
void RecordedResults::settle_layout(StandIn& view, Index viewed, std::optional<ir::ValueId> from) {
  const ir::Shape& shape = graph_.type(view.value).shape;
  const auto of_viewed = from && view.path ? strides_of(viewed) : std::nullopt;
  auto layout = of_viewed ? layout_of_view(graph_, *from, *of_viewed, view.value) : std::nullopt;
  if (layout) settle_unit_strides(*layout, shape, symbols_.values(layout->strides), view.strides);
  if (!layout || symbols_.values(layout->strides) != view.strides) {
    for (const ir::Dim& dim : shape) symbols_.constant(dim);
    return;
  }
  settle_order(symbols_, shape, layout->strides, view.strides);
  view.layout = std::move(layout);
}

}  // namespace tenon::python
