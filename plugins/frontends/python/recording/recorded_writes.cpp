#include "python/recording/recorded_writes.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/foreign/foreign_arguments.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/opaque/eager_kernels.h"
#include "python/opaque/quiet_calls.h"
#include "python/stand_ins/ufunc_loops.h"

namespace tenon::python {
namespace {

bool writes_item(const ForeignFunction& function) { return function.has(Trait::subscripts) && function.writes; }

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

/// Throws GraphBreak where torch's kernel does not take an in-place call of such operands.
void require_taken(RecordedGraph& graph, PyObject* callable, const ForeignFunction& function, const WritingCall& call) {
  if (function.flavour != ops::Flavour::torch || !function.op || call.kind != WritingCall::Kind::itself || writes_item(function)) return;
  StandIns& all = graph.stand_ins;
  const std::vector<RecordedWrites::Index> operands = all.among(call.args.get(), call.kwargs.get());
  if (!operands_are_unusual(all, operands) || std::ranges::any_of(operands, [&](auto index) { return graph.is_late(all[index].value); })) return;
  if (draws(callable, function, call.args.get(), call.kwargs.get())) return;
  require_eager_kernel(callable, function, all.with_twins(call.args.get()).get(), call.kwargs ? all.with_twins(call.kwargs.get()).get() : nullptr);
}

}  // namespace

Ref RecordedWrites::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, const WritingCall& call) {
  const auto target = core_.stand_ins.find(call.target.get());
  if (function.reshapes) return reshape(callable, function, args, kwargs, target);
  if (!target) throw GraphBreak(fmt::format("{} writes into a tensor that is none of the program's", function.name));
  const std::size_t first_node = core_.graph.nodes().size();
  history_.require_writable(*target);
  const bool item = writes_item(function);
  if (item && is_complex(core_.stand_ins[*target].dtype))
    if (Ref value = in_complex(PyTuple_GET_ITEM(args, 2), core_.stand_ins[*target].kind, core_.stand_ins[*target].dtype)) {
      Ref given = checked(PyTuple_Pack(3, PyTuple_GET_ITEM(args, 0), PyTuple_GET_ITEM(args, 1), value.get()));
      return record(callable, function, given.get(), kwargs, {given, call.kwargs, call.target, call.kind});
    }
  if (!item || !write_part(function, *target, PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 2))) {
    if (item) late_.refuse({{*target}});
    memory_.require_writable(*target);
    require_taken(core_, callable, function, call);
    if (function.ufunc && call.kind == WritingCall::Kind::output) require_output(callable, core_.stand_ins, call.args.get(), call.kwargs.get(), call.target.get());
    // What computes element by element may read the very elements that it writes; the rest gathers or scatters.
    const bool all = item || !((function.op && function.op->body) || asks_in_place(callable, kwargs));
    memory_.require_apart(function, *target, core_.stand_ins.among(is_written_as_first(function, *target, call) ? checked(PyTuple_GetSlice(call.args.get(), 1, PyTuple_GET_SIZE(call.args.get()))).get() : call.args.get(), call.kwargs.get()), all);
    const auto value = [&] {
      try {
        return new_value(callable, function, *target, call);
      } catch (const GraphBreak&) {
        if (core_.symbols.learned() || core_.is_late(core_.stand_ins[*target].value) || !asks_in_place(callable, kwargs)) throw;
        return opaque_writes_.value_by_torch(callable, function, *target, args, kwargs);
      }
    };
    const ir::ValueId before = core_.present.of(*target), after = value();
    // Outside training torch gives what a dropout would write as it is, and counts no write.
    const bool names_output = call.kind == WritingCall::Kind::output && function.flavour == ops::Flavour::torch && !asks_in_place(callable, kwargs);
    const bool counted = !names_output || counts_write(callable, *target, args, kwargs);
    if (!(after == before && function.has(Trait::drops_in_training))) core_.present.write(*target, history_.written_over(before, after, first_node), counted);
  }
  history_.note_write(*target);
  inputs_.note_write(*target);
  const bool gives_nothing = item || (function.flavour == ops::Flavour::numpy && call.kind == WritingCall::Kind::itself);
  Ref result = gives_nothing ? Ref::borrow(Py_None) : written_result(callable, function, *target, call);
  trace_.add(callable, function, args, kwargs, result, first_node);
  return result;
}

/// Whether a call writes its first argument, element by element where it reads it: addmm_, and addmm with that as its output.
bool RecordedWrites::is_written_as_first(const ForeignFunction& function, Index target, const WritingCall& call) const {
  if (call.kind == WritingCall::Kind::itself) return true;
  const auto first = PyTuple_GET_SIZE(call.args.get()) > 0 ? core_.stand_ins.find(PyTuple_GET_ITEM(call.args.get(), 0)) : std::nullopt;
  if (!first || function.flavour != ops::Flavour::torch || !memory_.same_places(*first, target)) return false;
  return PyObject_HasAttrString(torch_library()->tensor.get(), fmt::format("{}_", function.last_word()).c_str());
}

/// Whether torch counts what a call with `out=` writes: functions that it composes of others write the output as they come to it. Throws PythonError
/// where it has no such call.
bool RecordedWrites::counts_write(PyObject* callable, Index target, PyObject* args, PyObject* kwargs) const {
  const long before = version_of(core_.stand_ins.twin(target));
  call_quietly(callable, core_.stand_ins.with_twins(args).get(), core_.stand_ins.with_twins(kwargs).get(), ops::Flavour::torch);
  return version_of(core_.stand_ins.twin(target)) != before;
}

/// What a call gives that has written `target`: that, or of some functions of NumPy a scalar where it has no dimensions.
Ref RecordedWrites::written_result(PyObject* callable, const ForeignFunction& function, Index target, const WritingCall& call) {
  const bool plain = function.flavour == ops::Flavour::torch || function.ufunc || call.kind != WritingCall::Kind::output || !core_.stand_ins[target].shape.empty();
  if (plain) return call.target;
  Ref twin_args = core_.stand_ins.with_twins(call.args.get());
  Ref out = checked(PyTuple_Pack(1, core_.stand_ins.twin(target)));
  Ref twin_kwargs = with(call.kwargs ? core_.stand_ins.with_twins(call.kwargs.get()).get() : checked(PyDict_New()).get(), "out", PyTuple_GET_ITEM(out.get(), 0));
  Ref answer = call_quietly(callable, twin_args.get(), twin_kwargs.get(), function.flavour);
  if (answer.is(core_.stand_ins.twin(target))) return call.target;
  const TensorSpec spec = read_twin(answer.get());
  if (spec.kind != TensorKind::scalar || spec.dtype != core_.stand_ins[target].dtype) throw GraphBreak(fmt::format("{} gives something else than what it writes", function.name));
  return core_.stand_ins[core_.add_fresh(spec.kind, core_.present.of(target), spec)].object;
}

/// x[index] = value where x[index] is a view: writes the view. False where it is none.
bool RecordedWrites::write_part(const ForeignFunction& function, Index whole, PyObject* index, PyObject* value) {
  if (!core_.stand_ins.among(index, nullptr).empty()) return false;
  PyObject* owner = core_.stand_ins[whole].kind == TensorKind::torch ? torch_library()->tensor.get() : reinterpret_cast<PyObject*>(&PyArray_Type);
  Ref get_item = checked(PyObject_GetAttrString(owner, "__getitem__"));
  const ForeignFunction& reading = foreign_function(get_item.get());
  Ref arguments = checked(PyTuple_Pack(2, core_.stand_ins[whole].object.get(), index));
  Ref answer = results_.wrap_like_twins(get_item.get(), reading, op_calls_.build(reading, arguments.get(), nullptr), arguments.get(), nullptr);
  const Index part = core_.stand_ins.require(answer.get());
  if (core_.stand_ins[part].storage != core_.stand_ins[whole].storage) return false;
  memory_.require_writable(whole);
  memory_.require_writable(part);
  if (core_.in_late_memory(part)) late_views_.require_elements(core_.graph.type(core_.stand_ins[part].value).shape);
  if (auto given = core_.stand_ins.find(value)) {
    if (memory_.same_places(part, *given)) {  // x[i] += y ends by storing what is there already
      core_.stand_ins.count_write(whole);
      return true;
    }
    const Index given_index = *given;
    memory_.require_apart(function, part, {&given_index, 1}, false);
  }
  const std::size_t first_node = core_.graph.nodes().size();
  ops::ForeignCall copy;
  copy.name = function.flavour == ops::Flavour::torch ? "torch.Tensor.__setitem__" : "numpy.ndarray.__setitem__";
  copy.flavour = function.flavour;
  const ValueOf values = [&](PyObject* o) { return op_calls_.value_of(o, function.flavour); };
  copy.positional = {{core_.present.of(part)}, {ops::ForeignEllipsis{}}, foreign_argument(value, function.flavour, values)};
  auto made = ops::call_foreign(core_.builder, copy);
  if (!made) throw GraphBreak(fmt::format("{}: {}", function.name, made.error().message));
  const bool all = core_.stand_ins[part].shape == core_.stand_ins[whole].shape;
  core_.present.write(part, all ? history_.written_over(core_.present.of(part), made->front(), first_node) : made->front());
  return true;
}

/// A complex number as the element that it becomes; nothing for any other object.
Ref RecordedWrites::in_complex(PyObject* number, TensorKind kind, DType dtype) {
  if (!PyComplex_Check(number) && !PyArray_IsScalar(number, ComplexFloating)) return {};
  if (kind == TensorKind::torch) {
    Ref settings = checked(Py_BuildValue("{sO}", "dtype", torch_library()->dtypes[static_cast<std::size_t>(dtype)].get()));
    Ref make = checked(PyObject_GetAttrString(torch_library()->module.get(), "tensor"));
    return constants_.add(checked(PyObject_Call(make.get(), checked(PyTuple_Pack(1, number)).get(), settings.get())).get());
  }
  Ref descriptor = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(numpy_type(dtype))));
  Ref array = checked(PyArray_FromAny(number, reinterpret_cast<PyArray_Descr*>(descriptor.release()), 0, 0, NPY_ARRAY_FORCECAST, nullptr));
  return constants_.add(array.get());
}

ir::ValueId RecordedWrites::new_value(PyObject* callable, const ForeignFunction& function, Index target, const WritingCall& call) {
  ops::ForeignResult built;
  try {
    built = op_calls_.build(function, call.args.get(), call.kwargs.get());
  } catch (const GraphBreak&) {
    if (core_.symbols.learned()) throw;  // the op may do when the capture begins from what it has learned
    if (function.ufunc && call.kind == WritingCall::Kind::output && chooses_places(call.kwargs.get()))
      return opaque_writes_.value_by_numpy(callable, function, target, call.args.get(), with(call.kwargs.get(), "out", call.target.get()).get());
    if (function.ufunc && call.kind == WritingCall::Kind::output)
      return written_value(function, target, core_.present.of(core_.stand_ins.require(op_calls_.record(callable, function, call.args.get(), call.kwargs.get(),
                                                                                          core_.stand_ins.among(call.args.get(), call.kwargs.get())).get())));
    if (core_.is_late(core_.stand_ins[target].value) || call.kind != WritingCall::Kind::itself) throw;
    if (function.flavour == ops::Flavour::numpy) return opaque_writes_.value_by_numpy(callable, function, target, call.args.get(), call.kwargs.get());
    if (writes_item(function)) throw;
    return opaque_writes_.value_by_torch(callable, function, target, call.args.get(), call.kwargs.get());
  }
  if (built.values.size() != 1) throw GraphBreak(fmt::format("{} writes several tensors", function.name));
  return written_value(function, target, built.values.front());
}

/// What was computed as it is written: of the dtype and shape of the tensor.
ir::ValueId RecordedWrites::written_value(const ForeignFunction& function, Index target, ir::ValueId value) {
  const DType dtype = core_.stand_ins[target].dtype;
  if (!function.ufunc && core_.graph.type(value).dtype != dtype) throw GraphBreak(fmt::format("{} into a tensor of another dtype than its result", function.name));
  memory_.require_shape_of(target, value, function);
  return core_.builder.cast(value, dtype);
}

}  // namespace tenon::python
