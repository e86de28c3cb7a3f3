#include "python/recording/recorded_outputs.h"

#include <algorithm>
#include <numeric>

#include "core/ir/printer.h"
#include "python/metadata/memory_overlap.h"
#include "python/metadata/view_layout.h"
#include "python/results/twins.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {

std::uint32_t RecordedOutputs::number(PyObject* stand_in) {
  if (const auto known = numbers_.find(stand_in); known != numbers_.end()) return known->second;
  if (is_symbolic_int(stand_in)) symbols_.compute(*integer_of(stand_in));
  else if (!is_symbolic_scalar(stand_in)) require_buildable(stand_in);
  outputs_.push_back(Ref::borrow(stand_in));
  return numbers_[stand_in] = static_cast<std::uint32_t>(outputs_.size() - 1);
}

void RecordedOutputs::require_buildable(PyObject* stand_in) {
  const Index index = stand_ins_.require(stand_in);
  const StandIn& s = stand_ins_[index];
  if (s.counts_apart) throw Unbuildable(stand_in, "a tensor read as `.data`, whose writes torch counts apart, leaves the graph");
  gradients_.require_not_kept_by_function(index);
  if (gradients_.is_forgotten(index)) throw Unbuildable(stand_in, "what a transform of torch.func differentiates by leaves the graph");
  if (gradients_.retains_gradient(index)) throw Unbuildable(stand_in, "a tensor that retains its gradient leaves the graph");
  if (s.leaf || (s.viewed && s.requires_grad && stand_ins_[stand_ins_.root(index)].leaf)) throw Unbuildable(stand_in, "a tensor that the call made require a gradient leaves the graph");
  if (s.requires_grad && !s.input)
    if (const auto function = gradients_.unwalked_function(present_.of(index))) {
      functions_leave_ = true;
      throw Unbuildable(stand_ins_[*function].object.get(), "a gradient is asked for later of a torch.autograd.Function, or of a call whose gradient only torch knows");
    }
  const StandIn& root = stand_ins_[stand_ins_.root(index)];
  if (s.requires_grad && s.viewed && root.input && may_overlap_itself(root.shape, root.strides))
    throw Unbuildable(stand_in, "a view of an input whose elements share memory leaves the graph");  // its gradient is by places in memory
  if (s.requires_grad && gradients_.is_view_of_function(index)) throw Unbuildable(stand_in, "a view that a torch.autograd.Function gave leaves the graph");
  if (s.requires_grad && !s.input) gradients_.require_kept_unwritten(present_.of(index));
  if (s.requires_grad && !s.input && gradients_.needs_roots(present_.of(index))) throw Unbuildable(stand_in, "what is to be differentiated by tensors as the graph has written them leaves it");
}

namespace {

/// What every output says of a tensor or array.
TensorOutput output_like(const StandIn& stand_in, ir::ValueId value) {
  TensorOutput output;
  output.tensor = stand_in.kind;
  output.value = value;
  output.dtype = stand_in.dtype;
  output.device = stand_in.device;
  output.shape = stand_in.shape;
  output.strides = stand_in.strides;
  return output;
}

/// A result in fresh memory is dense: its strides follow from its sizes and from the order in which its dimensions lie. Where it has no elements
/// its strides may say none.
void vary(TensorOutput& output, const ir::Shape& shape) {
  if (std::ranges::all_of(shape, [](const ir::Dim& d) { return d.is_constant(); })) return;
  output.varying_shape = shape;
  if (row_major(output.shape) != output.strides) output.order = memory_order(output.shape, output.strides);
  if (!output.order.empty()) return;
  output.order.resize(shape.size());
  std::iota(output.order.begin(), output.order.end(), 0);
}

bool varies(const ir::Dim& dim) { return !dim.is_constant(); }
bool varies(const ir::Shape& shape) {
  return std::ranges::any_of(shape, [](const ir::Dim& d) { return varies(d); });
}

/// The numbers that vary in how a value was made from `base`: the place of `x[t]`, whose sizes say nothing of t.
std::vector<ir::Dim> numbers_on_the_way(const ir::Graph& graph, ir::ValueId base, ir::ValueId value) {
  std::vector<ir::Dim> numbers;
  while (!(value == base) && graph.value(value).kind == ir::ValueKind::result) {
    const ir::Node& node = graph.node(graph.value(value).node);
    for (const ir::NamedAttribute& attribute : node.attributes) {
      if (const auto* number = std::get_if<ir::Dim>(&attribute.value)) numbers.push_back(*number);
      if (const auto* several = std::get_if<std::vector<ir::Dim>>(&attribute.value)) numbers.insert(numbers.end(), several->begin(), several->end());
    }
    if (node.operands.empty()) break;
    value = node.operands.front();
  }
  std::erase_if(numbers, [](const ir::Dim& number) { return !varies(number); });
  return numbers;
}

}  // namespace

/// The view as nodes from the value of the memory's first one, whatever was written through it.
ir::ValueId RecordedOutputs::unwritten(const StandIn& view) {
  if (!view.viewed || !view.path) return view.value;
  ir::ValueId value = unwritten(stand_ins_[*view.viewed]);
  for (const ops::ViewStep& step : *view.path) value = ops::replayed(core_.builder, step, value);
  return value;
}

/// A view among varying numbers: where its layout cannot be followed they are constants, in a capture to come.
void RecordedOutputs::vary_view(TensorOutput& output, const StandIn& view, const StandIn& base) {
  const ir::ValueId value = unwritten(view);
  const ir::Type type = graph_.type(value), base_type = graph_.type(base.value);
  const std::vector<ir::Dim> numbers = numbers_on_the_way(graph_, base.value, value);
  const ir::Shape base_strides = (base.input ? graph_.type(graph_.inputs()[*base.input]) : base_type).resolved_strides();  // what is written stays where it is
  if (!varies(type.shape) && !varies(base_type.shape) && !varies(base_strides) && numbers.empty()) return;
  const bool plain = base.input || row_major(base.shape) == base.strides;
  auto layout = plain ? layout_of_view(graph_, base.value, base_strides, value) : std::nullopt;
  if (layout) settle_unit_strides(*layout, type.shape, symbols_.values(layout->strides), view.strides);
  if (layout && symbols_.values(layout->strides) == view.strides && symbols_.value(layout->offset) == view.offset - base.offset) {
    output.varying_shape = type.shape;
    output.varying_strides = layout->strides;
    output.varying_offset = layout->offset;
    for (const ir::Dim& dim : layout->strides) symbols_.compute(dim);
    symbols_.compute(layout->offset);
    return;
  }
  for (const ir::Shape* shape : {&type.shape, &base_type.shape, &base_strides})
    for (const ir::Dim& dim : *shape) symbols_.constant(dim);
  for (const ir::Dim& number : numbers) symbols_.constant(number);
}

std::uint32_t RecordedOutputs::number_output(PyObject* number, CapturedGraph& captured) {
  TensorOutput output;
  output.kind = TensorOutput::Kind::number;
  output.varying_shape = {*integer_of(number)};
  captured.tensors.push_back(std::move(output));
  return static_cast<std::uint32_t>(captured.tensors.size() - 1);
}

std::uint32_t RecordedOutputs::fresh_output(Index index, CapturedGraph& captured) {
  if (auto made = made_.find(index); made != made_.end()) return made->second;
  const StandIn& s = stand_ins_[index];
  TensorOutput output = output_like(s, present_.of(index));
  output.kind = TensorOutput::Kind::fresh;
  output.index = static_cast<std::uint32_t>(graph_.outputs().size());
  output.writes = stand_ins_.storage_of(index).writes;
  output.writeable = s.writeable;
  output.inference = s.inference;
  output.base = s.base;
  vary(output, graph_.type(s.value).shape);
  output.late = core_.is_late(s.value);
  output.requires_grad = s.requires_grad;
  output.spent = s.requires_grad && gradients_.is_spent(output.value);
  graph_.add_output({output.value, ir::OutputKind::result, {}});
  trace_.add_output(s.object.get());
  captured.tensors.push_back(std::move(output));
  const auto slot = static_cast<std::uint32_t>(captured.tensors.size() - 1);
  made_.emplace(index, slot);
  return slot;
}

/// Whether the library makes the one from the other's memory as elements of which they are the parts, or which are their parts.
bool RecordedOutputs::are_parts(Index whole_index, Index first_index) const {
  const StandIn &whole = stand_ins_[whole_index], &first = stand_ins_[first_index];
  if (whole.kind != first.kind || varies(graph_.type(whole.value).shape) || varies(graph_.type(first.value).shape)) return false;
  if (is_complex(whole.dtype)) return 2 * size_of(first.dtype) == size_of(whole.dtype);
  const bool joins = is_complex(first.dtype) && size_of(first.dtype) == 2 * size_of(whole.dtype) && whole.kind == TensorKind::torch && !whole.requires_grad;
  return joins && place_of_twin(stand_ins_.twin(whole_index)).offset % 2 == 0;
}

/// Whether a tensor is to be made as a view of the complex one whose parts are its elements, or of the one of which its own are parts.
bool RecordedOutputs::shows_parts(Index index) const {
  if (!stand_ins_.storage_of(index).reinterprets) return false;
  const std::uint32_t memory = stand_ins_.memory_of(index), own = stand_ins_[index].storage;
  const Index whole_index = stand_ins_.owner_of(memory), first_index = stand_ins_.owner_of(own);
  const StandIn &whole = stand_ins_[whole_index], &first = stand_ins_[first_index];
  bool shared = whole.input.has_value();
  for (const Ref& output : outputs_)
    if (const auto other = stand_ins_.find(output.get())) shared |= stand_ins_[*other].storage != own && stand_ins_.memory_of(*other) == memory;
  const bool gaps = memory_order(first.shape, first.strides).empty() && !first.shape.empty() && !is_row_major(first.shape, first.strides);
  const bool parts = are_parts(whole_index, first_index);
  if (!shared && !gaps) return parts && stand_ins_.storage_of(index).is_view && !whole.requires_grad;
  if (!parts) throw GraphBreak("a result that views another tensor's memory under another dtype, or at an index that the graph computes");
  return true;
}

std::uint32_t RecordedOutputs::parts_output(Index index, CapturedGraph& captured) {
  if (auto made = made_.find(index); made != made_.end()) return made->second;
  const StandIn& s = stand_ins_[index];
  const Index whole = stand_ins_.owner_of(stand_ins_.memory_of(index));
  TensorOutput output = output_like(s, value_of_view(index));
  output.offset = stand_ins_.storage_of(index).place;
  output.writeable = s.writeable;
  output.parts = true;
  const auto input = stand_ins_[whole].input;
  output.kind = input ? TensorOutput::Kind::input_view : TensorOutput::Kind::fresh_view;
  output.index = input ? *input : fresh_output(whole, captured);
  captured.tensors.push_back(std::move(output));
  const auto slot = static_cast<std::uint32_t>(captured.tensors.size() - 1);
  made_.emplace(index, slot);
  return slot;
}

/// None for a view of written memory that is no chain of views: as an object it can be made, as a value of the graph it cannot.
ir::ValueId RecordedOutputs::value_of_view(Index index) {
  try {
    return present_.of(index);
  } catch (const GraphBreak&) {
    return {};
  }
}

/// The view that is an output and that this one was made of: torch's history of one goes through the other.
std::optional<RecordedOutputs::Index> RecordedOutputs::viewed_output(Index index) const {
  if (!stand_ins_[index].requires_grad || stand_ins_[index].detached != Detached::no) return std::nullopt;
  for (auto at = stand_ins_[index].viewed; at; at = stand_ins_[*at].viewed) {
    const StandIn& s = stand_ins_[*at];
    if (!s.viewed || !s.requires_grad || s.detached != Detached::no || s.crossed) return std::nullopt;
    if (numbers_.contains(s.object.get())) return at;
  }
  return std::nullopt;
}

/// The libraries make it from the object whose memory it has, as the program did.
std::uint32_t RecordedOutputs::crossed_output(Index index, CapturedGraph& captured) {
  if (auto made = made_.find(index); made != made_.end()) return made->second;
  const StandIn& s = stand_ins_[index];
  const StandIn& base = stand_ins_[*s.viewed];
  TensorOutput output = output_like(s, value_of_view(index));
  output.writes = s.writes;
  output.kind = base.input ? TensorOutput::Kind::input_crossed : TensorOutput::Kind::fresh_crossed;
  output.index = base.input ? *base.input : tensor_output(*s.viewed, captured);
  captured.tensors.push_back(std::move(output));
  const auto slot = static_cast<std::uint32_t>(captured.tensors.size() - 1);
  made_.emplace(index, slot);
  return slot;
}

std::uint32_t RecordedOutputs::tensor_output(Index index, CapturedGraph& captured) {
  const bool parts = shows_parts(index);
  const StandIn& s = stand_ins_[index];
  const Index first = stand_ins_.root(index);
  const StandIn& base = stand_ins_[first];
  if (s.crossed) return crossed_output(index, captured);
  if (parts && first == index) return parts_output(index, captured);
  if (s.requires_grad && is_complex(s.dtype)) throw GraphBreak("complex numbers that require grad", kComplexGradHint);
  if (s.kind == TensorKind::torch && s.viewed && s.twin && is_lazy(s.twin.get())) throw GraphBreak("a result that is lazily conjugated or negated");
  if (first == index && !s.input) {
    if (memory_order(s.shape, s.strides).empty() && !s.shape.empty() && !is_row_major(s.shape, s.strides)) throw GraphBreak("a result whose strides leave gaps");
    return fresh_output(index, captured);
  }
  if (auto made = made_.find(index); made != made_.end()) return made->second;
  TensorOutput output = output_like(s, value_of_view(index));
  output.offset = s.offset - base.offset;
  output.writeable = s.writeable;
  output.detached = s.detached;
  output.untracked = s.untracked;
  output.one_of_several = s.one_of_several && s.detached == Detached::no && !s.untracked && !s.inference;
  output.requires_grad = s.requires_grad && !s.untracked;
  output.inference = s.inference;
  if (core_.in_late_memory(index)) late_views_.vary(output, index);
  else vary_view(output, s, base);
  output.kind = base.input ? TensorOutput::Kind::input_view : TensorOutput::Kind::fresh_view;
  output.index = base.input ? *base.input : base.crossed ? crossed_output(first, captured) : parts ? parts_output(first, captured) : fresh_output(first, captured);
  if (const auto viewed = viewed_output(index)) output.through = tensor_output(*viewed, captured);
  captured.tensors.push_back(std::move(output));
  const auto slot = static_cast<std::uint32_t>(captured.tensors.size() - 1);
  made_.emplace(index, slot);
  return slot;
}

/// Every input whose memory was written becomes an update.
void RecordedOutputs::add_updates(CapturedGraph& captured) {
  for (std::uint32_t input = 0; input < inputs_.stand_ins().size(); ++input) {
    const Index index = inputs_.stand_ins()[input];
    const Storage& storage = stand_ins_.storage_of(index);
    if (storage.version == 0 && storage.writes == 0) continue;
    TensorUpdate update{input, std::nullopt, storage.writes};
    const ir::ValueId value = present_.of(index), before = graph_.inputs()[input];
    if (!(value == before)) {
      update.output = static_cast<std::uint32_t>(graph_.outputs().size());
      graph_.add_output({value, ir::OutputKind::update, before});
    }
    captured.updates.push_back(update);
  }
}

/// The calls as traced write into their arguments: those that are inputs of the graph are copied first.
void RecordedOutputs::name_copies(CapturedGraph& captured) {
  Trace& trace = trace_.trace();
  for (const TensorUpdate& update : captured.updates) {
    const StandIn& s = stand_ins_[inputs_.stand_ins()[update.input]];
    const bool dense = is_row_major(s.shape, s.strides) || !memory_order(s.shape, s.strides).empty();
    Ref key = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
    trace.types[key.get()] = trace.types[s.object.get()];
    trace.inputs[update.input] = key;
    trace.copies.push_back({update.input, update.output.has_value(), dense ? copying_function(s.kind) : function_that_keeps_strides(), s.object});
  }
}

/// Whether the graph itself writes the new value of an input, whatever its sizes are: into rows without gaps (where no warning and no branch after it
/// would have the call repeated). Else the write goes by the sizes.
bool RecordedOutputs::is_written_by_graph(std::uint32_t input) const {
  const TensorSpec& spec = inputs_.spec(input);
  return spec.kind == TensorKind::torch && spec.free_strides == 0 && is_row_major(spec.shape, spec.strides);
}

CapturedGraph RecordedOutputs::finish() {
  trace_.resolve_places();
  CapturedGraph captured;
  for (const Ref& output : outputs_) {
    PyObject* object = output.get();
    if (is_symbolic_int(object)) captured.outputs.push_back(number_output(object, captured));
    else if (is_symbolic_scalar(object)) captured.outputs.push_back(scalar_output(scalar_of(object), object, captured));
    else captured.outputs.push_back(tensor_output(stand_ins_.require(object), captured));
  }
  add_updates(captured);
  const bool warns = std::ranges::any_of(trace_.op_names(), [](const std::string& op) { return op.starts_with("numpy."); });
  for (const TensorUpdate& update : captured.updates) {
    if (!warns && assumptions_.empty() && is_written_by_graph(update.input)) continue;
    if (!core_.alone) continue;  // the objects say how large they are
    core_.fix_sizes_to_come(inputs_.stand_ins()[update.input]);
    if (const auto& strides = graph_.type(graph_.inputs()[update.input]).strides)
      for (const ir::Dim& stride : *strides) symbols_.constant(stride);
  }
  captured.numbers = symbols_.guard();
  for (Index index : inputs_.stand_ins()) trace_.trace().inputs.push_back(stand_ins_[index].object);
  for (const StandIn& s : stand_ins_) trace_.trace().types[s.object.get()] = ir::print_type(graph_, graph_.type(s.value));
  name_copies(captured);
  captured.turns = gradients_.turns();
  inputs_.give(captured);
  captured.opaque_calls = opaque_.take();
  captured.assumptions = assumptions_.take();
  captured.error_handlings = std::move(core_.error_handlings);
  captured.takes_random_numbers = core_.random_token.has_value();
  captured.draws_by_kernels = core_.draws_by_kernels;
  captured.draws_by_calls = core_.draws_by_calls;
  captured.recording = std::make_unique<Recording>(std::move(graph_), std::move(trace_.trace()), trace_.take_op_names());
  captured.walks = gradients_.any();
  captured.late_sizes = symbols_.any_data();
  add_gradients(captured, what_torch_keeps(captured));
  return captured;
}

rewrite::Keeping RecordedOutputs::what_torch_keeps(const CapturedGraph& captured) const {
  rewrite::Keeping known;
  known.lets_go = [this](std::span<const ir::NodeId> reading, std::span<const ir::NodeId> others) { return gradients_.lets_go(reading, others); };
  for (const StandIn& s : stand_ins_) known.tensors.push_back(s.value);
  const auto inputs = captured.recording->graph.inputs();
  for (std::uint32_t i = 0; i < captured.inputs.size(); ++i)
    if (captured.inputs[i].kind == TensorKind::scalar) known.fixed.push_back(inputs[i]);
  for (std::uint32_t i : gradients_.loose_inputs()) known.overwritten.push_back(inputs[i]);
  return known;
}

std::uint32_t RecordedOutputs::scalar_output(const ScalarValue& scalar, PyObject* object, CapturedGraph& captured) {
  TensorOutput output;
  if (scalar.step) {
    output.kind = TensorOutput::Kind::tape_float;
    output.index = *scalar.step;
    captured.tensors.push_back(std::move(output));
    return static_cast<std::uint32_t>(captured.tensors.size() - 1);
  }
  output.kind = TensorOutput::Kind::fresh;
  output.tensor = TensorKind::scalar;
  output.plain_number = true;
  output.index = static_cast<std::uint32_t>(graph_.outputs().size());
  output.dtype = scalar.integral ? DType::i64 : DType::f64;
  graph_.add_output({scalar.value, ir::OutputKind::result, {}});
  trace_.add_output(object);
  captured.tensors.push_back(std::move(output));
  return static_cast<std::uint32_t>(captured.tensors.size() - 1);
}

}  // namespace tenon::python
