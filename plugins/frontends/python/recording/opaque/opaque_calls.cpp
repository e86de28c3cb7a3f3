// The part of the recorder that records what the catalogue lacks: a call that torch or NumPy makes again on every run.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/ops/infer.h"
#include "python/compat/meta_device_hint.h"
#include "python/compat/undefined_results.h"
#include "python/evaluator/exception_text.h"
#include "python/foreign/opaque_purity.h"
#include "python/library/torch_library.h"
#include "python/opaque/call_results.h"
#include "python/opaque/eager_kernels.h"
#include "python/opaque/numpy_answers.h"
#include "python/recording/tensor_recorder.h"
#include "python/results/twins.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

/// A twin's version, which torch counts up when it writes.
long version_of(PyObject* twin) {
  Ref version = Ref::steal(PyObject_GetAttrString(twin, "_version"));
  if (!version) {
    PyErr_Clear();  // an inference tensor keeps none
    return 0;
  }
  return PyLong_AsLong(version.get());
}

/// A value with its dimensions in another order.
ir::ValueId permuted(ops::NodeBuilder& builder, ir::ValueId value, const MemoryOrder& order) {
  return std::ranges::is_sorted(order) ? value : builder.one("permute", {value}, {{"dims", ir::Shape(order.begin(), order.end())}});
}

/// Whether two answers of a library say the same of dtypes, sizes and strides.
bool say_the_same(PyObject* one, PyObject* other) {
  std::vector<Ref> first, second;
  collect_tensors(one, first);
  collect_tensors(other, second);
  if (first.size() != second.size()) return false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const TensorSpec x = read_twin(first[i].get()), y = read_twin(second[i].get());
    if (x.dtype != y.dtype || x.shape != y.shape || x.strides != y.strides) return false;
  }
  return true;
}

}  // namespace

/// A function that takes a number takes a tensor without dimensions for it, whose element a twin cannot give. What the function gives for
/// two numbers alike, it gives for any; nothing where it does not.
Ref TensorRecorder::call_on_twins_with_number(PyObject* callable, std::span<const Index> operands, PyObject* twin_args, PyObject* twin_kwargs) {
  const CpuMetaKernels as_on_cpu;
  for (Index index : operands) {
    if (!stand_ins_[index].shape.empty() || !is_float(stand_ins_[index].dtype) || stand_ins_[index].requires_grad) continue;
    PyObject* twin = stand_ins_.twin(index);
    Ref answers[2];
    for (int i = 0; i < 2; ++i) {
      Ref number = checked(PyFloat_FromDouble(i + 1.0));
      const auto number_for_twin = [&](PyObject* item) { return item == twin ? number : Ref(); };
      Ref args = with_replaced(twin_args, number_for_twin);
      Ref kwargs = twin_kwargs ? with_replaced(twin_kwargs, number_for_twin) : Ref();
      answers[i] = Ref::steal(PyObject_Call(callable, args.get(), kwargs.get()));
      if (!answers[i]) PyErr_Clear();
    }
    if (answers[0] && answers[1] && say_the_same(answers[0].get(), answers[1].get())) return answers[0];
  }
  return {};
}

Ref TensorRecorder::call_on_twins(PyObject* callable, const ForeignFunction& function, std::span<const Index> operands, PyObject* args,
                                  PyObject* kwargs, const OpaqueUse& use) {
  Ref twin_args = on_meta_device(stand_ins_.with_twins(args).get());
  Ref twin_kwargs = use.twin_kwargs ? use.twin_kwargs : kwargs ? on_meta_device(stand_ins_.with_twins(kwargs).get()) : Ref();
  std::vector<long> versions;
  const bool torch = function.flavour == ops::Flavour::torch;
  for (Index index : operands) versions.push_back(torch ? version_of(stand_ins_.twin(index)) : 0);
  Ref answer;
  try {
    std::optional<CpuMetaKernels> as_on_cpu;
    if (torch) as_on_cpu.emplace();
    answer = with_undefined_results(function.name, torch ? call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour)
                                                         : numpy_answer(stand_ins_, callable, function.name, operands, twin_args.get(), twin_kwargs.get()));
  } catch (const PythonError&) {
    const std::string why = take_first_line();  // says nothing yet of the real call
    if (why.find("item() cannot be called on meta tensors") != why.npos && (known_.with_integers(args) || (kwargs && known_.with_integers(kwargs)))) throw NumberNeeded(why);
    if (torch) answer = call_on_twins_with_number(callable, operands, twin_args.get(), twin_kwargs.get());
    const bool makes_new = torch && !function.may_alias && !use.written && use.declared.empty() && !use.random && !function.has(Trait::gives_by_rank);
    if (!answer && makes_new) answer = answer_for_all_elements(callable, stand_ins_.with_twins(args).get(), kwargs ? stand_ins_.with_twins(kwargs).get() : nullptr, say_the_same);
    if (!answer) throw GraphBreak(fmt::format("{} cannot say what it gives without computing it: {}", function.name, why));
  }
  const auto is_declared = [&](Index index) { return std::ranges::find(use.declared, index) != use.declared.end(); };
  for (std::size_t i = 0; i < operands.size() && !use.written; ++i)
    if (torch && !is_declared(operands[i]) && version_of(stand_ins_.twin(operands[i])) != versions[i]) throw GraphBreak(fmt::format("{} writes into a tensor", function.name));
  return answer;
}

/// Whether a call of as_strided shows elements of a dense tensor alone, and not what lies beside it.
bool TensorRecorder::stays_inside(const ForeignFunction& function, PyObject* args, PyObject* kwargs) const {
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

/// What an in-place function gives must be the tensor that it wrote, with the metadata that it had.
void TensorRecorder::require_written_twin(PyObject* answer, const ForeignFunction& function, Index written) const {
  if (stand_ins_.of_twin(answer) != written) throw GraphBreak(fmt::format("{} writes and does not give what it wrote", function.name));
  const TensorSpec spec = read_twin(answer);
  const StandIn& s = stand_ins_[written];
  if (spec.shape != s.shape || spec.strides != s.strides || spec.dtype != s.dtype)
    throw GraphBreak(fmt::format("{} changes the shape or storage of a tensor in place", function.name));
}

/// A number that varies, as an operand of an opaque call; none for other objects.
std::optional<ir::ValueId> TensorRecorder::number_operand(PyObject* object) {
  if (is_symbolic_int(object)) return builder_.one("full", {builder_.literal(*integer_of(object))}, {{"size", ir::Shape{}}, {"dtype", DType::i64}});
  if (!is_symbolic_scalar(object)) return std::nullopt;
  if (!scalar_of(object).step) need_scalar(scalar_of(object), "a call that the library makes itself");
  return value_of_scalar(scalar_of(object));
}

Ref TensorRecorder::record_opaque(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  OpaqueUse use;
  return record_opaque(callable, function, args, kwargs, use);
}

Ref TensorRecorder::record_opaque(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, OpaqueUse& use) {
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  for (Index index : operands)
    if ((stand_ins_[index].kind == TensorKind::torch) != (function.flavour == ops::Flavour::torch))
      throw GraphBreak("a torch tensor and a NumPy array in one operation");
  before_it_may_warn(function.name);
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
    const auto index = stand_ins_.find(object);
    const auto number = index || !takes_numbers ? std::nullopt : number_operand(object);
    if (!index && !number) return std::nullopt;
    const auto place = static_cast<std::uint32_t>(values.size());
    if (number) numbers.push_back(place);
    may_size |= number && (is_symbolic_int(object) || !use.random);
    orders.push_back(index && in_memory ? drawing_order(*index, function, use) : MemoryOrder());
    values.push_back(number ? *number : permuted(builder_, present_.of(*index), orders.back()));
    places.push_back(index.value_or(std::numeric_limits<Index>::max()));
    kinds.push_back(index ? stand_ins_[*index].kind : TensorKind::scalar);
    return place;
  };
  ArgumentTemplate positional(args, place_of);
  Ref no_keywords = kwargs ? Ref() : checked(PyDict_New());
  ArgumentTemplate keywords(kwargs ? kwargs : no_keywords.get(), place_of);

  // Only now: what the templates refuse may be an object that the call would change.
  const bool present_floats = !use.random && !numbers.empty();
  const Ref known_args = present_floats ? with_floats(args, 1) : Ref::borrow(args), known_kwargs = kwargs && present_floats ? with_floats(kwargs, 1) : Ref::borrow(kwargs);
  Ref answer = use.answer ? use.answer : call_on_twins(callable, function, operands, known_args.get(), known_kwargs.get(), use);
  const bool only_computes = !use.answer && !use.random && !use.written && use.declared.empty() && !function.in_graph && !purity_of(callable, function).foreign;
  if (only_computes && function.flavour == ops::Flavour::torch && lie_unusually(operands)) answer = as_the_cpu_lays_out(std::move(answer), callable, known_args.get(), known_kwargs.get(), {});
  if (use.random && !use.written && stand_ins_.of_twin(answer.get())) throw GraphBreak(fmt::format("{} gives its argument as it is", function.name));
  if (use.random && !use.written) answer = with_strides_of_draw(std::move(answer), callable, operands, args, kwargs);
  if (use.written) require_written_twin(answer.get(), function, *use.written);
  std::vector<Ref> twins;
  collect_tensors(answer.get(), twins);
  if (twins.empty() && !answer.is(Py_None) && !is_empty_sequence(answer.get())) throw GraphBreak(fmt::format("{} gives no tensor", function.name));
  for (Index index : use.declared) {
    twins.push_back(Ref::borrow(stand_ins_.twin(index)));
    require_written_twin(twins.back().get(), function, index);
  }

  auto call = OpaqueCall::make(function.name, Ref::borrow(callable), std::move(positional), std::move(keywords));
  call->operands = std::move(kinds);
  call->orders = std::move(orders);
  call->numbers = std::move(numbers);
  call->handling = core_.error_handlings.now();
  for (Index index : use.declared) call->written.push_back(static_cast<std::uint32_t>(std::ranges::find(places, index) - places.begin()));
  call->may_keep_arguments = function.in_graph || purity_of(callable, function).foreign || use.written || !use.declared.empty();

  const auto shapes = use.shapes ? use.shapes : shapes_of_opaque_call(callable, function, operands, args, kwargs, use, twins);
  if (!shapes) {
    for (Index index : operands) core_.fix_sizes_to_come(index);
    if (may_size) fix_numbers();
  }
  std::vector<ir::Type> types;
  for (const Ref& twin : twins) {
    TensorSpec spec = read_twin(twin.get());
    ir::Shape shape = shapes ? (*shapes)[types.size()] : ir::Shape(spec.shape.begin(), spec.shape.end());
    const bool plain = !use.random || is_row_major(spec.shape, spec.strides);
    MemoryOrder order = plain ? MemoryOrder() : memory_order(spec.shape, spec.strides);
    ir::Shape in_order = order.empty() ? shape : ir::Shape();
    for (std::int64_t dim : order) in_order.push_back(shape[static_cast<std::size_t>(dim)]);
    types.push_back(ir::Type::tensor(spec.dtype, std::move(in_order)));
    call->results.push_back({spec.kind, spec.dtype, std::move(spec.shape), std::move(order)});
  }
  const std::vector<OpaqueResult> recorded = call->results;
  const std::size_t first_node = graph_.nodes().size();
  std::vector<ir::ValueId> results = add_opaque_node(function.name, std::move(call), std::move(values), std::move(types), use);
  for (std::size_t i = 0; i < results.size(); ++i) results[i] = permuted(builder_, results[i], inverse(recorded[i].order));
  core_.settle_extents(results);
  if (use.written) {
    use.value = results.front();
    return stand_ins_[*use.written].object;
  }
  if (results.empty() && answer.is(Py_None)) return answer;
  Ref wrapped = use.shapes ? wrap_late(function, results.front(), operands) : wrap_answer(answer.get(), function, results, operands);
  if (use.declared.empty()) trace_.add(callable, function, args, kwargs, wrapped, first_node);
  return wrapped;
}

/// A ufunc of operands whose size depends on data: it gives their common shape, whatever that is.
Ref TensorRecorder::record_late_opaque(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands) {
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) refuse_late(operands);
  ir::Shape shape;
  try {
    for (Index index : operands) shape = ops::infer::broadcast(graph_, shape, graph_.type(stand_ins_[index].value).shape);
  } catch (const Exception& error) {
    throw GraphBreak(fmt::format("{}: {}", function.name, error.what()));
  }
  OpaqueUse use;
  use.shapes = {std::move(shape)};
  return record_opaque(callable, function, args, kwargs, use);
}

/// A function that gives a vector of as many elements as it finds.
Ref TensorRecorder::record_found(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands) {
  if (core_.in_branch()) throw GraphBreak("a size that depends on data");
  OpaqueUse use;
  try {
    use.answer = answer_on_zeros(callable, function, stand_ins_.with_twins(args).get(), kwargs ? stand_ins_.with_twins(kwargs).get() : nullptr);
  } catch (const PythonError&) {
    throw GraphBreak(fmt::format("{} raises: {}", function.name, take_first_line()));
  }
  std::vector<Ref> vectors;
  collect_tensors(use.answer.get(), vectors);
  if (vectors.size() != 1 || !vectors.front().is(use.answer.get()) || read_twin(vectors.front().get()).shape.size() != 1) throw GraphBreak("a size that depends on data");
  const SymbolId found = graph_.add_symbol({.name = fmt::format("u{}", graph_.symbols().size())});
  symbols_.take_data_symbols();
  use.shapes = {ir::Shape{ir::Dim::symbol(found)}};
  for (Index index : operands) core_.fix_sizes_to_come(index);
  return record_opaque(callable, function, args, kwargs, use);
}

Ref TensorRecorder::wrap_late(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands) {
  TensorSpec spec = graph_.type(value).shape.size() > 1 ? late_spec(function, value, operands, true) : TensorSpec();
  if (spec.shape.empty()) {  // a vector is row-major
    spec.dtype = graph_.type(value).dtype;
    spec.shape = symbols_.hints(graph_.type(value).shape);
    spec.strides = row_major(spec.shape);
    set_result_type(spec, function, false);
  }
  return stand_ins_[core_.add_fresh(spec.kind, value, spec)].object;
}

/// Adds the node of an opaque call and gives the values of what the function gives; those of what it writes are `use.left`.
std::vector<ir::ValueId> TensorRecorder::add_opaque_node(const std::string& target, std::shared_ptr<OpaqueCall> call, std::vector<ir::ValueId> values,
                                                         std::vector<ir::Type> types, OpaqueUse& use) {
  if (use.random) {
    if (core_.random_token) values.push_back(*core_.random_token);
    types.push_back(ir::Type::token());
  }
  const NodeId node = graph_.add_node("opaque", std::move(values), {{"handle", ir::Dim(call->handle())}, {"target", target}}, std::move(types));
  opaque_calls_.push_back(std::move(call));
  std::vector<ir::ValueId> results = graph_.node(node).results;
  if (use.random) {
    core_.random_token = results.back();
    results.pop_back();
  }
  const auto given = results.end() - static_cast<std::ptrdiff_t>(use.declared.size());
  use.left.assign(given, results.end());
  results.erase(given, results.end());
  return results;
}

namespace {

/// The one overload that a call of an operator means; empty where that depends on its arguments.
Ref single_overload(PyObject* callable) {
  Ref names = Ref::steal(PyObject_CallMethod(callable, "overloads", nullptr));
  if (!names) {
    PyErr_Clear();
    return Ref::borrow(callable);
  }
  return PyList_GET_SIZE(names.get()) == 1 ? checked(PyObject_GetAttr(callable, PyList_GET_ITEM(names.get(), 0))) : Ref();
}

bool is_written(PyObject* schema_argument) {
  Ref alias = checked(PyObject_GetAttrString(schema_argument, "alias_info"));
  if (alias.is(Py_None)) return false;
  Ref written = checked(PyObject_GetAttrString(alias.get(), "is_write"));
  return written.is(Py_True);
}

bool gives_an_argument(PyObject* schema) {
  Ref returns = checked(PyObject_GetAttrString(schema, "returns"));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(returns.get()); ++i) {
    Ref alias = checked(PyObject_GetAttrString(PyList_GET_ITEM(returns.get(), i), "alias_info"));
    if (!alias.is(Py_None)) return true;
  }
  return false;
}

}  // namespace

/// The tensors among the arguments that an operator's schema says it writes.
std::vector<TensorRecorder::Index> TensorRecorder::declared_writes(PyObject* schema, const ForeignFunction& function, PyObject* args, PyObject* kwargs) const {
  std::vector<Index> written;
  Ref arguments = checked(PyObject_GetAttrString(schema, "arguments"));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arguments.get()); ++i) {
    PyObject* argument = PyList_GET_ITEM(arguments.get(), i);
    if (!is_written(argument)) continue;
    Ref name = checked(PyObject_GetAttrString(argument, "name"));
    PyObject* given = i < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, i) : kwargs ? PyDict_GetItem(kwargs, name.get()) : nullptr;
    if (!given || given == Py_None) continue;
    Ref alone = checked(PyTuple_Pack(1, given));
    const std::vector<Index> found = stand_ins_.among(alone.get(), nullptr);
    if (found.empty()) throw GraphBreak(fmt::format("{} writes into a tensor that is none of the program's", function.name));
    written.insert(written.end(), found.begin(), found.end());
  }
  return written;
}

/// An operator whose schema says which arguments it writes, besides what it gives; nothing for other calls.
std::optional<Ref> TensorRecorder::record_declared_writes(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (!function.operator_object) return std::nullopt;
  const Purity& purity = purity_of(callable, function);
  Ref overload = purity.foreign && purity.known && purity.writes && !purity.undeclared ? single_overload(callable) : Ref();
  Ref schema = overload ? checked(PyObject_GetAttrString(overload.get(), "_schema")) : Ref();
  if (!schema || gives_an_argument(schema.get()) || takes_random_numbers(function, purity, args, kwargs)) return std::nullopt;
  OpaqueUse use;
  use.declared = declared_writes(schema.get(), function, args, kwargs);
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  std::vector<long> versions;
  for (Index target : use.declared) {
    require_writable(target);
    if (std::ranges::count(operands, target) != 1) throw GraphBreak(fmt::format("{} writes a tensor that is given twice", function.name));
    for (const Index& operand : operands)
      if (operand != target) require_apart(function, target, {&operand, 1}, true);
    versions.push_back(version_of(stand_ins_.twin(target)));
  }
  const std::size_t first_node = graph_.nodes().size();
  Ref result = record_opaque(callable, function, args, kwargs, use);
  for (std::size_t i = 0; i < use.declared.size(); ++i) {
    const Index target = use.declared[i];
    const long counted = version_of(stand_ins_.twin(target)) - versions[i];  // at least one in the real call, whose body is not known here
    present_.write(target, use.left[i]);
    for (long more = 1; more < counted; ++more) stand_ins_.count_write(target);
    inputs_.note_write(target);
  }
  trace_.add(callable, function, args, kwargs, result, first_node);
  return result;
}

}  // namespace tenon::python
