#include "python/recording/tensor_recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/foreign/foreign_arguments.h"
#include "python/foreign/opaque_purity.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/metadata/memory_overlap.h"
#include "python/opaque/call_results.h"
#include "python/stand_ins/ufunc_loops.h"

// How a call that writes into a tensor becomes nodes: the new value of what it writes.

namespace tenon::python {
namespace {

bool writes_item(const ForeignFunction& function) { return function.has(Trait::subscripts) && function.writes; }

/// The position of the parameter `inplace` of a function written in Python.
std::optional<Py_ssize_t> inplace_parameter(PyObject* callable) {
  if (!PyFunction_Check(callable)) return std::nullopt;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callable));
  for (Py_ssize_t i = 0; i < code->co_argcount; ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, i), "inplace") == 0) return i;
  return std::nullopt;
}

/// Whether a call that writes does so because of its parameter `inplace`.
bool asks_in_place(PyObject* callable, PyObject* kwargs) { return inplace_parameter(callable) && !(kwargs && PyDict_GetItemString(kwargs, "out")); }

Ref without(PyObject* dict, const char* key) {
  Ref copy = checked(PyDict_Copy(dict));
  checked(PyDict_DelItemString(copy.get(), key));
  return copy;
}

Ref with(PyObject* dict, const char* key, PyObject* value) {
  Ref copy = checked(PyDict_Copy(dict));
  checked(PyDict_SetItemString(copy.get(), key, value));
  return copy;
}

/// Whether a ufunc leaves some elements of its output as they are.
bool chooses_places(PyObject* kwargs) {
  PyObject* where = kwargs ? PyDict_GetItemString(kwargs, "where") : nullptr;
  return where && where != Py_True;
}

/// The one tensor that `out=` names.
PyObject* single_output(PyObject* out) {
  if (!PyTuple_Check(out)) return out;
  if (PyTuple_GET_SIZE(out) != 1) throw GraphBreak("out= with several tensors");
  return PyTuple_GET_ITEM(out, 0);
}

}  // namespace

std::optional<TensorRecorder::WritingCall> TensorRecorder::as_writing_call(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  PyObject* out = kwargs ? PyDict_GetItemString(kwargs, "out") : nullptr;
  if (out == Py_None) return WritingCall{Ref::borrow(args), without(kwargs, "out"), {}, WritingCall::Kind::none};
  if (out) return WritingCall{Ref::borrow(args), without(kwargs, "out"), Ref::borrow(single_output(out)), WritingCall::Kind::output};
  if (function.ufunc) {
    const Py_ssize_t operands = reinterpret_cast<PyUFuncObject*>(callable)->nin;
    if (PyTuple_GET_SIZE(args) <= operands) return std::nullopt;
    if (PyTuple_GET_SIZE(args) != operands + 1) throw GraphBreak("out= with several arrays");
    Ref inputs = checked(PyTuple_GetSlice(args, 0, operands));
    PyObject* last = PyTuple_GET_ITEM(args, operands);
    if (last == Py_None) return WritingCall{inputs, Ref::borrow(kwargs), {}, WritingCall::Kind::none};
    if (function.has(Trait::warns_of_placed_output)) throw GraphBreak("an output by position, of which NumPy warns");
    return WritingCall{inputs, Ref::borrow(kwargs), Ref::borrow(last), WritingCall::Kind::output};
  }
  if (const auto at = inplace_parameter(callable)) {
    PyObject* flag = kwargs ? PyDict_GetItemString(kwargs, "inplace") : nullptr;
    Ref rest = flag ? without(kwargs, "inplace") : Ref::borrow(kwargs);
    Ref inputs = Ref::borrow(args);
    if (*at < PyTuple_GET_SIZE(args)) {
      flag = PyTuple_GET_ITEM(args, *at);
      inputs = checked(PyTuple_GetSlice(args, 0, *at));
    }
    if (flag && checked(PyObject_IsTrue(flag))) {
      if (PyTuple_GET_SIZE(args) == 0) throw GraphBreak("inplace=True with the tensor as a keyword");
      return WritingCall{inputs, rest, Ref::borrow(PyTuple_GET_ITEM(args, 0)), WritingCall::Kind::output};
    }
    return std::nullopt;
  }
  if (!function.writes) return std::nullopt;
  if (PyTuple_GET_SIZE(args) == 0) throw GraphBreak(fmt::format("{} without a tensor to write into", function.name));
  return WritingCall{Ref::borrow(args), Ref::borrow(kwargs), Ref::borrow(PyTuple_GET_ITEM(args, 0)), WritingCall::Kind::itself};
}

Ref TensorRecorder::record_write(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const WritingCall& call) {
  if (function.reshapes) throw GraphBreak(fmt::format("{} changes the shape or storage of a tensor in place", function.name));
  const auto target = stand_ins_.find(call.target.get());
  if (!target) throw GraphBreak(fmt::format("{} writes into a tensor that is none of the program's", function.name));
  const std::size_t first_node = graph_.nodes().size();
  const bool item = writes_item(function);
  if (item && is_complex(stand_ins_[*target].dtype))
    if (Ref value = in_complex(PyTuple_GET_ITEM(args, 2), stand_ins_[*target].kind, stand_ins_[*target].dtype)) {
      Ref given = checked(PyTuple_Pack(3, PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1), value.get()));
      return record_write(callable, function, given.get(), kwargs, {given, call.kwargs, call.target, call.kind});
    }
  if (!item || !write_part(function, *target, PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 2))) {
    if (item) refuse_late({{*target}});
    require_writable(*target);
    if (function.ufunc && call.kind == WritingCall::Kind::output) require_output(callable, stand_ins_, call.args.get(), call.kwargs.get(), call.target.get());
    // What computes element by element may read the very elements that it writes; the rest gathers or scatters.
    const bool all = item || !((function.op && function.op->body) || asks_in_place(callable, kwargs));
    const bool first_is_target = call.kind == WritingCall::Kind::itself;
    require_apart(function, *target, stand_ins_.among(first_is_target ? checked(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args))).get() : args, kwargs), all);
    const auto value = [&] {
      try {
        return new_value(callable, function, *target, call);
      } catch (const GraphBreak&) {
        if (symbols_.learned() || core_.is_late(stand_ins_[*target].value) || !asks_in_place(callable, kwargs)) throw;
        return value_by_opaque_call(callable, function, *target, args, kwargs);
      }
    };
    const ir::ValueId before = present_.of(*target), after = value();
    // Outside training torch gives what a dropout would write as it is, and counts no write.
    if (!(after == before && function.has(Trait::drops_in_training))) present_.write(*target, after);
  }
  inputs_.note_write(*target);
  const bool gives_nothing = item || (function.flavour == ops::Flavour::numpy && call.kind == WritingCall::Kind::itself);
  Ref result = gives_nothing ? Ref::borrow(Py_None) : written_result(callable, function, *target, call);
  trace_.add(callable, function, args, kwargs, result, first_node);
  return result;
}

/// What a call gives that has written `target`: that, or of some functions of NumPy a scalar where it has no dimensions.
Ref TensorRecorder::written_result(PyObject* callable, const ForeignFunction& function, Index target, const WritingCall& call) {
  const bool plain = function.flavour == ops::Flavour::torch || function.ufunc || call.kind != WritingCall::Kind::output || !stand_ins_[target].shape.empty();
  if (plain) return call.target;
  Ref twin_args = stand_ins_.with_twins(call.args.get());
  Ref out = checked(PyTuple_Pack(1, stand_ins_.twin(target)));
  Ref twin_kwargs = with(call.kwargs ? stand_ins_.with_twins(call.kwargs.get()).get() : checked(PyDict_New()).get(), "out", PyTuple_GET_ITEM(out.get(), 0));
  Ref answer = call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour);
  if (answer.is(stand_ins_.twin(target))) return call.target;
  const TensorSpec spec = read_twin(answer.get());
  if (spec.kind != TensorKind::scalar || spec.dtype != stand_ins_[target].dtype) throw GraphBreak(fmt::format("{} gives something else than what it writes", function.name));
  return stand_ins_[core_.add_fresh(spec.kind, present_.of(target), spec)].object;
}

/// x[index] = value where x[index] is a view: writes the view. False where it is none.
bool TensorRecorder::write_part(const ForeignFunction& function, Index whole, PyObject* index, PyObject* value) {
  if (!stand_ins_.among(index, nullptr).empty()) return false;
  PyObject* owner = stand_ins_[whole].kind == TensorKind::torch ? torch_library()->tensor.get() : reinterpret_cast<PyObject*>(&PyArray_Type);
  Ref get_item = checked(PyObject_GetAttrString(owner, "__getitem__"));
  const ForeignFunction& reading = foreign_function(get_item.get());
  Ref arguments = checked(PyTuple_Pack(2, stand_ins_[whole].object.get(), index));
  Ref answer = wrap_like_twins(get_item.get(), reading, build(reading, arguments.get(), nullptr), arguments.get(), nullptr);
  const Index part = stand_ins_.require(answer.get());
  if (stand_ins_[part].storage != stand_ins_[whole].storage) return false;
  require_writable(whole);
  require_writable(part);
  if (core_.in_late_memory(part)) require_elements(graph_.type(stand_ins_[part].value).shape);
  if (auto given = stand_ins_.find(value)) {
    if (same_places(part, *given)) {  // x[i] += y ends by storing what is there already
      stand_ins_.count_write(whole);
      return true;
    }
    const Index given_index = *given;
    require_apart(function, part, {&given_index, 1}, false);
  }
  ops::ForeignCall copy;
  copy.name = function.flavour == ops::Flavour::torch ? "torch.Tensor.fill_" : "numpy.ndarray.fill";
  copy.flavour = function.flavour;
  const ValueOf values = [&](PyObject* o) { return value_of(o, function.flavour); };
  copy.positional = {{present_.of(part)}, foreign_argument(value, function.flavour, values)};
  auto made = ops::call_foreign(builder_, copy);
  if (!made) throw GraphBreak(fmt::format("{}: {}", function.name, made.error().message));
  present_.write(part, made->front());
  return true;
}

/// A complex number as the element that it becomes; nothing for any other object.
Ref TensorRecorder::in_complex(PyObject* number, TensorKind kind, DType dtype) {
  if (!PyComplex_Check(number) && !PyArray_IsScalar(number, ComplexFloating)) return {};
  if (kind == TensorKind::torch) {
    Ref settings = checked(Py_BuildValue("{sO}", "dtype", torch_library()->dtypes[static_cast<std::size_t>(dtype)].get()));
    Ref make = checked(PyObject_GetAttrString(torch_library()->module.get(), "tensor"));
    return constant(checked(PyObject_Call(make.get(), checked(PyTuple_Pack(1, number)).get(), settings.get())).get());
  }
  Ref descriptor = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(numpy_type(dtype))));
  Ref array = checked(PyArray_FromAny(number, reinterpret_cast<PyArray_Descr*>(descriptor.release()), 0, 0, NPY_ARRAY_FORCECAST, nullptr));
  return constant(array.get());
}

/// A call of NumPy that writes into its argument is made on a copy, whose end value is written.
ir::ValueId TensorRecorder::value_by_numpy_call(PyObject* callable, const ForeignFunction& function, Index target, PyObject* args, PyObject* kwargs) {
  if (!purity_of(callable, function).known) throw GraphBreak(fmt::format("Tenon has no op for {}", function.name));
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  refuse_late(operands);
  if (std::ranges::count(operands, target) != 1) throw GraphBreak(fmt::format("{} writes an array that is given twice", function.name));
  for (Index index : operands) {
    if (index != target && stand_ins_[index].storage == stand_ins_[target].storage && stand_ins_[index].kind == TensorKind::array)
      throw GraphBreak(fmt::format("{} writes memory that it also reads", function.name));
    if (is_complex(stand_ins_[index].dtype) && !is_complex(stand_ins_[target].dtype)) throw GraphBreak("complex numbers become real ones, of which NumPy warns");
  }
  OpaqueUse use;
  if (function.ufunc) {  // it gives what it writes
    use.written = target;
  } else {
    use.declared = {target};
    use.answer = Ref::borrow(Py_None);
  }
  record_opaque(callable, function, args, kwargs, use);
  return use.written ? use.value : use.left.front();
}

ir::ValueId TensorRecorder::new_value(PyObject* callable, const ForeignFunction& function, Index target, const WritingCall& call) {
  ops::ForeignResult built;
  try {
    built = build(function, call.args.get(), call.kwargs.get());
  } catch (const GraphBreak&) {
    if (symbols_.learned()) throw;  // the op may do when the capture begins from what it has learned
    if (function.ufunc && call.kind == WritingCall::Kind::output && chooses_places(call.kwargs.get()))
      return value_by_numpy_call(callable, function, target, call.args.get(), with(call.kwargs.get(), "out", call.target.get()).get());
    if (function.ufunc && call.kind == WritingCall::Kind::output)
      return written_value(function, target, present_.of(stand_ins_.require(record_reading(callable, function, call.args.get(), call.kwargs.get(),
                                                                                          stand_ins_.among(call.args.get(), call.kwargs.get())).get())));
    if (core_.is_late(stand_ins_[target].value) || call.kind != WritingCall::Kind::itself) throw;
    if (function.flavour == ops::Flavour::numpy) return value_by_numpy_call(callable, function, target, call.args.get(), call.kwargs.get());
    if (writes_item(function)) throw;
    return value_by_opaque_call(callable, function, target, call.args.get(), call.kwargs.get());
  }
  if (built.values.size() != 1) throw GraphBreak(fmt::format("{} writes several tensors", function.name));
  return written_value(function, target, built.values.front());
}

/// What was computed as it is written: of the dtype and shape of the tensor.
ir::ValueId TensorRecorder::written_value(const ForeignFunction& function, Index target, ir::ValueId value) {
  const DType dtype = stand_ins_[target].dtype;
  if (!function.ufunc && graph_.type(value).dtype != dtype) throw GraphBreak(fmt::format("{} into a tensor of another dtype than its result", function.name));
  require_shape_of(target, value, function);
  return builder_.cast(value, dtype);
}

/// What is written has the shape of the tensor, for the sizes of all calls.
void TensorRecorder::require_shape_of(Index target, ir::ValueId value, const ForeignFunction& function) {
  const ir::Shape &made = graph_.type(value).shape, &shape = graph_.type(stand_ins_[target].value).shape;
  if (made == shape) return;
  if (symbols_.values(made) == symbols_.values(shape))  // in a capture to come they are the same
    for (std::size_t d = 0; d < made.size(); ++d) symbols_.equal(made[d], shape[d]);
  throw GraphBreak(fmt::format("{} into a tensor of another shape than its result", function.name));
}

/// The argument that a call writes, by the value that it had; no other argument may share its memory.
TensorRecorder::Index TensorRecorder::written_operand(const ForeignFunction& function, ir::ValueId before, std::span<const Index> operands) {
  std::optional<Index> target;
  for (Index index : operands) {
    if (!(present_.of(index) == before)) continue;
    if (target) throw GraphBreak(fmt::format("{} writes a tensor that is given twice", function.name));
    target = index;
  }
  if (!target) throw GraphBreak(fmt::format("{} writes into a tensor that is none of the program's", function.name));
  require_writable(*target);
  for (const Index& operand : operands)
    if (operand != *target) require_apart(function, *target, {&operand, 1}, true);
  return *target;
}

/// What a call leaves in its arguments besides what it gives.
void TensorRecorder::record_writes_beside(const ForeignFunction& function, std::span<const ops::ForeignWrite> writes, std::span<const Index> operands) {
  std::vector<Index> targets;
  for (const ops::ForeignWrite& write : writes) targets.push_back(written_operand(function, write.before, operands));
  for (std::size_t i = 0; i < writes.size(); ++i) {
    require_shape_of(targets[i], writes[i].after, function);
    present_.write(targets[i], writes[i].after, writes[i].counted);
    inputs_.note_write(targets[i]);
  }
}

bool TensorRecorder::same_places(Index a, Index b) const {
  const StandIn &x = stand_ins_[a], &y = stand_ins_[b];
  return x.storage == y.storage && x.offset == y.offset && x.shape == y.shape && x.strides == y.strides && x.dtype == y.dtype;
}

void TensorRecorder::require_writable(Index index) const {
  const StandIn& s = stand_ins_[index];
  if (s.kind == TensorKind::scalar) throw GraphBreak("a write to a NumPy scalar");
  if (!s.writeable) throw GraphBreak("a write to a read-only array");
  if (s.counts_apart) throw GraphBreak("a write through `.data`, which torch does not count", "write to the tensor itself under torch.no_grad()");
  if (stand_ins_.is_reinterpreted(index)) throw GraphBreak("a write to memory that the program also views under another dtype, or at an index that the graph computes");
  // A write goes back through all that is viewed on the way: overlapping windows would put back what they showed of the elements written.
  for (std::optional<Index> seen = index; seen; seen = stand_ins_[*seen].viewed)
    if (may_overlap_itself(stand_ins_[*seen].shape, stand_ins_[*seen].strides)) throw GraphBreak("a write to a tensor whose elements share memory");
  if (core_.is_inference(index) && !torch_state().value_or(core_.state).inference())
    throw GraphBreak("a write to an inference tensor outside of inference mode");
  if (!stand_ins_[index].path && stand_ins_[index].viewed) throw GraphBreak("a write through a view of an uncommon kind");
}

/// torch refuses operands that share a part of what is written; NumPy computes as if they were copies.
void TensorRecorder::require_apart(const ForeignFunction& function, Index target, std::span<const Index> operands, bool all) {
  if (function.flavour == ops::Flavour::numpy) return;
  const auto places = [&](Index i) {
    const StandIn& s = stand_ins_[i];
    const auto start = static_cast<std::uintptr_t>(1) << 40;  // any address: nothing is read
    return ElementPlaces{reinterpret_cast<const void*>(start + static_cast<std::uintptr_t>(s.offset * static_cast<std::int64_t>(size_of(s.dtype)))), size_of(s.dtype), s.shape, s.strides};
  };
  for (Index operand : operands) {
    if ((!all && same_places(operand, target)) || stand_ins_[operand].storage != stand_ins_[target].storage) continue;
    if (core_.in_late_memory(target)) refuse_late({{stand_ins_.owner(target)}});
    if (may_share_memory(places(target), places(operand))) throw GraphBreak("an operation on a tensor that overlaps the one it writes");
    for (Index apart : {target, operand}) core_.fix_sizes_to_come(apart);  // of other sizes they may overlap
  }
}

}  // namespace tenon::python
