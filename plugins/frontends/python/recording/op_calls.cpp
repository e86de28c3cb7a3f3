#include "python/recording/op_calls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "core/abi/graph_buffer.h"
#include "core/base/float16.h"
#include "core/ops/build/complex_moves.h"
#include "core/ops/build/view_path.h"
#include "python/foreign/foreign_arguments.h"
#include "python/foreign/opaque_purity.h"
#include "python/foreign/weak_numbers.h"
#include "python/graph/moving_nodes.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/opaque/eager_kernels.h"
#include "python/opaque/quiet_calls.h"
#include "python/recording/memory/attention_layout.h"
#include "python/recording/memory/device_results.h"
#include "python/recording/memory/result_types.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/stand_ins/ufunc_loops.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

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

template <class T>
T read(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

/// The number at `data`, as a literal of the graph.
ir::Literal literal_of(DType dtype, const void* data) {
  switch (dtype) {
    case DType::b8: return read<bool>(data);
    case DType::u8: return ir::Dim(read<std::uint8_t>(data));
    case DType::i8: return ir::Dim(read<std::int8_t>(data));
    case DType::i16: return ir::Dim(read<std::int16_t>(data));
    case DType::i32: return ir::Dim(read<std::int32_t>(data));
    case DType::i64: return ir::Dim(read<std::int64_t>(data));
    case DType::f16: return static_cast<double>(float_of_half(read<std::uint16_t>(data)));
    case DType::f32: return static_cast<double>(read<float>(data));
    case DType::f64: return read<double>(data);
    default: throw GraphBreak("a number of a dtype that graphs do not carry");
  }
}

}  // namespace

bool draws(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.flavour != ops::Flavour::torch || function.writes) return false;
  const Purity& purity = purity_of(callable, function);
  return purity.known && !purity.writes && takes_random_numbers(function, purity, args, kwargs);
}

Ref OpCalls::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs,
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
  if (result && transfers(core_, function, *result, operands)) {
    const Ref wrapped = wrap_transferred(core_, callable, result->values.front(), args, kwargs);
    trace_.add(callable, function, args, kwargs, wrapped, first_node);
    return wrapped;
  }
  if (result && writes.all.empty() && late_views_.are_given(function, kwargs, *result, operands)) {
    const Ref wrapped = late_views_.wrap(callable, function, *result, args, kwargs);
    trace_.add(callable, function, args, kwargs, wrapped, first_node);
    return wrapped;
  }
  const auto late = [&](ir::ValueId value) { return core_.is_late(value); };
  if (std::ranges::any_of(operands, [&](Index index) { return core_.is_late(stand_ins_[index].value); }) || (result && std::ranges::any_of(result->values, late))) {
    if (!result && !random && function.op && function.op->body) return opaque_.record_late(callable, function, args, kwargs, operands);
    if (!result || random || !writes.all.empty()) late_.refuse(operands);
    const Ref wrapped = late_.wrap(callable, function, args, kwargs, *result, operands, first_node);
    if (function.flavour == ops::Flavour::numpy && (function.composite || function.has(Trait::finds_places))) late_.find_hidden_bases(wrapped.get(), callable, args, kwargs);
    trace_.add(callable, function, args, kwargs, wrapped, first_node);
    return wrapped;
  }
  if (!result && function.has(Trait::finds_elements)) return opaque_.record_found(callable, function, args, kwargs, operands);
  if (!result) return random ? random_.record(callable, function, args, kwargs) : opaque_.record(callable, function, args, kwargs);
  if (!random && function.flavour == ops::Flavour::torch && function.op && (!function.may_alias || function.op->body) &&
      (operands_are_unusual(stand_ins_, operands) || takes_number_for_tensor(graph_, function, first_node)))
    require_eager_kernel(callable, function, stand_ins_.with_twins(args).get(), kwargs ? stand_ins_.with_twins(kwargs).get() : nullptr);
  core_.settle_extents(result->values);
  const bool known = results_.strides_are_known(function, *result, operands) && !kwargs_name_a_layout(kwargs) && !(is_pointwise(function) && takes_lists(args)) &&
                     !(function.flavour == ops::Flavour::numpy ? numpy_may_give_view(function, first_node, *result, operands) : function.may_alias);
  const bool fresh = known && !(function.composite && function.flavour == ops::Flavour::torch && may_be_view(first_node, *result, operands) &&
                                shares_memory(callable, function, args, kwargs, operands));
  Ref wrapped;
  try {
    if (fresh) {
      wrapped = results_.wrap_fresh(function, *result, operands);
      if (function.has(Trait::flattens_rows)) note_matrix_of_rows(wrapped.get(), args, operands);
    } else if (const auto strides = attention_strides(stand_ins_, function, core_.device_of(operands), args, kwargs)) {
      TensorSpec spec = results_.fresh_spec(function, result->values.front(), operands);
      spec.strides = *strides;
      wrapped = stand_ins_[core_.add_fresh(spec.kind, result->values.front(), spec)].object;
    } else {
      wrapped = results_.wrap_like_twins(callable, function, *result, args, kwargs);
    }
  } catch (const GraphBreak&) {  // the op and the library disagree
    if (!not_opaque.empty() || symbols_.learned()) throw;
    return random ? random_.record(callable, function, args, kwargs) : opaque_.record(callable, function, args, kwargs);
  }
  memory_.write_beside(function, writes.all, operands);
  trace_.add(callable, function, args, kwargs, wrapped, first_node);
  return wrapped;
}

/// What ATen's linear adds a bias to is a matrix of the rows of its input, where these lie side by side in other than two dimensions: the result is a view of it.
void OpCalls::note_matrix_of_rows(PyObject* wrapped, PyObject* args, std::span<const Index> operands) {
  if (operands.size() != 3 || PyTuple_GET_SIZE(args) == 0) return;  // without a bias, or all by name
  const StandIn& input = stand_ins_[operands.front()];
  StandIn& made = stand_ins_[stand_ins_.require(wrapped)];
  if (input.shape.size() == 2 || !is_row_major(input.shape, input.strides) || made.shape.empty()) return;
  const Extents matrix{std::accumulate(input.shape.begin(), input.shape.end() - 1, std::int64_t{1}, std::multiplies()), made.shape.back()};
  made.base = HiddenBase{matrix, row_major(matrix)};
}

/// Whether the result may be a view: of an operand, or of an array that nobody has, as functions give that are written in Python. They leave
/// the reduction of one operand to a ufunc.
bool OpCalls::numpy_may_give_view(const ForeignFunction& function, std::size_t first_node, const ops::ForeignResult& result, std::span<const Index> operands) const {
  if (gives_elements(function) || only_moves_elements(graph_, first_node)) return true;
  if (!function.composite) return false;
  const ir::ValueId value = result.values.front();
  if (operands.size() != 1 || graph_.value(value).kind != ir::ValueKind::result || graph_.type(value).rank() >= stand_ins_[operands.front()].shape.size()) return true;
  const auto loop = ops::loop_of(graph_, graph_.value(value).node);
  return !loop || !loop->reducer;
}

/// Whether nodes do nothing but move an operand's elements, to no more places, so that the result may be a view though no schema says so
/// (type_as, einsum).
bool OpCalls::may_be_view(std::size_t first_node, const ops::ForeignResult& result, std::span<const Index> operands) {
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
std::optional<ops::ForeignResult> OpCalls::build_op(const ForeignFunction& function, PyObject* args, PyObject* kwargs,
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
bool OpCalls::shares_memory(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands) {
  Ref twin_args = on_meta_device(stand_ins_.with_twins(args).get()), twin_kwargs = kwargs ? on_meta_device(stand_ins_.with_twins(kwargs).get()) : Ref();
  std::vector<Ref> tensors;
  collect_tensors(call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour).get(), tensors);
  const auto storage_of = [](PyObject* twin) { return place_of_twin(twin).storage; };
  return std::ranges::any_of(tensors, [&](const Ref& tensor) {
    return std::ranges::any_of(operands, [&](Index operand) { return storage_of(stand_ins_.twin(operand)) == storage_of(tensor.get()); });
  });
}

ops::ForeignResult OpCalls::build(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.kind == CallClass::same_elements) return {{present_.of(stand_ins_.among(args, kwargs).front())}, ops::Container::single};
  operands_ = stand_ins_.among(args, kwargs);
  const bool beside_scalar = function.flavour == ops::Flavour::numpy && has_scalar_of_numpy(args);
  std::optional<DType> half;  // the dtype of what is computed with a number in float32
  const auto half_beside = [&](const ScalarValue& number) {
    const DType common = computed_.common_type(number, function.flavour, operands_);
    return common == DType::f16 || common == DType::bf16 ? std::optional(common) : std::nullopt;
  };
  const auto value = [&](PyObject* o) {
    if (beside_scalar && is_symbolic_scalar(o)) need_scalar(symbols_, scalar_of(o), "an operation with a scalar of NumPy");
    if (is_symbolic_scalar(o) && !operands_.empty())
      if (const auto narrow = half_beside(scalar_of(o)))
        if (const auto dtype = dtype_beside_halves(function, args, kwargs, o, *narrow)) {
          if (*dtype != *narrow) half = narrow;
          return std::optional(builder_.cast(builder_.cast(computed_.value_of(scalar_of(o)), DType::f32), *dtype));
        }
    return value_of(o, function.flavour, takes_weak(function, args, kwargs, o));
  };
  ops::ForeignCall call = foreign_call(function, core_.device_of(operands_), args, kwargs, value);
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
    for (ir::ValueId& made : result->values) made = half ? builder_.cast(made, *half) : made;
    require_runnable(function, first_node);
    if (result->of_complex && !core_.device_of(operands_).is_host()) throw GraphBreak(fmt::format("{} computes with complex numbers on a card", function.name));
    for (ir::ValueId made : result->values) core_.places.require_served(graph_.type(made).device);
    for (std::size_t i = 0; loop && i < result->values.size(); ++i)
      if (graph_.type(result->values[i]).dtype != (*loop)[call.positional.size() + i]) throw GraphBreak(fmt::format("{} with another dtype than the op's", function.name));
    if (std::ranges::any_of(operands_, [&](Index index) { return is_complex(stand_ins_[index].dtype); }) && !result->of_complex) require_complex_elements(function, result->values);
    return std::move(*result);
  } catch (const GraphBreak&) {  // an op that may raise would be run, though nothing uses it
    const std::vector<ir::NodeId> begun(graph_.nodes().begin() + static_cast<std::ptrdiff_t>(first_node), graph_.nodes().end());
    graph_.erase_nodes(begun);
    throw;
  }
}

/// Throws where a node of a call computes what no backend does.
void OpCalls::require_runnable(const ForeignFunction& function, std::size_t first_node) const {
  for (ir::NodeId node : graph_.nodes().subspan(first_node)) {
    if (!ops::only_moves_complex(graph_, node)) throw GraphBreak(fmt::format("{} computes with complex numbers", function.name));
    for (ir::ValueId made : graph_.node(node).results)
      if (graph_.type(made).rank() > TENON_MAX_RANK) throw GraphBreak(kTooManyDimensions);
    if (moves_many_complex(graph_, node)) throw GraphBreak(fmt::format("{} moves more complex numbers than the graph is fast with", function.name));
  }
}

/// Makes of a call of a ufunc whose keywords choose its loop one without these keywords.
void OpCalls::compute_in(std::span<const DType> loop, ops::ForeignCall& call) {
  std::erase_if(call.keyword, [](const auto& named) { return chooses_loop(named.first); });
  for (std::size_t i = 0; i < call.positional.size(); ++i)
    if (const auto* value = call.positional[i].as<ir::ValueId>()) call.positional[i] = {builder_.cast(*value, loop[i])};
}

/// Throws where the catalogue may take complex operands for real ones: of these some functions give the elements as they are (conj), or
/// answer without looking at them (isreal).
void OpCalls::require_complex_elements(const ForeignFunction& function, std::span<const ir::ValueId> values) const {
  for (ir::ValueId value : values) {
    const bool given = std::ranges::any_of(operands_, [&](Index index) { return stand_ins_[index].value == value; });
    const bool kept = !given || function.flavour == ops::Flavour::numpy || function.may_alias;  // NumPy's twins show new memory
    if (!is_complex(graph_.type(value).dtype) || !kept) throw GraphBreak(fmt::format("{} computes with complex numbers", function.name));
  }
}

/// Whether a call of as_strided shows elements of a dense tensor alone, and not what lies beside it.
bool OpCalls::stays_inside(const ForeignFunction& function, PyObject* args, PyObject* kwargs) const {
  if (!function.has(Trait::by_places) || function.operator_object || PyTuple_GET_SIZE(args) < 1) return false;
  const auto index = stand_ins_.find(PyTuple_GET_ITEM(args, 0));
  if (!index || (!is_row_major(stand_ins_[*index].shape, stand_ins_[*index].strides) && memory_order(stand_ins_[*index].shape, stand_ins_[*index].strides).empty())) return false;
  const auto argument = [&](const char* name, Py_ssize_t at) { return at < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, at) : kwargs ? PyDict_GetItemString(kwargs, name) : nullptr; };
  PyObject *sizes = argument("size", 1), *strides = argument("stride", 2), *offset = argument("storage_offset", 3);
  const bool has_offset = offset && offset != Py_None;
  if (has_offset && (stand_ins_[*index].input || stand_ins_.owner(*index) != *index)) return false;  // which counts from where its storage begins
  const auto is_list = [](PyObject* object) { return object && (PyTuple_Check(object) || PyList_Check(object)); };
  if (!is_list(sizes) || !is_list(strides) || PySequence_Fast_GET_SIZE(sizes) != PySequence_Fast_GET_SIZE(strides)) return false;
  std::int64_t last = has_offset ? PyLong_AsLongLong(offset) : 0, count = 1;
  for (Py_ssize_t d = 0; d < PySequence_Fast_GET_SIZE(sizes); ++d) {
    const std::int64_t size = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(sizes, d)), stride = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(strides, d));
    if (size < 1 || stride < 0) last = std::numeric_limits<std::int32_t>::max();
    last += (size - 1) * stride;
  }
  if (PyErr_Occurred()) return PyErr_Clear(), false;  // a symbol, for one
  for (std::int64_t extent : stand_ins_[*index].shape) count *= extent;
  return last >= 0 && last < count;
}

std::optional<ir::ValueId> OpCalls::value_of(PyObject* object, ops::Flavour flavour, bool weak) {
  if (auto index = stand_ins_.find(object)) {
    const StandIn& s = stand_ins_[*index];
    if ((s.kind == TensorKind::torch) != (flavour == ops::Flavour::torch)) throw GraphBreak("a torch tensor and a NumPy array in one operation", kOneLibraryHint);
    return history_.operand(*index, present_.of(*index));
  }
  if (is_symbolic_scalar(object) && !weak)
    return builder_.cast(computed_.value_of(scalar_of(object)), scalar_of(object).integral ? DType::i64 : DType::f64);
  if (is_symbolic_scalar(object)) return computed_.weak_operand(scalar_of(object), flavour, operands_);
  if (PyArray_IsScalar(object, Generic)) {
    auto read = read_spec(object);
    if (const auto* odd = std::get_if<std::string>(&read)) throw GraphBreak(*odd);
    const TensorSpec& spec = std::get<TensorSpec>(read);
    alignas(16) unsigned char scratch[16];
    data_of(spec, object, scratch);
    if (flavour == ops::Flavour::torch) return builder_.literal(literal_of(spec.dtype, scratch));
    ir::ValueId literal = builder_.literal(literal_of(spec.dtype, scratch));
    return builder_.one("full", {literal}, {{"size", ir::Shape{}}, {"dtype", spec.dtype}});
  }
  if (is_tensor(object)) throw GraphBreak("a tensor or array of unknown origin in an operation");
  return std::nullopt;
}

}  // namespace tenon::python
