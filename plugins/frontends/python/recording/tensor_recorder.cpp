#include "python/recording/tensor_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "python/foreign/foreign_arguments.h"
#include "python/foreign/opaque_purity.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/opaque/call_results.h"
#include "python/stand_ins/array_stand_in.h"
#include "python/stand_ins/late_text.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

bool is_tensor(PyObject* object) {
  const TorchLibrary* torch = known_torch_library();
  return PyArray_Check(object) || (torch && torch->is_tensor(object));
}

}  // namespace

TensorRecorder::TensorRecorder(const TorchState& state, RecordedGraph::Numbers numbers, bool freeze)
    : core_(state, numbers), inputs_(core_, freeze), known_(core_), trace_(core_, known_, position), assumptions_(core_, truth_to_come) {
  symbols_.record_floats_by([](FloatTape::Op op, PyObject* a, PyObject* b) { return StandInUses::active().float_arithmetic(op, a, b); });
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
  if (is_late_text(stand_in)) return late_text_of(stand_in).type;
  if (is_symbolic_scalar(stand_in)) return scalar_of(stand_in).integral ? &PyLong_Type : &PyFloat_Type;
  return is_symbolic_int(stand_in) ? &PyLong_Type : stand_ins_[stand_ins_.require(stand_in)].type;
}

bool TensorRecorder::is_one_object_a_value(PyTypeObject* type) const { return type == &PyBoolArrType_Type; }

SourceId TensorRecorder::input_source(PyObject* stand_in) {
  if (is_symbolic_int(stand_in)) return {};
  if (is_late_text(stand_in)) return late_text_of(stand_in).source;
  if (is_symbolic_scalar(stand_in)) {
    for (const auto& [source, scalar] : floats_)
      if (scalar.is(stand_in)) return SourceId{source};
    return {};
  }
  return stand_ins_[stand_ins_.require(stand_in)].source;
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

/// Functions of NumPy that give their arguments as they are, or views of them, as it comes.
PyObject* TensorRecorder::written_in_python(PyObject* callable) {
  if (std::strcmp(Py_TYPE(callable)->tp_name, "numpy._ArrayFunctionDispatcher") != 0) return nullptr;
  if (!foreign_function(callable).has(Trait::gives_arguments)) return nullptr;
  Ref function = Ref::steal(PyObject_GetAttrString(callable, "_implementation"));
  PyErr_Clear();
  return function && PyFunction_Check(function.get()) ? function.get() : nullptr;  // which the callable keeps
}

Recorder::Pieces TensorRecorder::pieces_of(PyObject* callable) {
  const ForeignFunction& function = foreign_function(callable);
  return function.has(Trait::takes_apart_by_dimension) ? Pieces::by_dimension
         : function.has(Trait::takes_apart_by_size)    ? Pieces::by_size
         : function.has(Trait::takes_apart_by_count)   ? Pieces::by_count
                                                       : Pieces::none;
}

/// The item of a constant that nothing wrote, at an index that is known: a constant, too. Nothing for an array, which shows its memory.
Ref TensorRecorder::item_of_constant(PyObject* args) {
  const auto index = stand_ins_.find(PyTuple_GET_ITEM(args, 0));
  PyObject* key = PyTuple_GET_ITEM(args, 1);
  if (!index || !stand_ins_[*index].constant || stand_ins_.storage_of(*index).version != 0) return {};
  if (!stand_ins_.among(key, nullptr).empty() || !(PyLong_CheckExact(key) || PyTuple_CheckExact(key))) return {};
  Ref item = Ref::steal(PyObject_GetItem(stand_ins_[*index].constant.get(), key));
  if (!item) PyErr_Clear();
  return item && PyArray_IsScalar(item.get(), Generic) ? constant(item.get()) : Ref();
}

Ref TensorRecorder::call(PyObject* callable, PyObject* args, PyObject* kwargs) {
  callable = unwrapped_array_method(callable);
  const ForeignFunction& function = foreign_function(callable);
  Ref indexed;
  if (function.flavour == ops::Flavour::numpy && function.has(Trait::subscripts)) {
    args = (indexed = known_.with_indices(args)).get();
    if (function.has(Trait::chosen_by_index) && PyTuple_GET_SIZE(args) == 2)
      if (Ref item = item_of_constant(args)) return item;
  }
  if (function.flavour == ops::Flavour::torch && function.has(Trait::subscripts))
    if ((indexed = known_.with_integers(args, true))) args = indexed.get();
  if (symbols_.any_data() && function.kind != CallClass::metadata) refuse_late(function, stand_ins_.among(args, kwargs));
  if (function.has(Trait::crosses))
    if (std::optional<Ref> result = record_crossing(callable, function, args, kwargs)) return std::move(*result);
  if (std::optional<Ref> result = record_each(function, args, kwargs)) return std::move(*result);
  if (function.has(Trait::minds_determinism) && core_.state.deterministic) throw GraphBreak(fmt::format("{} under torch.use_deterministic_algorithms", function.name));
  if (function.has(Trait::minds_layout))
    for (Index operand : stand_ins_.among(args, kwargs))
      if (!is_row_major(stand_ins_[operand].shape, stand_ins_[operand].strides)) throw GraphBreak(fmt::format("{} of a tensor that is not contiguous, of which torch warns", function.name));
  if (function.flavour == ops::Flavour::torch && asks_for_grad(kwargs)) throw GraphBreak("the program makes a tensor that requires grad", kGradHint);
  if (function.has(Trait::asks_for_sharing))
    if (std::optional<Ref> answer = answer_sharing(args, kwargs)) return std::move(*answer);
  switch (function.kind) {
    case CallClass::operation:
    case CallClass::same_elements: return record_with_numbers(callable, function, args, kwargs);
    case CallClass::metadata: return answer_metadata(callable, function, args, kwargs);
    case CallClass::data:
      if (std::optional<Ref> answer = known_.answer(callable, function, args, kwargs)) return std::move(*answer);
      if (function.has(Trait::gives_number) && PyTuple_GET_SIZE(args) == 1 && stand_ins_.find(PyTuple_GET_ITEM(args, 0)))
        if (Ref number = number_of(PyTuple_GET_ITEM(args, 0), nullptr)) return number;
      throw GraphBreak(fmt::format("{} needs the elements of a tensor while the program runs", function.name),
                       "keep the decision in the graph: torch.where, or tenon.cond");
    case CallClass::missing:
    case CallClass::creation:
      if (stand_ins_.among(args, kwargs).empty() && (function.flavour == ops::Flavour::numpy || function.kind == CallClass::creation))
        return fold(callable, args, kwargs);
      return record_with_numbers(callable, function, args, kwargs);
    case CallClass::unknown:
      if (is_function_of_floats(callable)) return scalar_function(callable, args);
      break;
  }
  Ref name = Ref::steal(PyObject_Repr(callable));
  PyErr_Clear();
  throw GraphBreak(fmt::format("a tensor is given to {}, which is not known", name ? PyUnicode_AsUTF8(name.get()) : "a function"));
}

/// Whether two arrays may share memory, where that follows from how they were made: one and the same, or one made by the program.
std::optional<Ref> TensorRecorder::answer_sharing(PyObject* args, PyObject* kwargs) {
  if (kwargs != nullptr || PyTuple_GET_SIZE(args) != 2) return std::nullopt;
  const auto a = stand_ins_.find(PyTuple_GET_ITEM(args, 0)), b = stand_ins_.find(PyTuple_GET_ITEM(args, 1));
  if (!a || !b) return std::nullopt;
  const auto is_empty = [&](Index index) { return std::ranges::find(stand_ins_[index].shape, 0) != stand_ins_[index].shape.end(); };
  if (is_empty(*a) || is_empty(*b) || core_.is_late(stand_ins_[*a].value) || core_.is_late(stand_ins_[*b].value)) return std::nullopt;
  if (*a == *b) return Ref::borrow(Py_True);
  const auto is_input = [&](Index index) { return stand_ins_[stand_ins_.owner(index)].input.has_value() || stand_ins_.is_reinterpreted(index); };
  if (stand_ins_.memory_of(*a) == stand_ins_.memory_of(*b) || (is_input(*a) && is_input(*b))) return std::nullopt;
  return Ref::borrow(Py_False);
}

Ref TensorRecorder::answer_metadata(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const std::string_view name = function.last_word();
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  if (!operands.empty() && function.flavour == ops::Flavour::torch) {
    const StandIn& self = stand_ins_[operands.front()];
    if (name == "device") return torch_library()->cpu;
    if (name == "is_cpu") return Ref::borrow(Py_True);
    if (name == "is_meta") return Ref::borrow(Py_False);
    if (name == "get_device") return checked(PyLong_FromLong(-1));
    if (name == "is_inference") return Ref::borrow(core_.is_inference(operands.front()) ? Py_True : Py_False);
    if (name == "requires_grad") return Ref::borrow(self.requires_grad ? Py_True : Py_False);
    if (name == "storage_offset" && self.input) throw GraphBreak("the storage offset of an input");
    if (name == "storage_offset" && core_.in_late_memory(operands.front())) refuse_late({{stand_ins_.owner(operands.front())}});
    if (name == "is_leaf" && self.requires_grad) throw GraphBreak("whether a tensor that requires grad is a leaf");
  }
  const bool same_for_all = function.has(Trait::same_for_all_sizes) && !(function.has(Trait::asks_for_layout) && late_layout_varies(operands));
  if (!operands.empty() && !same_for_all)
    for (std::optional<Ref> known : {answer_size(name, stand_ins_[operands.front()], args, kwargs), answer_strides(name, operands.front(), args, kwargs)})
      if (known) return std::move(*known);
  if (!same_for_all) fix_sizes(operands);
  Ref twin_args = stand_ins_.with_twins(args);
  Ref twin_kwargs = kwargs ? stand_ins_.with_twins(kwargs) : Ref();
  Ref answer = checked(PyObject_Call(callable, twin_args.get(), twin_kwargs.get()));
  if (is_tensor(answer.get())) throw GraphBreak(fmt::format("{} gave a tensor where a plain value was expected", function.name));
  return answer;
}

// ---- constants

namespace {

/// A float that the graph computes, among arguments, in tuples and lists too; null where there is none.
PyObject* symbolic_scalar_in(PyObject* object) {
  if (is_symbolic_scalar(object)) return object;
  if (!PyTuple_Check(object) && !PyList_Check(object)) return nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (PyObject* found = symbolic_scalar_in(PySequence_Fast_GET_ITEM(object, i))) return found;
  return nullptr;
}

}  // namespace

namespace {

/// Whether a number that varies is among arguments, in tuples and lists too.
bool takes_varying_number(PyObject* object) {
  if (is_symbolic_scalar(object) || is_symbolic_int(object)) return true;
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (takes_varying_number(PySequence_Fast_GET_ITEM(object, i))) return true;
  return false;
}

}  // namespace

/// What a call of numbers that vary gives, made by the library on every run; empty where that cannot be.
Ref TensorRecorder::library_makes(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (core_.in_branch() || !why_not_opaque(callable, function, args, kwargs, false).empty()) return {};
  try {
    return record_opaque(callable, function, args, kwargs);
  } catch (const GraphBreak&) {
    if (symbols_.learned()) throw;
  }
  return {};
}

Ref TensorRecorder::fold(PyObject* callable, PyObject* args, PyObject* kwargs) {
  const ForeignFunction& function = foreign_function(callable);
  if (function.op && function.op->traits.random) throw GraphBreak(fmt::format("{} takes random numbers", function.name));
  if (takes_varying_number(args) || (kwargs && takes_varying_number(checked(PyDict_Values(kwargs)).get())))
    if (Ref made = library_makes(callable, function, args, kwargs)) return made;
  if (PyObject* scalar = symbolic_scalar_in(args)) need_scalar(scalar_of(scalar), "a call without tensors");
  if (function.flavour == ops::Flavour::torch && purity_of(callable, function).undeclared)
    throw GraphBreak(fmt::format("{} does more than compute", function.name));
  if (function.operator_object)  // only what is known to compute may be computed once for all calls
    if (const Purity& purity = purity_of(callable, function); purity.foreign || purity.writes || !purity.known)
      throw GraphBreak(fmt::format("{} is called without a tensor, and may do more than compute", function.name));
  // Of an int in a list that it does not know NumPy makes an array of objects.
  const auto plain = [](PyObject* item) { return is_symbolic_int(item) ? specialised(item, "a call without tensors gets it") : Ref(); };
  Ref plain_args = with_replaced(args, plain), plain_kwargs = kwargs ? with_replaced(kwargs, plain) : Ref();
  Ref made = call_for_good(callable, plain_args.get(), plain_kwargs.get(), function.flavour, core_.error_handlings.now());
  if (PyTuple_Check(made.get()) || PyList_Check(made.get())) return rebuilt(made.get(), [&](PyObject* item) { return is_tensor(item) ? constant(item) : Ref::borrow(item); });
  return is_tensor(made.get()) ? constant(made.get()) : made;
}

Ref TensorRecorder::constant(PyObject* array) {
  auto read = read_spec(array);
  if (const auto* odd = std::get_if<std::string>(&read)) throw GraphBreak("the program makes " + *odd);
  TensorSpec spec = std::get<TensorSpec>(read);
  if (spec.requires_grad) throw GraphBreak("the program makes a tensor that requires grad", kGradHint);
  if (byte_count(spec.dtype, spec.shape) > kLargestConstant) throw GraphBreak("the program makes a large array in a way that is no op of Tenon");
  auto bytes = row_major_bytes(spec, array);
  ir::Constant constant;
  constant.type = ir::Type::tensor(spec.dtype, ir::Shape(spec.shape.begin(), spec.shape.end()));
  constant.data = bytes->data();
  constant.owner = bytes;
  const ir::Type type = constant.type;
  const ConstantId id = graph_.add_constant(std::move(constant));
  const NodeId node = graph_.add_node("constant", {}, {{"index", ir::Dim(id.value)}}, {type});
  const TensorSpec made = spec;
  const Index index = core_.add_fresh(spec.kind, graph_.node(node).results.front(), made);
  stand_ins_[index].constant = Ref::borrow(array);
  if (spec.kind != TensorKind::scalar) stand_ins_[index].base = hidden_base_of(array);
  trace_.add_constant(spec.kind, array, stand_ins_[index].object);
  return stand_ins_[index].object;
}

std::optional<ir::ValueId> TensorRecorder::value_of(PyObject* object, ops::Flavour flavour, bool weak) {
  if (auto index = stand_ins_.find(object)) {
    const StandIn& s = stand_ins_[*index];
    if ((s.kind == TensorKind::torch) != (flavour == ops::Flavour::torch)) throw GraphBreak("a torch tensor and a NumPy array in one operation");
    return present_.of(*index);
  }
  if (is_symbolic_scalar(object) && !weak)
    return builder_.cast(value_of_scalar(scalar_of(object)), scalar_of(object).integral ? DType::i64 : DType::f64);
  if (is_symbolic_scalar(object)) return weak_operand(scalar_of(object), flavour, operands_);
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
