#include "python/recording/memory/device_results.h"

#include <fmt/format.h>

#include "python/foreign/foreign_arguments.h"
#include "python/library/torch_device.h"
#include "python/objects/graph_break.h"
#include "python/objects/pending_exception.h"
#include "python/results/twins.h"

namespace tenon::python {

std::optional<Ref> answer_of_device(PyObject* callable, std::string_view name, const StandIn& self, PyObject* args, PyObject* kwargs) {
  if (name == "device") return Ref::borrow(torch_device_object(*torch_library(), self.device));
  const bool asks = name == "get_device" || (name.starts_with("is_") && is_kind_of_device(*torch_library(), std::string(name.substr(3))));
  if (!asks) return std::nullopt;
  Ref scope = checked(PyObject_CallNoArgs(torch_library()->disable_subclass.get()));
  checked(PyObject_CallMethod(scope.get(), "__enter__", nullptr));
  Ref answer = Ref::steal(PyObject_Call(callable, args, kwargs));
  {
    const PendingException pending;
    checked(PyObject_CallMethod(scope.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  }
  if (!answer) throw PythonError();
  return answer;
}

std::optional<Ref> record_transfer(RecordedGraph& core, StandInUses& uses, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (!function.method || function.op || function.flavour != ops::Flavour::torch || PyTuple_GET_SIZE(args) == 0) return std::nullopt;
  const auto self = core.stand_ins.find(PyTuple_GET_ITEM(args, 0));
  const std::string kind(function.last_word());
  if (!self || !is_kind_of_device(*torch_library(), kind)) return std::nullopt;
  if (kind == "cpu" && core.stand_ins[*self].device.is_host()) return std::nullopt;
  PyObject* given = PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1) : kwargs ? PyDict_GetItemString(kwargs, "device") : nullptr;
  const bool indexed = given && PyLong_CheckExact(given);
  Ref device = given && given != Py_None && !indexed ? Ref::borrow(given) : checked(PyUnicode_FromString((indexed ? fmt::format("{}:{}", kind, PyLong_AsLong(given)) : kind).c_str()));
  Ref to = checked(PyObject_GetAttrString(torch_library()->tensor.get(), "to"));
  return uses.call(to.get(), checked(PyTuple_Pack(2, PyTuple_GET_ITEM(args, 0), device.get())).get(), nullptr);
}

bool transfers(const RecordedGraph& core, const ForeignFunction& function, const ops::ForeignResult& result, std::span<const StandIns::Index> operands) {
  if (!function.has(Trait::moves) || result.values.size() != 1 || operands.empty()) return false;
  return core.graph.type(result.values.front()).device != core.stand_ins[operands.front()].device;
}

Ref wrap_transferred(RecordedGraph& core, PyObject* callable, ir::ValueId value, PyObject* args, PyObject* kwargs) {
  Ref twin_args = on_meta_device(core.stand_ins.with_twins(args).get());
  Ref options = kwargs ? checked(PyDict_Copy(on_meta_device(core.stand_ins.with_twins(kwargs).get()).get())) : checked(PyDict_New());
  checked(PyDict_SetItemString(options.get(), "copy", Py_True));
  Ref twin = checked(PyObject_Call(callable, twin_args.get(), options.get()));
  const TensorSpec spec = read_twin(twin.get());
  const ir::Type& type = core.graph.type(value);
  if (spec.dtype != type.dtype || spec.shape != (core.is_late(value) ? core.symbols.hints(type.shape) : core.symbols.values(type.shape)))
    throw GraphBreak("a copy to another device of an uncommon kind");
  const StandIns::Index index = core.add_fresh(TensorKind::torch, value, spec);
  core.stand_ins.adopt_twin(index, twin.get());
  return core.stand_ins[index].object;
}

ir::Device device_of_results(RecordedGraph& core, const ForeignFunction& function, std::span<const StandIns::Index> operands, PyObject* args, PyObject* kwargs) {
  PyObject* named = known_torch_library() ? device_argument(function, args, kwargs) : nullptr;
  if (!named) return core.device_of(operands);
  require_one_device(*torch_library(), named);
  const ir::Device device = device_meant_by(*torch_library(), named);
  core.places.require_served(device);
  return device;
}

bool names_a_device(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const TorchLibrary* torch = known_torch_library();
  PyObject* named = torch ? device_argument(function, args, kwargs) : nullptr;
  return named && !device_meant_by(*torch, named).is_host();
}

}  // namespace tenon::python
