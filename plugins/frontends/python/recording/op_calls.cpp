#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "python/recording/tensor_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/abi/graph_buffer.h"
#include "core/ops/build/complex_moves.h"
#include "core/ops/build/view_path.h"
#include "python/foreign/autocast.h"
#include "python/foreign/foreign_arguments.h"
#include "python/foreign/opaque_purity.h"
#include "python/foreign/weak_numbers.h"
#include "python/library/numpy_api.h"
#include "python/library/replaced_kernels.h"
#include "python/library/torch_library.h"
#include "python/objects/imported.h"
#include "python/opaque/call_results.h"
#include "python/opaque/eager_kernels.h"
#include "python/recording/attention_layout.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/stand_ins/ufunc_loops.h"
#include "python/symbols/symbolic_int.h"

// How one call of a library becomes nodes, and its results stand-ins.

namespace tenon::python {
namespace {

/// Whether a symbolic int is among arguments, in tuples and lists too: short ones, as a graph has an operand for each item.
bool holds_symbolic_int(PyObject* object) {
  constexpr Py_ssize_t kLong = 256;
  if (is_symbolic_int(object)) return true;
  if ((!PyTuple_Check(object) && !PyList_Check(object)) || PySequence_Fast_GET_SIZE(object) > kLong) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (holds_symbolic_int(PySequence_Fast_GET_ITEM(object, i))) return true;
  return false;
}

/// Whether a call takes random numbers from torch's generator, and does nothing else.
bool draws(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.flavour != ops::Flavour::torch || function.writes) return false;
  const Purity& purity = purity_of(callable, function);
  return purity.known && !purity.writes && takes_random_numbers(function, purity, args, kwargs);
}

/// Whether a number stands where the op has a tensor: not every function of torch takes one there, as the operators do.
bool takes_number_for_tensor(const ir::Graph& graph, const ForeignFunction& function, std::size_t first_node) {
  if (function.is_special()) return false;
  return std::any_of(graph.nodes().begin() + static_cast<std::ptrdiff_t>(first_node), graph.nodes().end(), [&](ir::NodeId node) {
    return std::ranges::any_of(graph.node(node).operands, [&](ir::ValueId v) { return graph.value(v).kind == ir::ValueKind::literal; });
  });
}

/// Whether the library decides by the index whether a call gives a view or a copy, and in which order that lies.
bool gives_elements(const ForeignFunction& function) { return function.has(Trait::chosen_by_index); }

/// Whether an operand is a list, of which NumPy makes an array.
bool takes_lists(PyObject* args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (PyList_Check(PyTuple_GET_ITEM(args, i)) || PyTuple_Check(PyTuple_GET_ITEM(args, i))) return true;
  return false;
}

constexpr std::array<std::string_view, 5> kKeywordsOfSplits = {"chunks", "dim", "axis", "indices_or_sections", "split_size_or_sections"};

}  // namespace

void TensorRecorder::enter_error_state(PyObject* modes) {
  if (core_.in_branch()) throw GraphBreak("np.errstate in a branch of a control op");
  core_.error_handlings.enter(graph_, modes);
}

/// A call that splits a tensor of which a size varies, as the views that it gives; empty for other calls.
Ref TensorRecorder::split_by_expressions(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const auto index = function.has(Trait::splits) && PyTuple_GET_SIZE(args) > 0 ? stand_ins_.find(PyTuple_GET_ITEM(args, 0)) : std::nullopt;
  if (!index || core_.is_late(stand_ins_[*index].value)) return {};
  if (std::ranges::all_of(graph_.type(stand_ins_[*index].value).shape, &ir::Dim::is_constant)) return {};
  PyObject* key = nullptr;
  for (Py_ssize_t position = 0; kwargs && PyDict_Next(kwargs, &position, &key, nullptr);)
    if (std::ranges::find(kKeywordsOfSplits, std::string_view(PyUnicode_AsUTF8(key))) == kKeywordsOfSplits.end()) return {};
  Ref split = checked(PyObject_GetAttrString(checked(imported("tenon._splits")).get(), std::string(function.last_word()).c_str()));
  Ref parts = checked(PyObject_Call(split.get(), args, kwargs));
  return parts.is(Py_NotImplemented) ? Ref() : std::move(parts);
}

Ref TensorRecorder::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  if (const TorchLibrary* torch = known_torch_library(); torch && kernels_are_replaced(*torch)) throw GraphBreak("torch.library has replaced a kernel of torch");
  const bool grad = torch_state().value_or(core_.state).grad_enabled() && !function.has(Trait::detaches);
  for (Index index : operands)
    if (grad && stand_ins_[index].requires_grad) throw GraphBreak("an operation on a tensor that requires grad, with grad mode on", kGradHint);
  if (!operands.empty() && torch_state().value_or(core_.state).autocast() && autocast_may_change(function, draws(callable, function, args, kwargs)))
    if (std::optional<Ref> result = record_under_autocast(callable, function, args, kwargs)) return std::move(*result);
  if (Ref parts = split_by_expressions(function, args, kwargs)) return parts;
  return record_as_is(callable, function, args, kwargs);
}

/// Records a call whose tensors have the dtypes that it computes with.
Ref TensorRecorder::record_as_is(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  refuse_late(function, operands);
  if (function.in_graph) {
    if (operands.empty()) throw GraphBreak(fmt::format("{}, allowed in graphs, is called without a tensor", function.name));
    for (Index index : operands) present_.of(index);
    return record_opaque(callable, function, args, kwargs);
  }
  if (std::optional<Ref> result = record_declared_writes(callable, function, args, kwargs)) return std::move(*result);
  const auto writing = as_writing_call(callable, function, args, kwargs);
  if (writing && writing->kind != WritingCall::Kind::none) return record_write(callable, function, args, kwargs, *writing);
  if (writing) return record(callable, function, writing->args.get(), writing->kwargs.get());
  if (operands.empty() && !draws(callable, function, args, kwargs) && !(function.op && holds_symbolic_int(args))) return fold(callable, args, kwargs);
  return record_reading(callable, function, args, kwargs, operands);
}

/// Records a call that writes nothing: by the catalogue's op, else as an opaque call.
Ref TensorRecorder::record_reading(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs,
                                   std::span<const Index> operands) {
  for (Index index : operands) present_.of(index);  // views are made anew before the call's own nodes begin
  const std::size_t first_node = graph_.nodes().size();
  const bool random = draws(callable, function, args, kwargs);
  const bool complex = std::ranges::any_of(operands, [&](Index index) { return is_complex(stand_ins_[index].dtype); });
  const bool plain = random || stays_inside(function, args, kwargs);
  const std::string not_opaque = plain ? "" : why_not_opaque(callable, function, args, kwargs, complex);
  ops::ForeignWrites writes;
  const auto result = build_op(function, args, kwargs, not_opaque);
  symbols_.take_data_symbols();
  if (result && writes.all.empty() && shows_late_memory(function, kwargs, *result, operands)) {
    const Ref wrapped = record_late_views(callable, function, *result, args, kwargs);
    trace_.add(callable, function, args, kwargs, wrapped, first_node);
    return wrapped;
  }
  const auto late = [&](ir::ValueId value) { return core_.is_late(value); };
  if (std::ranges::any_of(operands, [&](Index index) { return core_.is_late(stand_ins_[index].value); }) || (result && std::ranges::any_of(result->values, late))) {
    if (!result && !random && function.op && function.op->body) return record_late_opaque(callable, function, args, kwargs, operands);
    if (!result || random || !writes.all.empty()) refuse_late(operands);
    const Ref wrapped = record_late(function, kwargs, *result, operands, first_node);
    if (function.flavour == ops::Flavour::numpy && function.composite) find_hidden_bases(wrapped.get(), callable, args, kwargs);
    trace_.add(callable, function, args, kwargs, wrapped, first_node);
    return wrapped;
  }
  if (!result && function.has(Trait::finds_elements)) return record_found(callable, function, args, kwargs, operands);
  if (!result) return random ? record_random(callable, function, args, kwargs) : record_opaque(callable, function, args, kwargs);
  if (!random && function.flavour == ops::Flavour::torch && function.op && (!function.may_alias || function.op->body) &&
      (operands_are_unusual(stand_ins_, operands) || takes_number_for_tensor(graph_, function, first_node)))
    require_eager_kernel(callable, function, stand_ins_.with_twins(args).get(), kwargs ? stand_ins_.with_twins(kwargs).get() : nullptr);
  core_.settle_extents(result->values);
  const bool known = strides_are_known(function, *result, operands) && !kwargs_name_a_layout(kwargs) && !(is_pointwise(function) && takes_lists(args)) &&
                     !(function.flavour == ops::Flavour::numpy ? numpy_may_give_view(function, first_node, *result, operands) : function.may_alias);
  const bool fresh = known && !(function.composite && function.flavour == ops::Flavour::torch && may_be_view(first_node, *result, operands) &&
                                shares_memory(callable, function, args, kwargs, operands));
  Ref wrapped;
  try {
    if (fresh) {
      wrapped = wrap_fresh(function, *result, operands);
    } else if (const auto strides = attention_strides(stand_ins_, function, args, kwargs)) {
      TensorSpec spec = fresh_spec(function, result->values.front(), operands);
      spec.strides = *strides;
      wrapped = stand_ins_[core_.add_fresh(spec.kind, result->values.front(), spec)].object;
    } else {
      wrapped = wrap_like_twins(callable, function, *result, args, kwargs);
    }
  } catch (const GraphBreak&) {  // the op and the library disagree
    if (!not_opaque.empty() || symbols_.learned()) throw;
    return random ? record_random(callable, function, args, kwargs) : record_opaque(callable, function, args, kwargs);
  }
  record_writes_beside(function, writes.all, operands);
  trace_.add(callable, function, args, kwargs, wrapped, first_node);
  return wrapped;
}

/// Whether the result may be a view: of an operand, or of an array that nobody has, as functions give that are written in Python. They leave
/// the reduction of one operand to a ufunc.
bool TensorRecorder::numpy_may_give_view(const ForeignFunction& function, std::size_t first_node, const ops::ForeignResult& result, std::span<const Index> operands) const {
  if (gives_elements(function) || only_moves_elements(graph_, first_node)) return true;
  if (!function.composite) return false;
  const ir::ValueId value = result.values.front();
  if (operands.size() != 1 || graph_.value(value).kind != ir::ValueKind::result || graph_.type(value).rank() >= stand_ins_[operands.front()].shape.size()) return true;
  const auto loop = ops::loop_of(graph_, graph_.value(value).node);
  return !loop || !loop->reducer;
}

/// Whether nodes do nothing but move an operand's elements, to no more places, so that the result may be a view though no schema says so
/// (type_as, einsum).
bool TensorRecorder::may_be_view(std::size_t first_node, const ops::ForeignResult& result, std::span<const Index> operands) {
  const auto moves = [&](ir::NodeId node) { return ops::loop_of(graph_, node) && only_moves(graph_, node); };
  if (!std::ranges::all_of(graph_.nodes().subspan(first_node), moves)) return false;
  const auto count = [&](const ir::Shape& shape) {
    const std::vector<std::int64_t> sizes = symbols_.values(shape);
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies());
  };
  const ir::ValueId value = result.values.front();
  return std::ranges::any_of(operands, [&](Index operand) {
    const ir::ValueId from = present_.of(operand);
    return count(graph_.type(value).shape) <= count(graph_.type(from).shape) && ops::find_view_path(graph_, from, value).has_value();
  });
}

/// The nodes of a call by the catalogue; nothing where it must be an opaque one. Throws GraphBreak where it can be neither.
std::optional<ops::ForeignResult> TensorRecorder::build_op(const ForeignFunction& function, PyObject* args, PyObject* kwargs,
                                                           const std::string& not_opaque) {
  if (function.kind == CallClass::missing || function.kind == CallClass::creation) {
    if (!not_opaque.empty()) throw GraphBreak(not_opaque);
    return std::nullopt;
  }
  struct Leave {  // numbers to the library
    Symbols& symbols;
    ~Leave() { symbols.library_may(false); }
  } leave{symbols_};
  symbols_.library_may(not_opaque.empty() && !core_.in_branch());
  try {
    return build(function, args, kwargs);
  } catch (const GraphBreak&) {
    if (!not_opaque.empty() || symbols_.learned()) throw;  // the op may do when the capture begins from what it has learned
  }
  return std::nullopt;
}

/// Whether torch gives an operand's memory for twins. Where it does not, how the result lies is not for the meta device to say.
bool TensorRecorder::shares_memory(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands) {
  Ref twin_args = on_meta_device(stand_ins_.with_twins(args).get()), twin_kwargs = kwargs ? on_meta_device(stand_ins_.with_twins(kwargs).get()) : Ref();
  std::vector<Ref> tensors;
  collect_tensors(call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour).get(), tensors);
  const auto storage_of = [](PyObject* twin) { return place_of_twin(twin).storage; };
  return std::ranges::any_of(tensors, [&](const Ref& tensor) {
    return std::ranges::any_of(operands, [&](Index operand) { return storage_of(stand_ins_.twin(operand)) == storage_of(tensor.get()); });
  });
}

ops::ForeignResult TensorRecorder::build(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.kind == CallClass::same_elements) return {{present_.of(stand_ins_.among(args, kwargs).front())}, ops::Container::single};
  operands_ = stand_ins_.among(args, kwargs);
  const bool beside_scalar = function.flavour == ops::Flavour::numpy && has_scalar_of_numpy(args);
  const auto value = [&](PyObject* o) {
    if (beside_scalar && is_symbolic_scalar(o)) need_scalar(scalar_of(o), "an operation with a scalar of NumPy");
    return value_of(o, function.flavour, takes_weak(function, args, kwargs, o));
  };
  ops::ForeignCall call = foreign_call(function.name, function.flavour, args, kwargs, value);
  if (const TorchLibrary* torch = known_torch_library(); torch && function.flavour == ops::Flavour::torch)
    call.default_float = torch->dtype_of_scalar_type(static_cast<std::uint8_t>(core_.state.default_dtype)).value_or(DType::f32);
  const std::size_t first_node = graph_.nodes().size();
  const auto loop = function.ufunc ? chosen_loop(function.ufunc, stand_ins_, args, kwargs) : std::nullopt;
  if (loop) compute_in(*loop, call);
  const bool warns_itself = function.has(Trait::warns_itself);
  if (warns_itself) core_.error_handlings.always_hear(graph_, true);
  try {
    auto result = ops::call_foreign_shaped(builder_, call);
    if (warns_itself) core_.error_handlings.always_hear(graph_, false);
    if (!result.ok()) throw GraphBreak(fmt::format("{}: {}", function.name, result.error().message));
    require_runnable(function, first_node);
    for (std::size_t i = 0; loop && i < result->values.size(); ++i)
      if (graph_.type(result->values[i]).dtype != (*loop)[call.positional.size() + i]) throw GraphBreak(fmt::format("{} with another dtype than the op's", function.name));
    if (std::ranges::any_of(operands_, [&](Index index) { return is_complex(stand_ins_[index].dtype); })) require_complex_elements(function, result->values);
    return std::move(*result);
  } catch (const GraphBreak&) {  // an op that may raise would be run, though nothing uses it
    const std::vector<ir::NodeId> begun(graph_.nodes().begin() + static_cast<std::ptrdiff_t>(first_node), graph_.nodes().end());
    graph_.erase_nodes(begun);
    throw;
  }
}

/// Throws where a node of a call computes what no backend does.
void TensorRecorder::require_runnable(const ForeignFunction& function, std::size_t first_node) const {
  for (ir::NodeId node : graph_.nodes().subspan(first_node)) {
    if (!ops::only_moves_complex(graph_, node)) throw GraphBreak(fmt::format("{} computes with complex numbers", function.name));
    for (ir::ValueId made : graph_.node(node).results)
      if (graph_.type(made).rank() > TENON_MAX_RANK) throw GraphBreak(kTooManyDimensions);
    if (moves_many_complex(graph_, node)) throw GraphBreak(fmt::format("{} moves more complex numbers than the graph is fast with", function.name));
  }
}

/// Makes of a call of a ufunc whose keywords choose its loop one without these keywords.
void TensorRecorder::compute_in(std::span<const DType> loop, ops::ForeignCall& call) {
  std::erase_if(call.keyword, [](const auto& named) { return chooses_loop(named.first); });
  for (std::size_t i = 0; i < call.positional.size(); ++i)
    if (const auto* value = call.positional[i].as<ir::ValueId>()) call.positional[i] = {builder_.cast(*value, loop[i])};
}

/// Throws where the catalogue may take complex operands for real ones: of these some functions give the elements as they are (conj), or
/// answer without looking at them (isreal).
void TensorRecorder::require_complex_elements(const ForeignFunction& function, std::span<const ir::ValueId> values) const {
  for (ir::ValueId value : values) {
    const bool given = std::ranges::any_of(operands_, [&](Index index) { return stand_ins_[index].value == value; });
    const bool kept = !given || function.flavour == ops::Flavour::numpy || function.may_alias;  // NumPy's twins show new memory
    if (!is_complex(graph_.type(value).dtype) || !kept) throw GraphBreak(fmt::format("{} computes with complex numbers", function.name));
  }
}

/// Records a call; where the library reads the number that an operand holds, with that number, if it is known.
Ref TensorRecorder::record_with_numbers(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  try {
    return record(callable, function, args, kwargs);
  } catch (const NumberNeeded&) {
    Ref numbers = known_.with_integers(args), named = kwargs ? known_.with_integers(kwargs) : Ref();
    if (!numbers && !named) throw;
    return call(callable, numbers ? numbers.get() : args, named ? named.get() : kwargs);
  }
}

}  // namespace tenon::python
