#include "python/recording/recorded_crossings.h"

#include <fmt/format.h>

#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// A callable of a type, as a method descriptor: the trace makes the call again.
Ref method_of(PyObject* type, const char* name) { return checked(PyObject_GetAttrString(type, name)); }

Ref function_of_torch(const char* name) { return checked(PyObject_GetAttrString(torch_library()->module.get(), name)); }

/// A parameter of a call that may be given by position; null where it is absent or None.
PyObject* argument(PyObject* args, Py_ssize_t position, PyObject* kwargs, const char* name) {
  PyObject* given = position >= 0 && position < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, position) : kwargs ? PyDict_GetItemString(kwargs, name) : nullptr;
  return given == Py_None ? nullptr : given;
}

/// Breaks where a call has a keyword that is none of these.
void allow_keywords(const ForeignFunction& function, PyObject* kwargs, std::initializer_list<const char*> allowed) {
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
    bool found = false;
    for (const char* name : allowed) found |= PyUnicode_CompareWithASCIIString(key, name) == 0;
    if (!found) throw GraphBreak(fmt::format("{} of an array with the keyword {}", function.name, PyUnicode_AsUTF8(key)));
  }
}

}  // namespace

/// The whole of a stand-in as the other library sees it. `copied`: the program gets a copy of it, and never the memory.
Ref RecordedCrossings::crossed(Index index, bool copied) {
  const ir::ValueId value = core_.present.of(index);
  const StandIn from = core_.stand_ins[index];
  const bool to_torch = from.kind == TensorKind::array;
  if (from.requires_grad) throw GraphBreak("a tensor that requires grad as an array", "detach it first");
  if (!from.device.is_host()) throw GraphBreak("a tensor of a device as an array", "copy it to the host first: x.cpu()");
  if (numpy_type(from.dtype) < 0) throw GraphBreak(fmt::format("a tensor of dtype {} as an array", name_of(from.dtype)));
  if (to_torch && !from.writeable && !copied) throw GraphBreak("a tensor with the memory of a read-only array, of which torch warns");
  for (std::int64_t stride : from.strides)
    if (to_torch && stride < 0) throw GraphBreak("a tensor with the memory of an array with negative strides", "copy the array first");
  // The tensor's kind would be that of the mode, not of the memory that it has.
  if (to_torch && (torch_state().value_or(core_.state).inference() || core_.is_inference(index))) throw GraphBreak("an array that becomes a tensor in inference mode");
  StandIn made;
  made.kind = to_torch ? TensorKind::torch : TensorKind::array;
  made.type = to_torch ? reinterpret_cast<PyTypeObject*>(torch_library()->tensor.get()) : &PyArray_Type;
  made.value = value;
  made.version = core_.stand_ins.storage_of(index).version;
  made.dtype = from.dtype;
  made.shape = from.shape;
  made.strides = from.strides;
  made.storage = from.storage;
  made.offset = from.offset;
  made.viewed = index;
  made.path = ops::ViewPath{};
  made.crossed = true;
  const Ref result = core_.stand_ins[core_.stand_ins.add_view(std::move(made))].object;
  const Ref callable = to_torch ? function_of_torch("from_numpy") : method_of(torch_library()->tensor.get(), "numpy");
  trace_.add(callable.get(), foreign_function(callable.get()), checked(PyTuple_Pack(1, from.object.get())).get(), nullptr, result, core_.graph.nodes().size());
  return result;
}

/// The arguments with arrays in the places of tensors.
Ref RecordedCrossings::with_arrays(PyObject* arguments) {
  return with_replaced(arguments, [&](PyObject* item) {
    const auto index = core_.stand_ins.find(item);
    return index && core_.stand_ins[*index].kind == TensorKind::torch ? crossed(*index, false) : Ref();
  });
}

/// A NumPy scalar becomes a tensor without dimensions.
Ref RecordedCrossings::tensor_from_scalar(PyObject* callable, const ForeignFunction& function, Index scalar) {
  TensorSpec spec;
  spec.kind = TensorKind::torch;
  spec.dtype = core_.stand_ins[scalar].dtype;
  spec.type = reinterpret_cast<PyTypeObject*>(torch_library()->tensor.get());
  const Ref given = core_.stand_ins[scalar].object;
  const Ref result = core_.stand_ins[core_.add_fresh(TensorKind::torch, core_.present.of(scalar), spec)].object;
  trace_.add(callable, function, checked(PyTuple_Pack(1, given.get())).get(), nullptr, result, core_.graph.nodes().size());
  return result;
}

/// torch.tensor of a list of NumPy scalars of one dtype, which it keeps; nothing for any other list.
std::optional<Ref> RecordedCrossings::tensor_from_scalars(PyObject* callable, const ForeignFunction& function, PyObject* list, PyObject* dtype) {
  const std::vector<Index> scalars = core_.stand_ins.among(list, nullptr);
  if (!PyList_CheckExact(list) || scalars.empty() || static_cast<Py_ssize_t>(scalars.size()) != PyList_GET_SIZE(list)) return std::nullopt;
  const DType own = core_.stand_ins[scalars.front()].dtype;
  if (dtype && dtype != torch_library()->dtypes[static_cast<std::size_t>(own)].get()) return std::nullopt;
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    const StandIn& s = core_.stand_ins[scalars[i]];
    if (s.kind != TensorKind::scalar || s.dtype != own || !s.object.is(PyList_GET_ITEM(list, static_cast<Py_ssize_t>(i)))) return std::nullopt;
  }
  Ref tensors = checked(PyList_New(0));
  for (Index index : scalars) checked(PyList_Append(tensors.get(), tensor_from_scalar(callable, function, index).get()));
  return uses_.call(function_of_torch("stack").get(), checked(PyTuple_Pack(1, tensors.get())).get(), nullptr);
}

/// torch.from_numpy, torch.as_tensor, torch.asarray, torch.tensor of an array.
Ref RecordedCrossings::tensor_from_array(const ForeignFunction& function, Index array, PyObject* args, PyObject* kwargs) {
  const bool copies = function.has(Trait::copies);
  allow_keywords(function, kwargs, {"data", "dtype", "device"});
  PyObject* dtype = argument(args, function.has(Trait::dtype_by_position) ? 1 : -1, kwargs, "dtype");
  PyObject* device = argument(args, function.has(Trait::dtype_by_position) ? 2 : -1, kwargs, "device");
  Ref tensor = crossed(array, copies);
  if (!copies && !dtype && !device) return tensor;
  Ref options = checked(PyDict_New());
  checked(PyDict_SetItemString(options.get(), "dtype", dtype ? dtype : torch_library()->dtypes[static_cast<std::size_t>(core_.stand_ins[array].dtype)].get()));
  if (device) checked(PyDict_SetItemString(options.get(), "device", device));
  if (copies) checked(PyDict_SetItemString(options.get(), "copy", Py_True));
  return uses_.call(method_of(torch_library()->tensor.get(), "to").get(), checked(PyTuple_Pack(1, tensor.get())).get(), options.get());
}

/// What torch makes of an array among the indices of a tensor. `alone`: it is the whole index, whose rows would be indices of their own.
Ref RecordedCrossings::tensor_of_indices(PyObject* array, bool alone) {
  const auto index = core_.stand_ins.find(array);
  if (!index || core_.stand_ins[*index].kind != TensorKind::array) return Ref::borrow(array);
  const DType dtype = core_.stand_ins[*index].dtype;
  const std::size_t rank = core_.stand_ins[*index].shape.size();
  const bool whole = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  if (!whole || rank == 0 || (alone && rank != 1)) throw GraphBreak("a tensor is indexed by an array that is no list of integers");
  Ref tensor = crossed(*index, true);
  if (dtype == DType::i64) return tensor;
  return uses_.call(method_of(torch_library()->tensor.get(), "long").get(), checked(PyTuple_Pack(1, tensor.get())).get(), nullptr);
}

/// x[array] and x[:, array], read or written; nothing where no array is among the indices.
std::optional<Ref> RecordedCrossings::record_array_index(PyObject* callable, PyObject* args, PyObject* kwargs) {
  PyObject* index = PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1) : Py_None;
  Ref indices = PyTuple_CheckExact(index) ? rebuilt(index, [&](PyObject* item) { return tensor_of_indices(item, false); }) : tensor_of_indices(index, true);
  bool same = true;
  for (Py_ssize_t i = 0; PyTuple_CheckExact(index) && i < PyTuple_GET_SIZE(index); ++i) same &= PyTuple_GET_ITEM(index, i) == PyTuple_GET_ITEM(indices.get(), i);
  if (same && (PyTuple_CheckExact(index) || indices.is(index))) return std::nullopt;
  Ref list = checked(PySequence_List(args));
  checked(PyList_SetItem(list.get(), 1, indices.release()));
  return uses_.call(callable, checked(PyList_AsTuple(list.get())).get(), kwargs);
}

std::optional<Ref> RecordedCrossings::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.flavour == ops::Flavour::numpy) {
    bool any = false;
    for (Index index : core_.stand_ins.among(args, kwargs)) any |= core_.stand_ins[index].kind == TensorKind::torch;
    if (!any || (kwargs && PyDict_GetItemString(kwargs, "out"))) return std::nullopt;
    Ref arrays = with_arrays(args), keywords = kwargs ? with_arrays(kwargs) : Ref();
    return uses_.call(callable, arrays.get(), keywords.get());
  }
  if (function.has(Trait::subscripts)) return record_array_index(callable, args, kwargs);
  PyObject* given = argument(args, 0, kwargs, "data");
  if (given && PyList_CheckExact(given) && PyTuple_GET_SIZE(args) == 1 && (!kwargs || PyDict_GET_SIZE(kwargs) == (argument(args, -1, kwargs, "dtype") ? 1 : 0)))
    return tensor_from_scalars(callable, function, given, argument(args, -1, kwargs, "dtype"));
  const auto index = given ? core_.stand_ins.find(given) : std::nullopt;
  if (!index) return std::nullopt;
  const TensorKind kind = core_.stand_ins[*index].kind;
  if (function.method) {
    PyObject* dtype = function.has(Trait::dtype_by_position) ? argument(args, 1, kwargs, "dtype") : nullptr;
    allow_keywords(function, kwargs, {"dtype", "force"});
    Ref array = crossed(*index, false);
    if (!dtype) return array;
    Ref options = checked(PyDict_New());
    checked(PyDict_SetItemString(options.get(), "copy", Py_False));
    return uses_.call(method_of(reinterpret_cast<PyObject*>(&PyArray_Type), "astype").get(), checked(PyTuple_Pack(2, array.get(), dtype)).get(), options.get());
  }
  if (kind == TensorKind::array) return tensor_from_array(function, *index, args, kwargs);
  const bool alone = PyTuple_GET_SIZE(args) == 1 && !kwargs && !function.has(Trait::shares_arrays);
  if (kind == TensorKind::scalar && alone) return tensor_from_scalar(callable, function, *index);
  return std::nullopt;
}

}  // namespace tenon::python
