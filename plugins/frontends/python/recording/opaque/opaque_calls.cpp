#include "python/recording/opaque/opaque_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/ops/infer.h"
#include "python/foreign/opaque_purity.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/opaque/eager_kernels.h"
#include "python/recording/memory/device_results.h"
#include "python/recording/memory/result_types.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/recording/opaque/drawing_order.h"
#include "python/results/twins.h"
#include "python/segments/exception_text.h"
#include "python/stand_ins/late_text.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

/// A value with its dimensions in another order.
ir::ValueId permuted(ops::NodeBuilder& builder, ir::ValueId value, const MemoryOrder& order) {
  return std::ranges::is_sorted(order) ? value : builder.one("permute", {value}, {{"dims", ir::Shape(order.begin(), order.end())}});
}

/// Whether torch has zeros for the gradient of what a call draws. It has none where a number says how, and the tensor only how many.
bool has_slope_of_zero(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (!function.has(Trait::draws_of_no_slope)) return false;
  return !function.has(Trait::takes_probability) || (PyTuple_GET_SIZE(args) == 1 && !(kwargs && PyDict_GetItemString(kwargs, "p")));
}

/// The number of a run, behind what a call gives.
void add_run(OpaqueCall& call, std::vector<ir::Type>& types) {
  types.push_back(ir::Type::tensor(DType::i64, {}));
  call.results.push_back({TensorKind::torch, DType::i64, {}, {}});
  call.keeps_run = true;
}

}  // namespace

/// A number that varies, as an operand of an opaque call; none for other objects.
std::optional<ir::ValueId> OpaqueCalls::number_operand(PyObject* object) {
  if (is_symbolic_int(object)) return core_.builder.one("full", {core_.builder.literal(*integer_of(object))}, {{"size", ir::Shape{}}, {"dtype", DType::i64}});
  if (!is_symbolic_scalar(object)) return std::nullopt;
  if (!scalar_of(object).step) need_scalar_for_call(core_.symbols, scalar_of(object));
  return computed_.value_of(scalar_of(object));
}

/// The numbers among the arguments of an opaque call are part of it: in a capture to come they are constants.
void OpaqueCalls::fix_numbers_in(PyObject* object) {
  if (is_symbolic_int(object)) core_.symbols.constant(*integer_of(object));
  if (is_symbolic_scalar(object)) need_scalar_for_call(core_.symbols, scalar_of(object));
  if (is_late_text(object)) need_text(core_.symbols, object, "a call that the library makes itself");
  if (PyDict_Check(object)) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) fix_numbers_in(value);
  } else if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    for (PyObject* part : {slice->start, slice->stop, slice->step}) fix_numbers_in(part);
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) fix_numbers_in(PySequence_Fast_GET_ITEM(object, i));
  }
}

Ref OpaqueCalls::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  OpaqueUse use;
  return record(callable, function, args, kwargs, use);
}

Ref OpaqueCalls::kept_run() {
  if (std::exchange(keeper_, {}) || !run_) throw GraphBreak("a call has a gradient that torch alone knows", "call it outside of the compiled function, or under torch.no_grad()");
  return wrap_run(*std::exchange(run_, {}));
}

Ref OpaqueCalls::wrap_run(ir::ValueId run) {
  TensorSpec spec;
  spec.dtype = DType::i64;
  spec.type = reinterpret_cast<PyTypeObject*>(known_torch_library()->tensor.get());
  return core_.stand_ins[core_.add_fresh(TensorKind::torch, run, spec)].object;
}

std::vector<Ref> OpaqueCalls::record_gradients(PyObject* function, PyObject* args, std::span<const Index> of, bool keeps) {
  std::vector<ir::ValueId> values;
  const auto place_of = [&](PyObject* object) -> std::optional<std::uint32_t> {
    const auto index = core_.stand_ins.find(object);
    if (!index) return std::nullopt;
    values.push_back(core_.present.of(*index));
    return static_cast<std::uint32_t>(values.size() - 1);
  };
  const Ref no_keywords = checked(PyDict_New());
  ArgumentTemplate positional(args, place_of), named(no_keywords.get(), place_of);
  auto call = OpaqueCall::make("torch.autograd.grad", Ref::borrow(function), std::move(positional), std::move(named));
  call->operands.assign(values.size(), TensorKind::torch);
  call->orders.resize(values.size());
  std::vector<ir::Type> types;
  for (Index index : of) {
    const ir::Type type = core_.graph.type(core_.present.of(index));
    types.push_back(ir::Type::tensor(type.dtype, type.shape, type.device));
    call->results.push_back({TensorKind::torch, type.dtype, core_.stand_ins[index].shape, {}});
  }
  if (keeps) add_run(*call, types);
  const std::string target = call->target();
  std::vector<Ref> gradients;
  for (ir::ValueId value : add_call(target, std::move(call), std::move(values), std::move(types), false, true)) {
    if (gradients.size() == of.size()) {
      gradients.push_back(wrap_run(value));
      break;
    }
    const StandIn& tensor = core_.stand_ins[of[gradients.size()]];
    TensorSpec spec;
    spec.dtype = tensor.dtype;
    spec.type = reinterpret_cast<PyTypeObject*>(known_torch_library()->tensor.get());
    spec.shape = tensor.shape;
    spec.strides = row_major(spec.shape);
    gradients.push_back(core_.stand_ins[core_.add_fresh(TensorKind::torch, value, spec)].object);
  }
  return gradients;
}

Ref OpaqueCalls::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, OpaqueUse& use) {
  use.keeper = std::exchange(keeper_, {});
  const std::vector<Index> operands = core_.stand_ins.among(args, kwargs);
  const bool no_slope = use.random && !use.written && has_slope_of_zero(function, args, kwargs);
  if (history_.tracking() && !no_slope) {
    const bool may_have = use.written || !use.declared.empty() || use.answer || function.in_graph;
    const std::optional<bool> has = may_have ? true : twins_.have_gradient(callable, function, operands, args, kwargs);
    const std::string reason = fmt::format("{} has a gradient that torch alone knows", function.name);
    if (!has) throw NumberNeeded(reason);  // a size that a tensor gives, for one
    if (*has) throw GradientNeeded(reason);
  }
  for (Index index : operands)
    if ((core_.stand_ins[index].kind == TensorKind::torch) != (function.flavour == ops::Flavour::torch))
      throw GraphBreak("a torch tensor and a NumPy array in one operation", kOneLibraryHint);
  before_it_may_warn_(function.name);
  const bool takes_numbers = !function.in_graph && !core_.in_branch() && !use.answer && use.declared.empty() &&
                             (use.random ? function.flavour == ops::Flavour::torch : !use.written && !use.shapes && !purity_of(callable, function).foreign);
  const auto fix_numbers = [&] {
    fix_numbers_in(args);
    if (kwargs) fix_numbers_in(kwargs);
  };
  if (!takes_numbers) fix_numbers();

  const bool in_memory = use.random || function.has(Trait::by_places);  // counts elements as they lie
  std::vector<ir::ValueId> values;
  std::vector<Index> places;
  std::vector<TensorKind> kinds;
  std::vector<MemoryOrder> orders;
  std::vector<std::uint32_t> numbers;
  bool may_size = false;  // whether a number may be a size, or decide one
  const auto place_of = [&](PyObject* object) -> std::optional<std::uint32_t> {
    const auto index = core_.stand_ins.find(object);
    const auto number = index || !takes_numbers ? std::nullopt : number_operand(object);
    if (!index && !number) return std::nullopt;
    const auto place = static_cast<std::uint32_t>(values.size());
    if (number) numbers.push_back(place);
    may_size |= number && (is_symbolic_int(object) || !use.random);
    orders.push_back(index && in_memory ? drawing_order(core_.stand_ins[*index], use.written == *index, function) : MemoryOrder());
    values.push_back(number ? *number : permuted(core_.builder, history_.tracking() ? history_.cut(core_.present.of(*index)) : core_.present.of(*index), orders.back()));
    places.push_back(index.value_or(std::numeric_limits<Index>::max()));
    kinds.push_back(index ? core_.stand_ins[*index].kind : TensorKind::scalar);
    return place;
  };
  ArgumentTemplate positional(args, place_of);
  Ref no_keywords = kwargs ? Ref() : checked(PyDict_New());
  ArgumentTemplate keywords(kwargs ? kwargs : no_keywords.get(), place_of);

  // Only now: what the templates refuse may be an object that the call would change.
  const bool present_floats = !use.random && !numbers.empty();
  const Ref known_args = present_floats ? sizes_.with_floats(args, 1) : Ref::borrow(args), known_kwargs = kwargs && present_floats ? sizes_.with_floats(kwargs, 1) : Ref::borrow(kwargs);
  Ref answer = use.answer ? use.answer : twins_.call(callable, function, operands, known_args.get(), known_kwargs.get(), use);
  const bool only_computes = !use.answer && !use.random && !use.written && use.declared.empty() && !function.in_graph && !function.has(Trait::trusts_pivots) && !purity_of(callable, function).foreign;
  if (only_computes && function.flavour == ops::Flavour::torch && (results_.lie_unusually(operands) || !core_.device_of(operands).is_host())) answer = results_.as_kernels_lay_out(std::move(answer), callable, known_args.get(), known_kwargs.get(), {});
  if (use.random && !use.written && core_.stand_ins.of_twin(answer.get())) throw GraphBreak(fmt::format("{} gives its argument as it is", function.name));
  if (use.random && !use.written) answer = with_strides_of_draw(std::move(answer), callable, operands, args, kwargs);
  if (use.written) twins_.require_written(answer.get(), function, *use.written);
  std::vector<Ref> twins;
  collect_tensors(answer.get(), twins);
  if (twins.empty() && !answer.is(Py_None) && !is_empty_sequence(answer.get())) throw GraphBreak(fmt::format("{} gives no tensor", function.name));
  for (Index index : use.declared) {
    twins.push_back(Ref::borrow(core_.stand_ins.twin(index)));
    twins_.require_written(twins.back().get(), function, index);
  }

  auto call = OpaqueCall::make(function.name, use.keeper ? use.keeper : Ref::borrow(callable), std::move(positional), std::move(keywords));
  call->operands = std::move(kinds);
  call->orders = std::move(orders);
  call->numbers = std::move(numbers);
  call->handling = core_.error_handlings.now();
  for (Index index : use.declared) call->written.push_back(static_cast<std::uint32_t>(std::ranges::find(places, index) - places.begin()));
  call->may_keep_arguments = function.in_graph || purity_of(callable, function).foreign || use.written || !use.declared.empty();

  const auto shapes = use.shapes ? use.shapes : sizes_.shapes(callable, function, operands, args, kwargs, use, twins);
  if (!shapes) {
    for (Index index : operands) core_.fix_sizes_to_come(index);
    if (may_size) fix_numbers();
  }
  const ir::Device device = device_of_results(core_, function, operands, args, kwargs);
  std::vector<ir::Type> types;
  for (const Ref& twin : twins) {
    TensorSpec spec = read_twin(twin.get());
    ir::Shape shape = shapes ? (*shapes)[types.size()] : ir::Shape(spec.shape.begin(), spec.shape.end());
    const bool plain = !use.random || is_row_major(spec.shape, spec.strides);
    MemoryOrder order = plain ? MemoryOrder() : memory_order(spec.shape, spec.strides);
    ir::Shape in_order = order.empty() ? shape : ir::Shape();
    for (std::int64_t dim : order) in_order.push_back(shape[static_cast<std::size_t>(dim)]);
    types.push_back(ir::Type::tensor(spec.dtype, std::move(in_order), device));
    call->results.push_back({spec.kind, spec.dtype, std::move(spec.shape), std::move(order)});
  }
  const std::vector<OpaqueResult> recorded = call->results;
  if (use.keeper) add_run(*call, types);
  const std::size_t first_node = core_.graph.nodes().size();
  std::vector<ir::ValueId> results = add_node(function, std::move(call), std::move(values), std::move(types), use);
  if (use.keeper) {
    run_ = results.back();
    results.pop_back();
  }
  if (only_computes && function.flavour == ops::Flavour::torch && !results.empty()) results_.note_opaque(core_.graph.value(results.front()).node, callable, known_args.get(), known_kwargs.get());
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = permuted(core_.builder, results[i], inverse(recorded[i].order));
  if (history_.tracking() && no_slope)
    for (ir::ValueId& drawn : results) drawn = with_slope_of_zero(drawn, operands);
  core_.settle_extents(results);
  if (use.written) {
    use.value = results.front();
    return core_.stand_ins[*use.written].object;
  }
  if (results.empty() && answer.is(Py_None)) return answer;
  Ref wrapped = use.shapes ? wrap_late(function, results.front(), operands) : results_.wrap_answer(answer.get(), function, results, operands);
  if (use.declared.empty()) trace_.add(callable, function, args, kwargs, wrapped, first_node);
  return wrapped;
}

Ref OpaqueCalls::record_late(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands) {
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) late_.refuse(operands);
  ir::Shape shape;
  try {
    for (Index index : operands) shape = ops::infer::broadcast(core_.graph, shape, core_.graph.type(core_.stand_ins[index].value).shape);
  } catch (const Exception& error) {
    throw GraphBreak(fmt::format("{}: {}", function.name, error.what()));
  }
  OpaqueUse use;
  use.shapes = {std::move(shape)};
  return record(callable, function, args, kwargs, use);
}

Ref OpaqueCalls::record_found(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands) {
  if (core_.in_branch()) throw GraphBreak("a size that depends on data", kDataSizeHint);
  OpaqueUse use;
  try {
    use.answer = answer_on_zeros(callable, function, core_.stand_ins.with_twins(args).get(), kwargs ? core_.stand_ins.with_twins(kwargs).get() : nullptr);
  } catch (const PythonError&) {
    throw GraphBreak(fmt::format("{} raises: {}", function.name, take_first_line()));
  }
  std::vector<Ref> vectors;
  collect_tensors(use.answer.get(), vectors);
  if (vectors.size() != 1 || !vectors.front().is(use.answer.get()) || read_twin(vectors.front().get()).shape.size() != 1) throw GraphBreak("a size that depends on data", kDataSizeHint);
  const SymbolId found = core_.graph.add_symbol({.name = fmt::format("u{}", core_.graph.symbols().size())});
  core_.symbols.take_data_symbols();
  use.shapes = {ir::Shape{ir::Dim::symbol(found)}};
  for (Index index : operands) core_.fix_sizes_to_come(index);
  return record(callable, function, args, kwargs, use);
}

Ref OpaqueCalls::wrap_late(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands) {
  TensorSpec spec = core_.graph.type(value).shape.size() > 1 ? late_.spec(function, value, operands, true) : TensorSpec();
  if (spec.shape.empty()) {  // a vector is row-major
    spec.dtype = core_.graph.type(value).dtype;
    spec.shape = core_.symbols.hints(core_.graph.type(value).shape);
    spec.strides = row_major(spec.shape);
    set_result_type(spec, function, false);
  }
  return core_.stand_ins[core_.add_fresh(spec.kind, value, spec)].object;
}

/// What was drawn, as a value that depends on the operands: their gradients are zeros.
ir::ValueId OpaqueCalls::with_slope_of_zero(ir::ValueId drawn, std::span<const Index> operands) {
  const ir::ValueId yes = core_.builder.one("full", {core_.builder.literal(true)}, {{"dtype", DType::b8}, {"size", ir::Shape{}}});
  for (Index index : operands)
    if (core_.stand_ins[index].requires_grad) drawn = core_.builder.one("where", {yes, drawn, core_.builder.cast(core_.present.of(index), core_.graph.type(drawn).dtype)});
  return drawn;
}

/// Adds the node of an opaque call and gives the values of what the function gives; those of what it writes are `use.left`.
std::vector<ir::ValueId> OpaqueCalls::add_node(const ForeignFunction& function, std::shared_ptr<OpaqueCall> call, std::vector<ir::ValueId> values,
                                                         std::vector<ir::Type> types, OpaqueUse& use) {
  std::vector<ir::ValueId> results;
  if (use.random && core_.draws.is_again()) {
    results = core_.draws.next(function.name, types);
  } else {
    results = add_call(function.name, std::move(call), std::move(values), types, use.random);
    if (use.random) (function.has(Trait::counts_draws) ? core_.draws_by_kernels : core_.draws_by_calls) = true;
    if (use.random) core_.draws.note({function.name, function.flavour == ops::Flavour::torch, std::move(types), results});
  }
  const auto given = results.end() - static_cast<std::ptrdiff_t>(use.declared.size());
  use.left.assign(given, results.end());
  results.erase(given, results.end());
  return results;
}

std::vector<ir::ValueId> OpaqueCalls::add_call(const std::string& target, std::shared_ptr<OpaqueCall> call, std::vector<ir::ValueId> values,
                                               std::vector<ir::Type> types, bool random, bool linear) {
  if (random) {
    if (core_.random_token) values.push_back(*core_.random_token);
    types.push_back(ir::Type::token());
  }
  ir::Attributes attributes{{"handle", ir::Dim(call->handle())}, {"target", target}};
  if (linear) {
    ir::Shape given;
    for (const ir::Type& type : types) std::ranges::copy_if(type.shape, std::back_inserter(given), [](const ir::Dim& dim) { return !dim.is_constant(); });
    attributes.push_back({"linear", true});
    if (!given.empty()) attributes.push_back({"given", std::move(given)});  // sizes of what is differentiated, which a backward graph may have no operand of
  }
  const NodeId node = core_.graph.add_node("opaque", std::move(values), std::move(attributes), std::move(types));
  calls_.push_back(std::move(call));
  std::vector<ir::ValueId> results = core_.graph.node(node).results;
  if (random) {
    core_.random_token = results.back();
    results.pop_back();
  }
  return results;
}

/// The answer of the meta device with the strides that the CPU gives, where operands do not have those of row-major order: some functions draw
/// into a row-major tensor there, and keep the order of an operand on the meta device (torch 2.13: rrelu, poisson, normal of two tensors), also
/// that of a single channel in channels-last order, which is row-major too (dropout).
Ref OpaqueCalls::with_strides_of_draw(Ref answer, PyObject* callable, std::span<const Index> operands, PyObject* args, PyObject* kwargs) {
  if (!results_.lie_unusually(operands)) return answer;
  const Ref twin_args = core_.stand_ins.with_twins(args), twin_kwargs = kwargs ? core_.stand_ins.with_twins(kwargs) : Ref();
  return with_strides_of_kernels(std::move(answer), core_.stand_ins, callable, twin_args.get(), twin_kwargs.get(), std::numeric_limits<std::int64_t>::max(), false);
}

}  // namespace tenon::python
