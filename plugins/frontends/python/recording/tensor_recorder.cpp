#include "python/recording/tensor_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "python/evaluator/builtins.h"
#include "python/foreign/foreign_arguments.h"
#include "python/foreign/opaque_purity.h"
#include "python/heap/type_traits.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_device.h"
#include "python/library/torch_library.h"
#include "python/objects/imported.h"
#include "python/objects/sequences.h"
#include "python/opaque/quiet_calls.h"
#include "python/recording/memory/device_results.h"
#include "python/recording/recorded_lists.h"
#include "python/stand_ins/late_text.h"
#include "python/stand_ins/torch_stand_in.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {

TensorRecorder::TensorRecorder(const TorchState& state, Numbers numbers, TensorPlaces::Allowed places, bool freeze, bool gradients, bool functions_may_leave)
    : core_(state, numbers, places), inputs_(core_, freeze), history_(core_, inputs_, gradients, functions_may_leave) {
  core_.symbols.record_floats_by([](FloatTape::Op op, PyObject* a, PyObject* b) { return StandInUses::active().float_arithmetic(op, a, b); });
}

// ---- objects

Recorder::Role TensorRecorder::role(PyTypeObject* type) {
  if (type == array_stand_in_type()) return Role::stand_in;
  if (type == symbolic_int_type() || type == symbolic_scalar_type() || type == late_text_type()) return Role::number;
  if (PyType_IsSubtype(type, &PyArray_Type)) return Role::tensor;
  if (PyType_IsSubtype(type, &PyGenericArrType_Type)) {
    const bool number = PyType_IsSubtype(type, &PyNumberArrType_Type) || type == &PyBoolArrType_Type;
    return number ? Role::scalar : Role::other;
  }
  const TorchLibrary* torch = torch_library();
  if (!torch || !PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(torch->tensor.get()))) return Role::other;
  return reinterpret_cast<PyObject*>(type) == torch->stand_in.get() ? Role::stand_in : Role::tensor;
}

PyTypeObject* TensorRecorder::apparent_type(PyObject* stand_in) {
  PyTypeObject* number = type_of_number(stand_in);
  return number ? number : core_.stand_ins[core_.stand_ins.require(stand_in)].type;
}

bool TensorRecorder::is_one_object_a_value(PyTypeObject* type) const { return type == &PyBoolArrType_Type; }

SourceId TensorRecorder::input_source(PyObject* stand_in) {
  if (is_symbolic_int(stand_in)) return {};
  if (is_late_text(stand_in)) return late_text_of(stand_in).source;
  if (is_symbolic_scalar(stand_in)) return floats_.source_of(stand_in);
  return core_.stand_ins[core_.stand_ins.require(stand_in)].source;
}

// ---- calls

namespace {

/// Whether a function that torch writes in Python may warn: it is looked into, so that the warning is issued as the program's own.
bool issues_warnings(PyObject* callable) {
  if (!PyFunction_Check(callable)) return false;
  PyObject* names = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callable))->co_names;
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(names); ++at)
    for (const char* name : {"warnings", "_get_softmax_dim"})
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, at), name) == 0) return true;
  return false;
}

}  // namespace

std::span<PyObject* const> TensorRecorder::hooks() const {
  static const std::vector<PyObject*> all = [] {
    std::vector<PyObject*> made;
    for (const char* name : {"__torch_function__", "__array_function__", "__array_ufunc__", "__array__", "__array_interface__", "__array_struct__", "__dlpack__",
                             "__len__", "__getitem__", "__iter__", "__bool__", "__index__", "__int__", "__float__", "__complex__", "__getattr__", "__getattribute__"})
      made.push_back(checked(PyUnicode_InternFromString(name)).release());
    return made;
  }();
  return all;
}

bool TensorRecorder::is_own(PyObject* found) { return is_of_library(found); }

bool TensorRecorder::is_own_class(PyObject* type) {
  Ref module = Ref::steal(PyObject_GetAttrString(type, "__module__"));
  PyErr_Clear();
  const char* text = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : "";
  const std::string_view name = text ? text : "";
  return name.starts_with("torch") || name.starts_with("numpy");
}

bool TensorRecorder::takes(PyObject* callable) {
  const ForeignFunction& function = foreign_function(callable);
  // A function of torch without an op may be one that the evaluator knows (torch.is_grad_enabled).
  if (function.operator_object || function.in_graph) return true;
  if (issues_warnings(callable) && !function.has(Trait::warns_of_swapped_arguments)) return false;
  // What torch writes in Python is looked into: it is made of functions that torch has as ops.
  if (function.kind == CallClass::missing) {
    if (function.flavour == ops::Flavour::numpy) return true;
    return !PyFunction_Check(callable) && (function.method || purity_of(callable, function).known);
  }
  return function.kind != CallClass::unknown;
}

namespace {

bool asks_for_grad(PyObject* kwargs) {
  PyObject* flag = kwargs ? PyDict_GetItemString(kwargs, "requires_grad") : nullptr;
  return flag && flag != Py_False && flag != Py_None;
}

}  // namespace

/// Functions of NumPy that give their arguments as they are, or views of them, as it comes; methods of torch that lead to its autograd engine.
PyObject* TensorRecorder::written_in_python(PyObject* callable) {
  if (PyFunction_Check(callable) && foreign_function(callable).has(Trait::evaluated)) return callable;
  if (std::strcmp(Py_TYPE(callable)->tp_name, "numpy._ArrayFunctionDispatcher") != 0) return nullptr;
  if (!foreign_function(callable).has(Trait::gives_arguments)) return nullptr;
  Ref function = Ref::steal(PyObject_GetAttrString(callable, "_implementation"));
  PyErr_Clear();
  return function && PyFunction_Check(function.get()) ? function.get() : nullptr;  // which the callable keeps
}

namespace {

/// Whether a tensor begins where memory does that is allocated for it, or given: torch's kernels take vectors there, and draw in their order.
bool is_whole(const RecordedGraph& core, StandIns::Index index) {
  const auto count = [](const StandIn& s) { return std::accumulate(s.shape.begin(), s.shape.end(), std::int64_t{1}, std::multiplies()); };
  const StandIns::Index owner = core.stand_ins.owner(index);
  return index == owner || (core.stand_ins[index].offset == 0 && count(core.stand_ins[index]) == count(core.stand_ins[owner]));
}

}  // namespace

/// The function of package/tenon/_philox.py for the device that a call names or has its tensors on; empty where there is none.
Ref TensorRecorder::drawing(const ForeignFunction& function, std::span<const Ref> arguments) {
  const TorchLibrary& torch = *known_torch_library();
  ir::Device device;
  for (const Ref& argument : arguments) {
    if (const auto index = core_.stand_ins.find(argument.get())) {
      device = core_.stand_ins[*index].device;
      if (!is_whole(core_, *index)) return {};
    } else if (PyUnicode_Check(argument.get()) || std::strcmp(Py_TYPE(argument.get())->tp_name, "torch.device") == 0) {
      require_one_device(torch, argument.get());
      device = device_meant_by(torch, argument.get());
      if (!device.is_host()) break;
    }
  }
  if (device.is_host()) return {};
  core_.places.require_served(device);
  Ref found = checked(PyObject_CallMethod(checked(imported("tenon._philox")).get(), "function_on", "Os", torch_device_object(torch, device), std::string(function.last_word()).c_str()));
  return found.is(Py_None) ? Ref() : std::move(found);
}

/// Whether torch would record a call of real numbers with these arguments.
bool TensorRecorder::tracks_reals(std::span<const Ref> arguments) const {
  std::vector<StandIns::Index> operands;
  const auto note = [&](PyObject* object) {
    if (const auto index = core_.stand_ins.find(object)) operands.push_back(*index);
  };
  bool parameters = false;  // in a list that nothing was read of yet
  for (const Ref& argument : arguments) {
    note(argument.get());
    if (!PyTuple_Check(argument.get()) && !PyList_Check(argument.get())) continue;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(argument.get()); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(argument.get(), i);
      note(item);
      parameters |= known_torch_library()->is_tensor(item) && !is_torch_stand_in(item) && checked(PyObject_GetAttrString(item, "requires_grad")).is(Py_True);
    }
  }
  const auto is_followed = [&](StandIns::Index index) { return !is_complex(core_.stand_ins[index].dtype); };
  const bool tracks = history_.tracks(operands) || (parameters && torch_state().value_or(core_.state).grad_enabled());
  return tracks && std::ranges::all_of(operands, is_followed);
}

Ref TensorRecorder::differentiable(PyObject* callable, std::span<const Ref> arguments) {
  const ForeignFunction& function = foreign_function(callable);
  if (function.has(Trait::retains_gradient) && !arguments.empty() && history_.wanted() && history_.has_node(arguments.front().get()))
    return checked(PyObject_GetAttrString(checked(imported("tenon._hooks")).get(), "retain_grad"));
  if (function.has(Trait::draws_by_kernels))
    if (Ref found = drawing(function, arguments)) return found;
  if (function.operator_object && function.kind == CallClass::missing && tracks_reals(arguments)) {
    Ref found = checked(PyObject_CallMethod(checked(imported("tenon._custom_operators")).get(), "function_of", "O", callable));
    return found.is(Py_None) ? Ref() : std::move(found);
  }
  const bool by_places = function.has(Trait::by_places) && !function.operator_object;  // no op is known by that name
  if (!by_places && (!function.has(Trait::has_gradient_in_python) || !tracks_reals(arguments))) return {};
  return checked(PyObject_GetAttrString(checked(imported("tenon._differentiable")).get(), std::string(function.last_word()).c_str()));
}

Ref TensorRecorder::differentiable_by_library(PyObject* callable, std::span<const Ref> arguments, bool tried) {
  const ForeignFunction& function = foreign_function(callable);
  const bool in_c = PyCFunction_Check(callable) || Py_TYPE(callable) == &PyMethodDescr_Type || function.operator_object;
  if ((!tried && function.kind != CallClass::missing) || function.flavour != ops::Flavour::torch || !in_c || function.writes || function.reshapes) return {};
  if (core_.in_branch() || torch_state().value_or(core_.state).autocast() || !tracks_reals(arguments)) return {};
  const Purity& purity = purity_of(callable, function);
  if (!purity.known || purity.writes || purity.writes_several || purity.undeclared || (purity.random && !tried)) return {};
  return checked(PyObject_GetAttrString(checked(imported("tenon._torch_gradients")).get(), "call"));
}

Ref TensorRecorder::outlook_on(PyObject* callable, PyObject* args, PyObject* kwargs) {
  return OpaqueTwins(core_, known_).outlook(callable, core_.stand_ins.among(args, kwargs), args, kwargs);
}

Recorder::Pieces TensorRecorder::pieces_of(PyObject* callable) {
  const ForeignFunction& function = foreign_function(callable);
  return function.has(Trait::takes_apart_by_dimension) ? Pieces::by_dimension
         : function.has(Trait::takes_apart_by_size)    ? Pieces::by_size
         : function.has(Trait::takes_apart_by_count)   ? Pieces::by_count
                                                       : Pieces::none;
}

Ref TensorRecorder::number_of_scalar(PyObject* object) {
  const auto index = core_.stand_ins.find(object);
  if (!index || core_.stand_ins[*index].kind != TensorKind::scalar) return {};
  const DType dtype = core_.stand_ins[*index].dtype;
  return is_float(dtype) || is_int(dtype) ? number_of(object, is_float(dtype) ? &PyFloat_Type : &PyLong_Type) : Ref();
}

/// A call of torch's, which takes a scalar of NumPy for Python's number; as an item those alone that are one (float64). Nothing where there is none.
Ref TensorRecorder::call_with_numbers(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  bool any = false;
  const auto number = [&](PyObject* item) {
    const auto index = core_.stand_ins.find(item);
    if (!index || (function.has(Trait::subscripts) && core_.stand_ins[*index].dtype != DType::f64)) return Ref();
    Ref found = number_of_scalar(item);
    any |= static_cast<bool>(found);
    return found;
  };
  const auto is_scalar = [&](StandIns::Index index) { return core_.stand_ins[index].kind == TensorKind::scalar; };
  if (std::ranges::none_of(core_.stand_ins.among(args, kwargs), is_scalar)) return {};
  Ref numbers = with_replaced(args, number), named = kwargs ? with_replaced(kwargs, number) : Ref();
  return any ? call(callable, numbers.get(), named.get()) : Ref();
}

Ref TensorRecorder::call_operator(PyObject* ufunc, PyObject* args) {
  bool integers = true;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* operand = PyTuple_GET_ITEM(args, i);
    const auto index = core_.stand_ins.find(operand);
    integers &= index ? core_.stand_ins[*index].kind == TensorKind::scalar && is_int(core_.stand_ins[*index].dtype) : PyLong_Check(operand) || is_symbolic_int(operand) || PyArray_IsScalar(operand, Integer);
  }
  if (!integers) return call(ufunc, args, nullptr);
  const ErrorHandlings::OnScalars scope(core_.error_handlings, core_.graph);
  return call(ufunc, args, nullptr);
}

Ref TensorRecorder::call(PyObject* callable, PyObject* args, PyObject* kwargs) {
  callable = unwrapped_array_method(callable);
  const ForeignFunction& function = foreign_function(callable);
  const Symbols::CallScope scope(core_.symbols, function.name);
  Ref indexed;
  if (function.flavour == ops::Flavour::numpy && function.has(Trait::subscripts)) {
    args = (indexed = known_.with_indices(args)).get();
    if (Ref known = known_elements_.with_integers(args)) args = (indexed = std::move(known)).get();
    if (function.has(Trait::chosen_by_index) && PyTuple_GET_SIZE(args) == 2)
      if (Ref item = constants_.item(args)) return item;
  }
  if (function.flavour == ops::Flavour::numpy && function.op && function.op->traits.creates)
    if (Ref known = known_elements_.with_integers(args)) args = (indexed = std::move(known)).get();
  if (index_modes_ > 0 && function.has(Trait::chosen_by_index))
    if (Ref found = at_index_tensors(args)) return found;
  if (function.flavour == ops::Flavour::torch && function.has(Trait::subscripts))
    if ((indexed = known_.with_integers(args, true))) args = indexed.get();
  if (core_.symbols.any_data() && function.kind != CallClass::metadata) late_sizes_.refuse(function, core_.stand_ins.among(args, kwargs));
  if (function.has(Trait::crosses))
    if (std::optional<Ref> result = crossings_.record(callable, function, args, kwargs)) return std::move(*result);
  if (function.flavour == ops::Flavour::torch && !function.has(Trait::crosses))
    if (Ref result = call_with_numbers(callable, function, args, kwargs)) return result;
  if (std::optional<Ref> result = record_transfer(core_, *this, function, args, kwargs)) return std::move(*result);
  if (std::optional<Ref> result = record_each(core_, *this, function, args, kwargs)) return std::move(*result);
  if (function.has(Trait::minds_determinism) && core_.state.deterministic) throw GraphBreak(fmt::format("{} under torch.use_deterministic_algorithms", function.name));
  if (function.has(Trait::minds_layout))
    for (StandIns::Index operand : core_.stand_ins.among(args, kwargs))
      if (!is_row_major(core_.stand_ins[operand].shape, core_.stand_ins[operand].strides)) throw GraphBreak(fmt::format("{} of a tensor that is not contiguous, of which torch warns", function.name));
  if (function.flavour == ops::Flavour::torch && asks_for_grad(kwargs)) return leaf(callable, args, kwargs);
  if (function.has(Trait::asks_for_sharing))
    if (std::optional<Ref> answer = metadata_.answer_sharing(args, kwargs)) return std::move(*answer);
  switch (function.kind) {
    case CallClass::operation:
    case CallClass::same_elements: return calls_.record(callable, function, args, kwargs);
    case CallClass::metadata: return metadata_.answer(callable, function, args, kwargs);
    case CallClass::data:
      require_no_example();
      if (std::optional<Ref> answer = known_.answer(callable, function, args, kwargs)) return std::move(*answer);
      if (function.has(Trait::gives_number) && PyTuple_GET_SIZE(args) == 1 && core_.stand_ins.find(PyTuple_GET_ITEM(args, 0)))
        if (Ref number = element_numbers_.number(PyTuple_GET_ITEM(args, 0), nullptr)) return number;
      throw ElementsNeeded(fmt::format("{} needs the elements of a tensor while the program runs", function.name),
                           kTensorHint);
    case CallClass::missing:
    case CallClass::creation:
      if (core_.stand_ins.among(args, kwargs).empty() && (function.flavour == ops::Flavour::numpy || function.kind == CallClass::creation))
        return constants_.fold(callable, args, kwargs);
      return calls_.record(callable, function, args, kwargs);
    case CallClass::unknown:
      if (is_function_of_floats(callable)) return scalar_functions_.call(callable, args);
      break;
  }
  Ref name = Ref::steal(PyObject_Repr(callable));
  PyErr_Clear();
  throw GraphBreak(fmt::format("a tensor is given to {}, which is not known", name ? PyUnicode_AsUTF8(name.get()) : "a function"), advice_on(callable));
}

/// What TransformGetItemToIndex makes of a subscript by tensors alone. Nothing for another one.
Ref TensorRecorder::at_index_tensors(PyObject* args) {
  PyObject* subscript = PyTuple_GET_ITEM(args, 1);
  Ref items = PyTuple_CheckExact(subscript) ? checked(PySequence_List(subscript)) : list_of({Ref::borrow(subscript)});
  const auto is_tensor = [&](PyObject* item) { return core_.stand_ins.find(item).has_value(); };
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(items.get()); ++at) {
    PyObject* item = PyList_GET_ITEM(items.get(), at);
    if (PyLong_Check(item) || is_symbolic_int(item) || PyTuple_Check(item) || PyList_Check(item)) throw GraphBreak("a subscript under TransformGetItemToIndex by numbers or lists");
    if (!is_tensor(item)) return {};
  }
  Ref function = known_torch_library()->module;
  for (const char* name : {"ops", "aten", "index", "Tensor"}) function = checked(PyObject_GetAttrString(function.get(), name));
  Ref given = checked(PyTuple_Pack(2, PyTuple_GET_ITEM(args, 0), items.get()));
  return call(function.get(), given.get(), nullptr);
}

/// A call that is to make a leaf of torch's autograd graph.
Ref TensorRecorder::leaf(PyObject* callable, PyObject* args, PyObject* kwargs) {
  Ref others = checked(PyDict_Copy(kwargs));
  checked(PyDict_DelItemString(others.get(), "requires_grad"));
  Ref made = call(callable, args, others.get());
  const auto index = core_.stand_ins.find(made.get());
  if (!index) throw GraphBreak("the program makes a tensor that requires grad", kGradHint);
  history_.ask_for_gradient(*index, true);
  return made;
}

std::vector<Recorder::AskedInput> TensorRecorder::asked_inputs() const {
  std::vector<AskedInput> asked;
  for (StandIns::Index index : history_.asked_inputs()) {
    const StandIn& s = core_.stand_ins[index];
    asked.push_back({s.object.get(), inputs_.spec(*s.input).requires_grad, s.requires_grad});
  }
  return asked;
}

Ref TensorRecorder::constant_operator(binaryfunc operation, PyObject* left, PyObject* right) {
  const auto call = [&] { return checked(operation(left, right)); };
  return is_scalar_of_numpy(left) || is_scalar_of_numpy(right) ? call_for_good(call, core_.error_handlings.now()) : call();
}

void TensorRecorder::enter_error_state(PyObject* modes) {
  if (core_.in_branch()) throw GraphBreak("np.errstate in a branch of a control op", kErrstateHint);
  core_.error_handlings.enter(core_.graph, modes);
}

Recorder::Deeds TensorRecorder::deeds_since(const Progress& place, std::span<PyObject* const> given) const {
  Deeds deeds;
  std::vector<StandIns::Index> memory;
  for (StandIns::Index index : core_.stand_ins.require(given)) memory.push_back(core_.stand_ins.owner(index));
  const auto written = core_.stand_ins.written();
  for (std::size_t at = place.writes; at < written.size(); ++at) {
    if (written[at] >= place.tensors && !core_.stand_ins[written[at]].input) continue;
    deeds.writes = true;
    deeds.writes_given |= std::ranges::find(memory, written[at]) != memory.end();
    deeds.kept_since = history_.writes_before_kept() > at;
  }
  deeds.draws = core_.draws.size() > place.draws;
  deeds.functions = history_.function_count() > place.functions;
  deeds.draws_of_another_library = !core_.draws.all_of_torch(place.draws);
  return deeds;
}

}  // namespace tenon::python
