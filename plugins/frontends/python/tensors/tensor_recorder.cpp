#include "python/tensors/tensor_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "core/ir/printer.h"
#include "python/tensors/array_results.h"
#include "python/tensors/array_stand_in.h"
#include "python/tensors/call_results.h"
#include "python/tensors/foreign_arguments.h"
#include "python/tensors/source_text.h"
#include "python/tensors/torch_library.h"
#include "python/tensors/torch_stand_in.h"
#include "python/tensors/twins.h"

namespace tenon::python {
namespace {

thread_local TensorRecorder* t_active = nullptr;

constexpr const char* kGradHint = "call it under torch.no_grad(), or detach the inputs: gradients run eagerly";

/// "x", "self.lin.weight", made an identifier of the text form.
std::string graph_name(std::string_view source) {
  std::string name;
  for (char c : source) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    if (fits) name += c;
    else if (!name.empty() && name.back() != '_') name += '_';
  }
  while (!name.empty() && (name.back() == '_' || name.back() == '.')) name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) || name.front() == '.') name = "input_" + name;
  return name;
}

ir::Type graph_type(const TensorSpec& spec) {
  ir::Type type = ir::Type::tensor(spec.dtype, ir::Shape(spec.shape.begin(), spec.shape.end()));
  if (!is_row_major(spec.shape, spec.strides)) type.strides = ir::Shape(spec.strides.begin(), spec.strides.end());
  return type;
}

Extents constant_shape(const ir::Type& type) {
  Extents shape;
  for (const ir::Dim& dim : type.shape) {
    if (!dim.is_constant()) throw GraphBreak("a result whose size depends on data", "sizes that depend on data run eagerly");
    shape.push_back(dim.constant());
  }
  return shape;
}

/// A new object with the items of `sequence` replaced: of the same type, named tuples included.
Ref rebuilt(PyObject* sequence, const std::function<Ref(PyObject*)>& replace) {
  Ref fast = checked(PySequence_Fast(sequence, "a sequence"));
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(fast.get());
  Ref list = checked(PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) PyList_SET_ITEM(list.get(), i, replace(PySequence_Fast_GET_ITEM(fast.get(), i)).release());
  if (PyList_CheckExact(sequence)) return list;
  if (PyTuple_CheckExact(sequence)) return checked(PyList_AsTuple(list.get()));
  if (PyObject_HasAttrString(sequence, "_make")) return checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(Py_TYPE(sequence)), "_make", "O", list.get()));
  return checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(sequence)), list.get()));
}

bool is_tensor(PyObject* object) {
  const TorchLibrary* torch = known_torch_library();
  return PyArray_Check(object) || (torch && torch->is_tensor(object));
}

}  // namespace

TensorRecorder::TensorRecorder(const TorchState& state) : x_state(state), x_outer(t_active), x_builder(x_graph) { t_active = this; }

TensorRecorder::~TensorRecorder() { t_active = x_outer; }

TensorRecorder& TensorRecorder::active() {
  if (!t_active) throw GraphBreak("a stand-in of a tensor was used after its capture had ended");
  return *t_active;
}

// ---- objects

Recorder::Role TensorRecorder::role(PyTypeObject* type) {
  if (type == array_stand_in_type()) return Role::stand_in;
  if (PyType_IsSubtype(type, &PyArray_Type)) return Role::tensor;
  if (PyType_IsSubtype(type, &PyGenericArrType_Type)) {
    const bool number = PyType_IsSubtype(type, &PyNumberArrType_Type) || type == &PyBoolArrType_Type;
    return number ? Role::scalar : Role::other;
  }
  const TorchLibrary* torch = torch_library();
  if (!torch || !PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(torch->tensor.get()))) return Role::other;
  return reinterpret_cast<PyObject*>(type) == torch->stand_in.get() ? Role::stand_in : Role::tensor;
}

Ref TensorRecorder::input(PyObject* real, SourceId source, GuardSet& guards) {
  auto read = read_spec(real);
  if (const auto* odd = std::get_if<std::string>(&read)) throw GraphBreak(*odd + " as an input");
  TensorSpec& spec = std::get<TensorSpec>(read);
  if (spec.requires_grad && torch_state().value_or(x_state).grad_enabled())
    throw GraphBreak("an input requires grad while grad mode is on", kGradHint);
  const std::string name = graph_name(guards.sources().describe(source));
  StandIn stand_in;
  stand_in.kind = spec.kind;
  stand_in.value = x_graph.add_input(graph_type(spec), name);
  stand_in.dtype = spec.dtype;
  stand_in.shape = spec.shape;
  stand_in.strides = spec.strides;
  stand_in.writeable = spec.writeable;
  stand_in.requires_grad = spec.requires_grad;
  stand_in.type = spec.type;
  stand_in.input = static_cast<std::uint32_t>(x_inputs.size());
  stand_in.source = source;
  stand_in.storage = static_cast<std::uint32_t>(x_storages.size());
  guards.add_value_check(source, std::make_shared<TensorCheck>(spec));
  if (spec.kind != TensorKind::scalar) guards.add_distinct(source);
  const Index index = add(std::move(stand_in));
  x_storages.push_back({index, nullptr, 0});
  x_inputs.push_back(index);
  x_input_specs.push_back(std::move(spec));
  x_input_objects.push_back(Ref::borrow(real));
  return x_stand_ins[index].object;
}

PyTypeObject* TensorRecorder::apparent_type(PyObject* stand_in) { return x_stand_ins[require(stand_in)].type; }

SourceId TensorRecorder::input_source(PyObject* stand_in) { return x_stand_ins[require(stand_in)].source; }

std::optional<TensorRecorder::Index> TensorRecorder::find(PyObject* object) const {
  auto found = x_by_object.find(object);
  if (found == x_by_object.end()) return std::nullopt;
  return found->second;
}

TensorRecorder::Index TensorRecorder::require(PyObject* object) const {
  auto index = find(object);
  if (!index) throw GraphBreak("a stand-in of a tensor was used in another capture than its own");
  return *index;
}

TensorRecorder::Index TensorRecorder::add(StandIn stand_in) {
  stand_in.object = make_object(stand_in);
  const auto index = static_cast<Index>(x_stand_ins.size());
  x_by_object.emplace(stand_in.object.get(), index);
  if (stand_in.twin) x_by_twin.emplace(stand_in.twin.get(), index);
  x_stand_ins.push_back(std::move(stand_in));
  return index;
}

Ref TensorRecorder::make_object(const StandIn& s) {
  if (s.kind == TensorKind::torch) return make_torch_stand_in(*torch_library(), s.dtype, s.shape, s.strides, s.requires_grad);
  return make_array_stand_in();
}

TensorRecorder::Index TensorRecorder::add_fresh(TensorKind kind, ir::ValueId value, const TensorSpec& spec) {
  StandIn stand_in;
  stand_in.kind = kind;
  stand_in.value = value;
  stand_in.dtype = spec.dtype;
  stand_in.shape = spec.shape;
  stand_in.strides = spec.strides;
  stand_in.type = spec.type;
  stand_in.storage = static_cast<std::uint32_t>(x_storages.size());
  const Index index = add(std::move(stand_in));
  x_storages.push_back({index, nullptr, 0});
  return index;
}

// ---- twins

PyObject* TensorRecorder::twin(Index index) {
  StandIn& s = x_stand_ins[index];
  if (!s.twin) {
    // A scalar's twin is a 0-d array: NumPy's descriptors take arrays only.
    const TensorKind kind = s.kind == TensorKind::scalar ? TensorKind::array : s.kind;
    s.twin = make_twin(kind, s.dtype, s.shape, s.strides, s.writeable);
    x_by_twin.emplace(s.twin.get(), index);
    const TwinPlace place = place_of_twin(s.twin.get());
    x_storages[s.storage].address = place.storage;  // only the first stand-in of a storage lacks a twin
    x_storages[s.storage].first_offset = place.offset;
  }
  return s.twin.get();
}

Ref TensorRecorder::with_twins(PyObject* object) {
  if (auto index = find(object)) return Ref::borrow(twin(*index));
  if (PyTuple_Check(object) || PyList_CheckExact(object)) return rebuilt(object, [&](PyObject* item) { return with_twins(item); });
  if (PyDict_CheckExact(object)) {
    Ref copy = checked(PyDict_New());
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) checked(PyDict_SetItem(copy.get(), key, with_twins(value).get()));
    return copy;
  }
  return Ref::borrow(object);
}

// ---- calls

bool TensorRecorder::takes(PyObject* callable) {
  const ForeignFunction& function = foreign_function(callable);
  // A function of torch without an op may be one that the evaluator knows (torch.is_grad_enabled).
  if (function.kind == CallClass::missing) return function.flavour == ops::Flavour::numpy || function.method;
  return function.kind != CallClass::unknown;
}

Ref TensorRecorder::call(PyObject* callable, PyObject* args, PyObject* kwargs) {
  callable = unwrapped_array_method(callable);
  const ForeignFunction& function = foreign_function(callable);
  switch (function.kind) {
    case CallClass::operation:
    case CallClass::same_elements: return record(callable, function, args, kwargs);
    case CallClass::metadata: return answer_metadata(callable, function, args, kwargs);
    case CallClass::data:
      throw GraphBreak(fmt::format("{} needs the elements of a tensor while the program runs", function.name),
                       "keep the decision in the graph: torch.where, or tenon.cond");
    case CallClass::missing:
    case CallClass::creation:
      if (operands_of(args, kwargs).empty() && (function.flavour == ops::Flavour::numpy || function.kind == CallClass::creation))
        return fold(callable, args, kwargs);
      throw GraphBreak(fmt::format("Tenon has no op for {}", function.name));
    case CallClass::unknown: break;
  }
  Ref name = Ref::steal(PyObject_Repr(callable));
  PyErr_Clear();
  throw GraphBreak(fmt::format("a tensor is given to {}, which is not known", name ? PyUnicode_AsUTF8(name.get()) : "a function"));
}

Ref TensorRecorder::answer_metadata(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const std::string_view name = std::string_view(function.name).substr(function.name.rfind('.') + 1);
  const std::vector<Index> operands = operands_of(args, kwargs);
  if (!operands.empty() && function.flavour == ops::Flavour::torch) {
    const StandIn& self = x_stand_ins[operands.front()];
    if (name == "device") return torch_library()->cpu;
    if (name == "is_cpu") return Ref::borrow(Py_True);
    if (name == "is_meta") return Ref::borrow(Py_False);
    if (name == "get_device") return checked(PyLong_FromLong(-1));
    if (name == "requires_grad") return Ref::borrow(self.requires_grad ? Py_True : Py_False);
    if (name == "storage_offset" && self.input) throw GraphBreak("the storage offset of an input");
  }
  Ref twin_args = with_twins(args);
  Ref twin_kwargs = kwargs ? with_twins(kwargs) : Ref();
  Ref answer = checked(PyObject_Call(callable, twin_args.get(), twin_kwargs.get()));
  if (is_tensor(answer.get())) throw GraphBreak(fmt::format("{} gave a tensor where a plain value was expected", function.name));
  return answer;
}

Ref TensorRecorder::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.writes || (kwargs && PyDict_GetItemString(kwargs, "out")))
    throw GraphBreak(fmt::format("{} writes into a tensor", function.name), "use the variant that gives a new tensor");
  const std::vector<Index> operands = operands_of(args, kwargs);
  const bool grad = torch_state().value_or(x_state).grad_enabled();
  for (Index index : operands)
    if (grad && x_stand_ins[index].requires_grad) throw GraphBreak("an operation on a tensor that requires grad, with grad mode on", kGradHint);
  if (operands.empty()) return fold(callable, args, kwargs);
  const std::size_t first_node = x_graph.nodes().size();
  const ops::ForeignResult result = build(function, args, kwargs);
  const bool fresh = strides_are_known(function, result, operands) && !kwargs_name_a_layout(kwargs) &&
                     !(function.flavour == ops::Flavour::numpy ? only_moves_elements(x_graph, first_node) : function.may_alias);
  Ref wrapped = fresh ? wrap_fresh(function, result, operands) : wrap_like_twins(callable, function, result, args, kwargs);
  trace(callable, function, args, kwargs, wrapped, first_node);
  return wrapped;
}

ops::ForeignResult TensorRecorder::build(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.kind == CallClass::same_elements) return {{x_stand_ins[operands_of(args, kwargs).front()].value}, ops::Container::single};
  ops::ForeignCall call = foreign_call(function.name, function.flavour, args, kwargs, [&](PyObject* o) { return value_of(o, function.flavour); });
  if (const TorchLibrary* torch = known_torch_library(); torch && function.flavour == ops::Flavour::torch)
    call.default_float = torch->dtype_of_scalar_type(static_cast<std::uint8_t>(x_state.default_dtype)).value_or(DType::f32);
  auto result = ops::call_foreign_shaped(x_builder, call);
  if (result.ok()) return std::move(*result);
  throw GraphBreak(fmt::format("{}: {}", function.name, result.error().message));
}

bool TensorRecorder::strides_are_known(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands) const {
  if (result.container != ops::Container::single || result.values.size() != 1 || !function.op) return false;
  if (function.op->body || function.ufunc) return true;
  std::size_t rank = 0;
  for (Index index : operands) {
    const StandIn& s = x_stand_ins[index];
    if (function.flavour == ops::Flavour::torch && s.shape.size() < rank) continue;
    rank = s.shape.size();
  }
  // torch folds a product of a vector or matrix with a batch by transposing: the result is then not row-major.
  if (function.flavour == ops::Flavour::torch && x_stand_ins[operands.front()].shape.size() < rank && rank > 2) return false;
  bool row_major = true;
  for (Index index : operands) row_major &= is_row_major(x_stand_ins[index].shape, x_stand_ins[index].strides);
  if (row_major) return true;
  const ir::Value& value = x_graph.value(result.values.front());
  if (function.flavour == ops::Flavour::numpy || value.kind != ir::ValueKind::result) return false;
  auto loop = ops::loop_of(x_graph, value.node);
  return loop && loop->reducer;  // reductions and matrix products of torch are row-major whatever their operands are
}

TensorSpec TensorRecorder::fresh_spec(const ForeignFunction& function, ir::ValueId value, std::span<const Index> operands) const {
  TensorSpec spec;
  const ir::Type& type = x_graph.type(value);
  spec.dtype = type.dtype;
  spec.shape = constant_shape(type);
  std::vector<Operand> shapes;
  bool all_row_major = true, all_scalars = true;
  for (Index index : operands) {
    const StandIn& s = x_stand_ins[index];
    shapes.push_back({s.shape, s.strides});
    all_row_major &= is_row_major(s.shape, s.strides);
    all_scalars &= s.kind == TensorKind::scalar;
  }
  const bool pointwise = function.op->body || function.ufunc;
  spec.strides = row_major(spec.shape);
  if (!all_row_major && pointwise)
    spec.strides = function.flavour == ops::Flavour::torch ? torch_pointwise_strides(spec.shape, shapes) : numpy_pointwise_strides(spec.shape, shapes);
  set_result_type(spec, function, all_scalars);
  return spec;
}

Ref TensorRecorder::wrap_fresh(const ForeignFunction& function, const ops::ForeignResult& result, std::span<const Index> operands) {
  const ir::ValueId value = result.values.front();
  const TensorSpec spec = fresh_spec(function, value, operands);
  return x_stand_ins[add_fresh(spec.kind, value, spec)].object;
}

Ref TensorRecorder::wrap_like_twins(PyObject* callable, const ForeignFunction& function, const ops::ForeignResult& result, PyObject* args,
                                    PyObject* kwargs) {
  Ref twin_args = with_twins(args);
  Ref twin_kwargs = kwargs ? with_twins(kwargs) : Ref();
  Ref answer = call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour);
  std::size_t next = 0;
  auto take = [&](PyObject* twin) {
    if (next == result.values.size()) throw GraphBreak(fmt::format("{} gives more results than its op", function.name));
    return stand_in_for_twin(twin, result.values[next++], function);
  };
  const bool sequence = PyTuple_Check(answer.get()) || PyList_Check(answer.get());
  Ref wrapped = sequence ? rebuilt(answer.get(), take) : take(answer.get());
  if (next != result.values.size()) throw GraphBreak(fmt::format("{} gives fewer results than its op", function.name));
  return wrapped;
}

Ref TensorRecorder::stand_in_for_twin(PyObject* twin, ir::ValueId value, const ForeignFunction& function) {
  if (auto known = x_by_twin.find(twin); known != x_by_twin.end()) return x_stand_ins[known->second].object;
  TensorSpec spec = read_twin(twin);
  const ir::Type& type = x_graph.type(value);
  if (spec.dtype != type.dtype || spec.shape != constant_shape(type))
    throw GraphBreak(fmt::format("{}: the op gives {}[{}], the library {}", function.name, name_of(type.dtype), fmt::join(constant_shape(type), ", "),
                                 spec.describe()));
  const TwinPlace place = place_of_twin(twin);
  for (std::uint32_t storage = 0; storage < x_storages.size() && spec.kind != TensorKind::scalar; ++storage) {
    if (x_storages[storage].address != place.storage || x_stand_ins[x_storages[storage].first].kind == TensorKind::scalar) continue;
    StandIn view;
    view.kind = spec.kind;
    view.value = value;
    view.dtype = spec.dtype;
    view.shape = spec.shape;
    view.strides = spec.strides;
    view.writeable = spec.writeable;
    view.type = spec.type;
    view.storage = storage;
    view.offset = place.offset - x_storages[storage].first_offset;
    view.twin = Ref::borrow(twin);
    return x_stand_ins[add(std::move(view))].object;
  }
  const Index index = add_fresh(spec.kind, value, spec);
  if (spec.kind != TensorKind::scalar) {
    x_stand_ins[index].twin = Ref::borrow(twin);
    x_by_twin.emplace(twin, index);
    x_storages[x_stand_ins[index].storage].address = place.storage;
    x_storages[x_stand_ins[index].storage].first_offset = place.offset;
  }
  return x_stand_ins[index].object;
}

// ---- constants

Ref TensorRecorder::fold(PyObject* callable, PyObject* args, PyObject* kwargs) {
  const ForeignFunction& function = foreign_function(callable);
  if (function.op && function.op->traits.random) throw GraphBreak(fmt::format("{} takes random numbers", function.name));
  Ref made = checked(PyObject_Call(callable, args, kwargs));
  if (PyTuple_Check(made.get()) || PyList_Check(made.get())) return rebuilt(made.get(), [&](PyObject* item) { return is_tensor(item) ? constant(item) : Ref::borrow(item); });
  return is_tensor(made.get()) ? constant(made.get()) : made;
}

Ref TensorRecorder::constant(PyObject* array) {
  auto read = read_spec(array);
  if (const auto* odd = std::get_if<std::string>(&read)) throw GraphBreak("the program makes " + *odd);
  TensorSpec spec = std::get<TensorSpec>(read);
  if (spec.requires_grad) throw GraphBreak("the program makes a tensor that requires grad", kGradHint);
  auto bytes = row_major_bytes(spec, array);
  if (bytes->size() > kLargestConstant) throw GraphBreak("the program makes a large array in a way that is no op of Tenon");
  ir::Constant constant;
  constant.type = ir::Type::tensor(spec.dtype, ir::Shape(spec.shape.begin(), spec.shape.end()));
  constant.data = bytes->data();
  constant.owner = bytes;
  const ir::Type type = constant.type;
  const ConstantId id = x_graph.add_constant(std::move(constant));
  const NodeId node = x_graph.add_node("constant", {}, {{"index", ir::Dim(id.value)}}, {type});
  const TensorSpec made = spec;
  const Index index = add_fresh(spec.kind, x_graph.node(node).results.front(), made);
  TracedCall call;
  call.callable = copying_function(spec.kind);
  call.args = checked(PyTuple_Pack(1, array));
  call.result = x_stand_ins[index].object;
  x_trace.calls.push_back(std::move(call));
  x_op_names.push_back(spec.kind == TensorKind::torch ? "torch.clone" : "numpy.copy");
  return x_stand_ins[index].object;
}

std::optional<ir::ValueId> TensorRecorder::value_of(PyObject* object, ops::Flavour flavour) {
  if (auto index = find(object)) {
    const StandIn& s = x_stand_ins[*index];
    if ((s.kind == TensorKind::torch) != (flavour == ops::Flavour::torch)) throw GraphBreak("a torch tensor and a NumPy array in one operation");
    return s.value;
  }
  if (PyArray_CheckScalar(object)) {
    auto read = read_spec(object);
    if (const auto* odd = std::get_if<std::string>(&read)) throw GraphBreak(*odd);
    const TensorSpec& spec = std::get<TensorSpec>(read);
    alignas(16) unsigned char scratch[16];
    data_of(spec, object, scratch);
    if (flavour == ops::Flavour::torch) return x_builder.literal(literal_of(spec.dtype, scratch));
    ir::ValueId literal = x_builder.literal(literal_of(spec.dtype, scratch));
    return x_builder.one("full", {literal}, {{"size", ir::Shape{}}, {"dtype", spec.dtype}});
  }
  if (is_tensor(object)) throw GraphBreak("a tensor or array of unknown origin in an operation");
  return std::nullopt;
}

// ---- bookkeeping

void TensorRecorder::collect(PyObject* object, std::vector<Index>& found) const {
  if (auto index = find(object)) {
    found.push_back(*index);
  } else if (PyTuple_Check(object) || PyList_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) collect(PySequence_Fast_GET_ITEM(object, i), found);
  } else if (PyDict_CheckExact(object)) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) collect(value, found);
  }
}

std::vector<TensorRecorder::Index> TensorRecorder::operands_of(PyObject* args, PyObject* kwargs) const {
  std::vector<Index> found;
  collect(args, found);
  if (kwargs) collect(kwargs, found);
  return found;
}

void TensorRecorder::trace(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const Ref& result,
                           std::size_t first_node) {
  x_op_names.push_back(function.name);
  TracedCall call;
  call.callable = Ref::borrow(callable);
  call.args = Ref::borrow(args);
  call.kwargs = Ref::borrow(kwargs);
  call.result = result;
  x_trace.calls.push_back(std::move(call));
  x_places.push_back({Ref::borrow(reinterpret_cast<PyObject*>(position.code)), position.byte_offset, first_node, x_graph.nodes().size(), x_trace.calls.size() - 1});
  name_results(x_graph, first_node, function.name);
}

// ---- ending

std::uint32_t TensorRecorder::output(PyObject* stand_in) {
  const Index index = require(stand_in);
  for (std::uint32_t i = 0; i < x_outputs.size(); ++i)
    if (x_outputs[i] == index) return i;
  x_outputs.push_back(index);
  return static_cast<std::uint32_t>(x_outputs.size() - 1);
}

std::uint32_t TensorRecorder::fresh_output(Index index, CapturedGraph& captured) {
  if (auto made = x_made.find(index); made != x_made.end()) return made->second;
  const StandIn& s = x_stand_ins[index];
  TensorOutput output;
  output.kind = TensorOutput::Kind::fresh;
  output.tensor = s.kind;
  output.index = static_cast<std::uint32_t>(x_graph.outputs().size());
  output.dtype = s.dtype;
  output.shape = s.shape;
  output.strides = s.strides;
  x_graph.add_output({s.value, ir::OutputKind::result, {}});
  x_trace.outputs.push_back(s.object);
  captured.tensors.push_back(std::move(output));
  const auto slot = static_cast<std::uint32_t>(captured.tensors.size() - 1);
  x_made.emplace(index, slot);
  return slot;
}

std::uint32_t TensorRecorder::tensor_output(Index index, CapturedGraph& captured) {
  const StandIn& s = x_stand_ins[index];
  const Index first = x_storages[s.storage].first;
  const StandIn& base = x_stand_ins[first];
  if (first == index && !s.input) {
    if (memory_order(s.shape, s.strides).empty() && !s.shape.empty() && !is_row_major(s.shape, s.strides)) throw GraphBreak("a result whose strides leave gaps");
    return fresh_output(index, captured);
  }
  if (auto made = x_made.find(index); made != x_made.end()) return made->second;
  TensorOutput output;
  output.tensor = s.kind;
  output.dtype = s.dtype;
  output.shape = s.shape;
  output.strides = s.strides;
  output.offset = s.offset;
  output.writeable = s.writeable;
  output.kind = base.input ? TensorOutput::Kind::input_view : TensorOutput::Kind::fresh_view;
  output.index = base.input ? *base.input : fresh_output(first, captured);
  captured.tensors.push_back(std::move(output));
  const auto slot = static_cast<std::uint32_t>(captured.tensors.size() - 1);
  x_made.emplace(index, slot);
  return slot;
}

void TensorRecorder::resolve_places() {
  for (const Place& place : x_places) {
    if (!place.code) continue;
    const ir::Location location = source_location(reinterpret_cast<PyCodeObject*>(place.code.get()), place.byte_offset);
    for (std::size_t i = place.first_node; i < place.last_node; ++i) x_graph.mutable_node(x_graph.nodes()[i]).location = location;
    x_trace.calls[place.call].location = location;
  }
}

CapturedGraph TensorRecorder::finish() {
  resolve_places();
  CapturedGraph captured;
  for (Index index : x_outputs) captured.outputs.push_back(tensor_output(index, captured));
  for (Index index : x_inputs) x_trace.inputs.push_back(x_stand_ins[index].object);
  for (const StandIn& s : x_stand_ins) x_trace.types[s.object.get()] = ir::print_type(x_graph, x_graph.type(s.value));
  captured.inputs = std::move(x_input_specs);
  captured.graph = std::move(x_graph);
  captured.trace = std::move(x_trace);
  captured.op_names = std::move(x_op_names);
  return captured;
}

}  // namespace tenon::python
