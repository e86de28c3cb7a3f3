#include "python/call/cache_entry.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/rewrite/rewriter.h"
#include "python/call/program/run_frame.h"
#include "python/call/gradients/spent_node.h"
#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/foreign/autocast.h"
#include "python/graph/error_alarms.h"
#include "python/graph/given_tensors.h"
#include "python/graph/graph_of_ops.h"
#include "python/library/numpy_api.h"
#include "python/library/numpy_state.h"
#include "python/library/random_state.h"
#include "python/library/torch_library.h"
#include "python/library/torch_modes.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/results/array_results.h"
#include "python/results/device_results.h"
#include "python/results/tensor_updates.h"
#include "python/results/torch_results.h"
#include "python/session/errors.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

// From this much memory on a plan takes more than about 20 µs: other Python threads may run meanwhile.
constexpr std::size_t kBytesOfALongPlan = 256 * 1024;

/// Whether it brings something of a device to the host. What devices do beside takes no time of the caller's.
bool waits_for_a_device(const ir::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](ir::NodeId id) {
    const ir::Node& node = graph.node(id);
    const bool from_device = std::ranges::any_of(node.operands, [&](ir::ValueId v) { return !graph.type(v).device.is_host(); });
    return from_device && std::ranges::any_of(node.results, [&](ir::ValueId v) { return graph.type(v).is_tensor() && graph.type(v).device.is_host(); });
  });
}

bool is_long(const CapturedGraph& captured) {
  std::size_t bytes = 0;
  const auto count = [&](const auto& tensor) { bytes += tensor.device.is_host() ? byte_count(tensor.dtype, tensor.shape) : 0; };
  std::ranges::for_each(captured.inputs, count);
  std::ranges::for_each(captured.tensors, count);
  return bytes >= kBytesOfALongPlan || waits_for_a_device(captured.recording->graph);
}

PyObject* python_number(DType dtype, const void* data) {
  return dtype == DType::f64 ? PyFloat_FromDouble(*static_cast<const double*>(data)) : PyLong_FromLongLong(*static_cast<const std::int64_t*>(data));
}

}  // namespace

CacheEntry::CacheEntry(TorchState state, Segment segment, CapturedGraph captured)
    : state_(state), on_device_(captured.is_on_device()), segment_(std::move(segment)), captured_(std::move(captured)) {
  if (on_device_) rounding_ = float32_rounding();
  bool may_raise = false;
  for (ir::NodeId id : captured_.recording->graph.nodes()) {
    const ir::Node& node = captured_.recording->graph.node(id);
    if (node.op == "constant") continue;
    ++op_count_;
    may_raise |= rewrite::may_raise(node);
  }
  plain_work_ = plain_work(captured_, segment_.instructions);
  for (std::size_t i = 0, object = 0; i < captured_.inputs.size(); ++i) input_slots_.push_back(captured_.input_steps[i] ? 0 : segment_.input_slots[object++]);
  for (const TensorUpdate& update : captured_.updates) written_inputs_.add(update.input);
  output_count_ = captured_.graph().outputs().size();
  symbol_count_ = captured_.recording->graph.symbols().size();
  release_gil_ = is_long(captured_);
  late_outputs_ = std::ranges::any_of(captured_.tensors, &TensorOutput::late);
  uses_numpy_ = captured_.uses_numpy();
  if (uses_numpy_) met_errors_ = errors_that_may_be_met(captured_.recording->graph, captured_.error_handlings);
  may_warn_ = met_errors_.any;
  runs_ = output_count_ > 0 || has_assumptions() || captured_.takes_random_numbers || may_raise || may_warn_;
  takes_scalars_ = std::ranges::any_of(captured_.inputs, [](const TensorSpec& input) { return input.kind == TensorKind::scalar; });
  for (ResultTemplate::Node& node : segment_.objects.nodes) {
    if (node.kind != ResultTemplate::Kind::source) continue;
    result_slots_.push_back(node.index);
    node.index = static_cast<std::uint32_t>(result_slots_.size() - 1);
  }
}

namespace {

int traverse_trace(const Trace& trace, visitproc visit, void* arg) {
  for (const TracedCall& call : trace.calls) {
    Py_VISIT(call.callable.get());
    Py_VISIT(call.args.get());
    Py_VISIT(call.kwargs.get());
    Py_VISIT(call.result.get());
  }
  for (const Ref& input : trace.inputs) Py_VISIT(input.get());
  for (const Trace::Copy& copy : trace.copies) {
    Py_VISIT(copy.function.get());
    Py_VISIT(copy.copy.get());
  }
  for (const Ref& output : trace.outputs) Py_VISIT(output.get());
  return 0;
}

}  // namespace

int CacheEntry::traverse(visitproc visit, void* arg) const {
  if (int stopped = segment_.objects.traverse(visit, arg)) return stopped;
  if (int stopped = segment_.journal.traverse(visit, arg)) return stopped;
  Py_VISIT(program_.callable());
  if (backward_ && backward_.use_count() == 1)  // else nodes of the program's graph have it too
    if (int stopped = backward_->traverse(visit, arg)) return stopped;
  if (captured_.recording)
    if (int stopped = traverse_trace(captured_.recording->trace, visit, arg)) return stopped;
  for (const auto& call : captured_.opaque_calls)
    if (int stopped = call->traverse(visit, arg)) return stopped;
  return segment_.guards.traverse(visit, arg);
}

bool CacheEntry::outlived() const noexcept {
  return std::ranges::any_of(captured_.frozen, [](const auto& frozen) { return frozen && frozen->written(); });
}

std::optional<Program> CacheEntry::compile_for_callable(const Settings& settings, const std::string& name) {
  if (captured_.gradients)
    for (const GradientNode& node : captured_.gradients->nodes) require_calls_of_ops(*node.whole.captured);  // now, not when they are asked for
  std::vector<PyObject*> inputs;
  std::vector<Ref> held;  // the values are those of the last check, and the callable may call the function
  for (std::uint32_t slot : input_slots_) inputs.push_back(held.emplace_back(Ref::borrow(segment_.guards.values()[slot])).get());
  return compile_with_callable(captured_, settings, name, inputs);
}

bool CacheEntry::compile(const Settings& settings, const std::string& name) {
  if (!runs_) return true;
  std::optional<Program> program = settings.callable ? compile_for_callable(settings, name) : compile_natively(captured_, settings, rounding_);
  if (!program) return false;
  program_ = std::move(*program);
  if (captured_.gradients) backward_ = SegmentBackward::of(captured_, settings, name, segment_.later);
  spent_results_ = has_spent_results(captured_);
  runs_of_torch_ = RunsOfGraph::of(captured_);
  if (!program_.callable()) find_dropped_gradients(), find_postponed_outputs();
  plain_ = is_plain();
  return true;
}

bool CacheEntry::is_plain() const {
  const bool computes_only = !program_.callable() && !captured_.numbers && symbol_count_ == 0 && captured_.updates.empty() && !captured_.gradients && !captured_.walks &&
                             !captured_.takes_random_numbers && !takes_scalars_ && !late_outputs_ && postponed_.empty() && !may_warn_ && !has_assumptions() && !state_.autocast();
  return computes_only && result_slots_.empty() && segment_.journal.empty() && !segment_.stop &&
         std::ranges::all_of(captured_.tensors, [](const TensorOutput& output) {
           return output.kind == TensorOutput::Kind::fresh && output.tensor != TensorKind::scalar && output.varying_shape.empty();
         });
}

/// Chooses where the program writes the new values of inputs. It may write them itself, last of all, where they are row-major and no
/// error of NumPy's and no branch can have a word after it.
bool CacheEntry::place_updates(RunFrame& frame) {
  for (std::size_t i = 0; i < captured_.updates.size(); ++i) {
    const TensorUpdate& update = captured_.updates[i];
    if (!update.output) continue;
    const TensorSpec& spec = captured_.inputs[update.input];
    void*& data = frame.output_data[*update.output];
    Extents shape = spec.shape, present_strides = spec.strides;
    for (std::uint32_t d = 0; spec.varies() && d < shape.size(); ++d)
      if (!read_extent(frame.inputs[update.input], d, shape[d]) || !read_stride(frame.inputs[update.input], d, present_strides[d])) return false;
    if (is_row_major(shape, present_strides) && !may_warn_ && !has_assumptions()) {
      data = frame.input_data[update.input];
      continue;
    }
    const Extents strides = row_major(shape);
    if (!spec.device.is_host()) frame.new_values[i] = new_device_tensor(spec.device, spec.dtype, shape, strides, data);
    else frame.new_values[i] = spec.kind == TensorKind::torch ? new_torch_tensor(*known_torch_library(), spec.dtype, shape, strides, data)
                                                         : new_array(spec.dtype, shape, strides, data);
    if (!frame.new_values[i]) return false;
  }
  return true;
}

bool CacheEntry::commit_updates(RunFrame& frame) {
  for (std::size_t i = 0; i < captured_.updates.size(); ++i) {
    const TensorUpdate& update = captured_.updates[i];
    const TensorSpec& spec = captured_.inputs[update.input];
    PyObject* target = frame.inputs[update.input];
    if (frame.new_values[i] && !write_elements(spec, target, frame.new_values[i])) return false;
    if (!count_writes(spec, target, update.writes)) return false;
  }
  return true;
}

/// An input that the graph writes may share no memory with another one. The guards hold.
bool CacheEntry::written_inputs_stand_apart() noexcept {
  return written_inputs_.stand_apart(captured_.inputs, [this](std::uint32_t input) { return segment_.guards.values()[input_slots_[input]]; });
}

/// Finds the elements of the inputs. The guards hold.
void CacheEntry::find_inputs(RunFrame& frame) const noexcept {
  for (std::size_t i = 0; i < frame.input_count; ++i)
    frame.input_data[i] = const_cast<void*>(data_of(captured_.inputs[i], frame.inputs[i], takes_scalars_ ? frame.scalars[i].bytes : nullptr));
}

/// Those that nothing reads.
void CacheEntry::find_dropped_gradients() {
  if (segment_.dropped_gradients.empty()) return;
  const ir::Graph& graph = captured_.graph();
  const auto users = graph.users();
  const auto input_of = [&](std::uint32_t slot) {
    const auto found = std::ranges::find(input_slots_, slot);
    return found == input_slots_.end() ? std::nullopt : std::optional(static_cast<std::uint32_t>(found - input_slots_.begin()));
  };
  const auto is_read = [&](std::uint32_t input) {
    const ir::ValueId value = graph.inputs()[input];
    return !users[value.value].empty() || std::ranges::find(result_slots_, input_slots_[input]) != result_slots_.end() ||
           std::ranges::any_of(graph.outputs(), [&](const ir::Output& o) { return o.value == value || o.target == value; }) ||
           std::ranges::any_of(captured_.updates, [&](const TensorUpdate& u) { return u.input == input; }) ||
           std::ranges::any_of(captured_.tensors, [&](const TensorOutput& t) {
             return (t.kind == TensorOutput::Kind::input_view || t.kind == TensorOutput::Kind::input_crossed) && t.index == input;
           });
  };
  for (const Segment::DroppedGradient& dropped : segment_.dropped_gradients) {
    const auto owner = input_of(dropped.of);
    const auto gradient = dropped.gradient ? input_of(*dropped.gradient) : std::nullopt;
    if (owner && gradient.has_value() == dropped.gradient.has_value() && !(gradient && is_read(*gradient))) dropped_gradients_.push_back({*owner, gradient});
  }
}

/// The program has dropped them before anything could end the call: as far as it can tell they are gone.
void CacheEntry::drop_gradients(RunFrame& frame) const noexcept {
  static PyObject* const name = PyUnicode_InternFromString("grad");
  for (const auto& [of, gradient] : dropped_gradients_) {
    if (gradient) Py_CLEAR(frame.inputs[*gradient]);
    PyObject* owner = frame.inputs[of];
    if (Py_TYPE(owner)->tp_setattro(owner, name, Py_None) < 0) PyErr_Clear();
  }
}

inline std::int32_t CacheEntry::run_program(const TenonRunArgs& args) {
  if (!release_gil_) return tenon_program_run(program_.native(), &args);
  const GilReleased released;
  return tenon_program_run(program_.native(), &args);
}

void EntryRef::end() { delete entry_; }

/// Plain execution begins anew, unless memory was wanting while inputs were written.
RunStatus CacheEntry::refused(RunFrame& frame) const {
  if (frame.failure) {
    compat::set_exception(std::move(frame.failure));
    return RunStatus::raised;
  }
  const TenonFailure* failure = tenon_last_error();
  if (captured_.updates.empty() || !failure || failure->code != TENON_OUT_OF_MEMORY) return RunStatus::refused;
  PyErr_SetString(PyExc_MemoryError, failure->text ? failure->text : "out of memory");
  return RunStatus::raised;
}

bool CacheEntry::inputs_are_at_vectors(const RunFrame& frame) const noexcept {
  constexpr std::uintptr_t kVectorBytes = 16;
  for (std::size_t i = 0; i < frame.input_count; ++i) {
    if (captured_.inputs[i].kind != TensorKind::torch) continue;
    if (reinterpret_cast<std::uintptr_t>(data_of(captured_.inputs[i], frame.inputs[i], nullptr)) % kVectorBytes != 0) return false;
  }
  return true;
}

RunStatus CacheEntry::run_native(RunFrame& frame) {
  find_inputs(frame);
  drop_gradients(frame);
  if (!make_outputs(frame)) return RunStatus::raised;
  if (!place_updates(frame)) return RunStatus::raised;
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = frame.input_data;
  args.outputs = frame.output_data;
  void** beside = frame.output_data + output_count_;
  if (has_assumptions()) *beside++ = &frame.as_assumed;
  *beside = &frame.alarm;
  if (may_warn_) clear_float_errors();
  if (late_outputs_) frame.late.expect(output_count_ + 2, captured_.tensors);
  const bool asks = late_outputs_ || !postponed_.empty();
  if (asks) {
    frame.entry = this;
    args.allocate_output = allocate_output;
    args.context = &frame;
  }
  if (!frame.symbols.empty()) args.symbols = frame.symbols.data();
  if (run_program(args) != TENON_OK) return refused(frame);
  if (!frame.as_assumed) return RunStatus::unlike;
  if (may_warn_) {
    const FloatErrors met = frame.alarm ? FloatErrors{true, true, false, true} : (float_errors() - met_errors_.ignored) | noted_errors();
    if (numpy_would_warn(met, met_errors_.heard)) return RunStatus::warned;
  }
  if (asks && !make_late_outputs(frame)) return RunStatus::raised;
  for (std::size_t i = 0; i < captured_.tensors.size(); ++i) {
    const TensorOutput& output = captured_.tensors[i];
    if (output.kind != TensorOutput::Kind::fresh || output.tensor != TensorKind::scalar) continue;
    frame.tensors[i] = output.plain_number ? python_number(output.dtype, frame.output_data[output.index]) : new_array_scalar(output.dtype, frame.output_data[output.index]);
    if (!frame.tensors[i]) return RunStatus::raised;
  }
  return RunStatus::done;
}

/// What a callable gave, as a result.
PyObject* CacheEntry::result_of_callable(const TensorOutput& output, const GivenTensor& given) {
  if (!program_.is_of_ops()) {
    const bool as_made = output.tensor != TensorKind::torch || output.inference == state_.inference();
    const InferenceScope scope(as_made ? state_.inference() : output.inference, state_.inference());
    return as_made ? Py_NewRef(given.tensor.get()) : scope.failed() ? nullptr : PyObject_CallMethod(given.tensor.get(), "clone", nullptr);
  }
  if (output.tensor == TensorKind::scalar) return PyObject_CallMethod(given.tensor.get(), "item", nullptr);
  if (is_as_said(given, output)) return Py_NewRef(given.tensor.get());
  void* data = nullptr;
  Ref made = checked(new_output(output, output.shape, output.strides, data));
  copy_to(made.get(), given);
  return made.release();
}

/// The callable gives a sequence: the outputs, then the values of updates.
RunStatus CacheEntry::take_from_callable(RunFrame& frame, Ref sequence) {
  try {
    const std::vector<GivenTensor> given = given_by_callable(std::move(sequence), program_.places(), program_.is_of_ops());
    for (std::size_t i = 0; i < captured_.tensors.size(); ++i) {
      const TensorOutput& output = captured_.tensors[i];
      if (output.kind == TensorOutput::Kind::fresh && !(frame.tensors[i] = result_of_callable(output, given[output.index]))) return RunStatus::raised;
    }
    for (std::size_t i = 0; i < captured_.updates.size(); ++i) {
      const auto output = captured_.updates[i].output;
      if (output) frame.new_values[i] = program_.is_of_ops() ? as_new_value(given[*output], captured_.inputs[captured_.updates[i].input]).release() : Py_NewRef(given[*output].tensor.get());
    }
    return RunStatus::done;
  } catch (const PythonError&) {
    return RunStatus::raised;
  }
}

RunStatus CacheEntry::run_callable(RunFrame& frame) {
  bool without_gradients = program_.is_of_ops();  // which the graph computes itself
  for (const TensorSpec& input : captured_.inputs) without_gradients |= input.requires_grad;  // else it holds only operations without gradients, though its inputs may require them
  const GradMode mode(state_.grad_enabled() && !without_gradients, state_.grad_enabled());
  std::optional<compat::SignalsWait> waiting;  // what a handler raises must not be taken for a failure, after which plain execution begins anew
  if (!captured_.updates.empty()) waiting.emplace();
  Ref given = program_.call({frame.inputs, frame.input_count});
  waiting.reset();
  if (!given && !captured_.updates.empty() && PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_Clear();  // plain execution raises it again, after the writes that come before it
    return RunStatus::refused;
  }
  return given ? take_from_callable(frame, std::move(given)) : RunStatus::raised;
}

Ref CacheEntry::result_with(PyObject* const* outputs) {
  std::vector<PyObject*> kept;
  for (std::uint32_t slot : result_slots_) kept.push_back(segment_.guards.values()[slot]);
  return segment_.objects.build_one(segment_.result, kept.data(), outputs);
}

RunStatus CacheEntry::run(Built& built) { return plain_ ? run_plain(built) : run_any(built); }

RunStatus CacheEntry::run_plain(Built& built) {
  const std::size_t input_count = captured_.inputs.size(), tensor_count = captured_.tensors.size();
  HeldObjects<8> objects(input_count + tensor_count);
  SmallArray<void*, 12> data(input_count + output_count_ + 1);
  void** const outputs = data.data() + input_count;
  for (std::size_t i = 0; i < input_count; ++i) objects[i] = Py_NewRef(segment_.guards.values()[input_slots_[i]]);
  segment_.guards.let_go();
  for (std::size_t i = 0; i < tensor_count; ++i) {
    const TensorOutput& output = captured_.tensors[i];
    if (!(objects[input_count + i] = new_output(output, output.shape, output.strides, outputs[output.index]))) return RunStatus::raised;
  }
  for (std::size_t i = 0; i < input_count; ++i) data[i] = const_cast<void*>(data_of(captured_.inputs[i], objects[i], nullptr));
  bool alarm = false;
  outputs[output_count_] = &alarm;
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = data.data();
  args.outputs = outputs;
  if (run_program(args) != TENON_OK) return RunStatus::refused;
  SmallArray<PyObject*, 8> results(captured_.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = objects[input_count + captured_.outputs[i]];
  try {
    built.result = segment_.objects.build_one(segment_.result, nullptr, results.data());
    return RunStatus::done;
  } catch (const PythonError&) {
    return RunStatus::raised;
  }
}

/// Makes results parts of torch's autograd graph.
bool CacheEntry::add_gradients_of(RunFrame& frame) {
  try {
    const GradMode mode(true, state_.grad_enabled());  // the program may have switched it on within the segment
    for (std::uint32_t t : runs_of_torch_.tensors) Py_SETREF(frame.tensors[t], KeptRuns::owner(frame.tensors[t]).release());
    if (backward_) add_nodes(backward_, {frame.inputs, frame.tensors, frame.symbols, [&](std::uint32_t tensor) { make_view(frame, tensor); }});
    if (spent_results_) add_spent_nodes(captured_, {frame.inputs, frame.input_count}, frame.tensors);
    return true;
  } catch (const PythonError&) {
    return false;
  }
}

RunStatus CacheEntry::run_any(Built& built) {
  try {
    if ((backward_ || captured_.walks) && are_kept_tensors_hooked()) return RunStatus::refused;
    if (captured_.draws_by_kernels && draws_are_captured()) return RunStatus::refused;
  } catch (const PythonError&) {
    return RunStatus::raised;
  }
  RunFrame frame(captured_, output_count_, takes_scalars_);
  PyObject* const* values = segment_.guards.values();
  if (captured_.numbers) {
    frame.symbols.assign(captured_.numbers->values(), captured_.numbers->values() + captured_.numbers->sources().size());
    frame.floats = captured_.numbers->floats().values();
  }
  if (symbol_count_ > 0) frame.symbols.resize(std::max(frame.symbols.size(), symbol_count_));
  for (std::size_t i = 0; i < frame.input_count; ++i)
    if (const auto step = captured_.input_steps[i]; !step) frame.inputs[i] = Py_NewRef(values[input_slots_[i]]);
    else if (!(frame.inputs[i] = PyFloat_FromDouble(frame.floats[*step]))) return RunStatus::raised;
  if (captured_.draws_by_kernels && !inputs_are_at_vectors(frame)) return RunStatus::refused;
  HeldObjects<8> kept(result_slots_.size());  // another thread may check the same guards while this one runs
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = Py_NewRef(values[result_slots_[i]]);
  segment_.guards.let_go();
  std::optional<KeptRuns> kept_runs;
  if (runs_) {
    Ref random_state;
    try {
      kept_runs.emplace(runs_of_torch_);
      if (captured_.takes_random_numbers) random_state = captured_.draws_by_calls ? generator_state() : generator_state_of_cards();
    } catch (const PythonError&) {
      return RunStatus::raised;
    }
    const WithoutAutocast without_autocast(state_);
    const RunStatus status = program_.callable() ? run_callable(frame) : run_native(frame);
    if (random_state && status != RunStatus::done && status != RunStatus::raised) restore_generator(random_state.get());
    if (status != RunStatus::done) return status;
    if (late_outputs_) find_late_sizes(captured_, frame.tensors, frame.symbols);
  }
  if ((backward_ || spent_results_) && !add_gradients_of(frame)) return RunStatus::raised;
  if (!finish_tensors(frame)) return RunStatus::raised;
  SmallArray<PyObject*, 8> outputs(captured_.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = frame.tensors[captured_.outputs[i]];
  try {
    built = complete(segment_, kept.data(), outputs.data());
    return commit_updates(frame) ? RunStatus::done : RunStatus::raised;
  } catch (const PythonError&) {
    return RunStatus::raised;
  }
}

}  // namespace tenon::python
