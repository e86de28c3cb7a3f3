#include "python/opaque/torch_node.h"

#include <algorithm>

#include "core/ops/catalog.h"
#include "core/ops/foreign/node_as_call.h"
#include "python/library/torch_device.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

constexpr std::string_view kTorch = "torch.", kByTorch = "tenon._by_torch.", kBothGradients = "tenon._by_torch.conv_gradients";

/// The object behind "torch.nn.functional.silu", or a function of ours over torch's; empty where there is none.
Ref function_named(const TorchLibrary& torch, std::string_view name) {
  const bool ours = name.starts_with(kByTorch);
  Ref object = ours ? checked(imported("tenon._by_torch")) : torch.module;
  for (name.remove_prefix(ours ? kByTorch.size() : kTorch.size()); object && !name.empty();) {
    const std::size_t dot = name.find('.');
    object = Ref::steal(PyObject_GetAttrString(object.get(), std::string(name.substr(0, dot)).c_str()));
    name.remove_prefix(dot == name.npos ? name.size() : dot + 1);
  }
  PyErr_Clear();
  return object;
}

template <class Sequence>
Ref list_of(const Sequence& items) {
  Ref list = checked(PyList_New(0));
  for (const Ref& item : items) checked(PyList_Append(list.get(), item.get()));
  return list;
}

}  // namespace

std::optional<TorchNode> TorchNode::of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  const ops::Op* op = ops::find_op(node.op);
  const TorchLibrary* torch = known_torch_library();
  if (!torch || !op || op->traits.random || op->traits.copies) return std::nullopt;
  auto call = ops::node_as_call(graph, id, kTorch);
  if (!call && is_float(graph.type(node.results.front()).dtype)) call = ops::node_as_call(graph, id, kByTorch);
  if (!call) return std::nullopt;
  TorchNode found;
  found.name_ = call->name;
  found.callable_ = function_named(*torch, found.name_);
  if (!found.callable_ || !PyCallable_Check(found.callable_.get())) return std::nullopt;
  found.call_ = std::move(*call);
  found.operands_ = node.operands;
  return found;
}

std::optional<TorchNode> TorchNode::of_both(const ir::Graph& graph, ir::NodeId of_input, ir::NodeId of_weight) {
  const ir::Node &x = graph.node(of_input), &w = graph.node(of_weight);
  if (x.op != "conv_input_sum" || w.op != "conv_weight_sum" || x.operands[1] != w.operands[1]) return std::nullopt;
  const auto same_shape = [&](ir::ValueId a, ir::ValueId b) { return graph.type(a).shape == graph.type(b).shape; };
  if (!same_shape(x.results[0], w.operands[0]) || !same_shape(w.results[0], x.operands[0])) return std::nullopt;
  for (const char* name : {"before", "dilation", "groups", "stride"})
    if (!(*x.attribute(name) == *w.attribute(name))) return std::nullopt;
  auto call = ops::node_as_call(graph, of_weight, kByTorch);
  if (!call) return std::nullopt;
  TorchNode both;
  both.name_ = kBothGradients;
  both.callable_ = function_named(*known_torch_library(), both.name_);
  call->positional.insert(call->positional.begin(), ops::ForeignArgument{x.operands[0]});
  both.call_ = std::move(*call);
  both.operands_ = {x.operands[0], w.operands[0], w.operands[1]};
  return both;
}

Ref TorchNode::argument(const ops::ForeignArgument& given, bool device, std::span<const Ref> operands, std::span<const std::int64_t> symbols) const {
  const TorchLibrary& torch = *known_torch_library();
  if (const auto* value = given.as<ir::ValueId>()) return operands[static_cast<std::size_t>(std::ranges::find(operands_, *value) - operands_.begin())];
  if (const auto* flag = given.as<bool>()) return Ref::borrow(*flag ? Py_True : Py_False);
  if (const auto* dim = given.as<ir::Dim>()) return checked(PyLong_FromLongLong(dim->evaluate(symbols)));
  if (const auto* number = given.as<double>()) return checked(PyFloat_FromDouble(*number));
  if (const auto* dtype = given.as<DType>()) return torch.dtypes[static_cast<std::size_t>(*dtype)];
  if (const auto* word = given.as<std::string>())
    return device ? Ref::borrow(torch_device_object(torch, ir::device_named(*word))) : checked(PyUnicode_FromString(word->c_str()));
  if (const auto* list = given.as<ops::ForeignList>()) {
    std::vector<Ref> items;
    for (const ops::ForeignArgument& each : *list) items.push_back(argument(each, false, operands, symbols));
    return list_of(items);
  }
  return Ref::borrow(Py_None);
}

namespace {

bool is_number(const ops::ForeignArgument& given) { return given.as<double>() || given.as<ir::Dim>() || given.as<bool>(); }

/// A tensor without dimensions, in the host's memory, where it may stand beside those of a device.
Ref as_tensor(const TorchLibrary& torch, const Ref& number, PyObject* dtype) {
  Ref args = checked(PyTuple_Pack(1, number.get())), kwargs = checked(Py_BuildValue("{sO}", "dtype", dtype));
  return checked(PyObject_Call(checked(PyObject_GetAttrString(torch.module.get(), "scalar_tensor")).get(), args.get(), kwargs.get()));
}

/// Of the operand that is a tensor.
Ref dtype_of(std::span<const Ref> operands) {
  const auto tensor = std::ranges::find_if(operands, [](const Ref& operand) { return static_cast<bool>(operand); });
  return checked(PyObject_GetAttrString(tensor->get(), "dtype"));
}

}  // namespace

TorchNode::Arguments TorchNode::arguments(std::span<const Ref> operands, std::span<const std::int64_t> symbols, PyObject* dtype_of_numbers) const {
  std::vector<Ref> positional;
  for (const ops::ForeignArgument& each : call_.positional) {
    Ref given = argument(each, false, operands, symbols);
    positional.push_back(dtype_of_numbers && is_number(each) ? as_tensor(*known_torch_library(), given, dtype_of_numbers) : std::move(given));
  }
  Arguments made{checked(PyList_AsTuple(list_of(positional).get())), checked(PyDict_New())};
  for (const auto& [name, each] : call_.keyword) checked(PyDict_SetItemString(made.keyword.get(), name.c_str(), argument(each, name == "device", operands, symbols).get()));
  return made;
}

Ref TorchNode::answer_with_tensors(std::span<const Ref> operands, std::span<const std::int64_t> symbols) const {
  const bool some = std::ranges::any_of(operands, [](const Ref& operand) { return static_cast<bool>(operand); });
  if (!PyErr_ExceptionMatches(PyExc_TypeError) || !takes_numbers_ || !some || std::ranges::none_of(call_.positional, is_number)) throw PythonError();
  PyErr_Clear();
  takes_numbers_ = false;
  return answer(operands, symbols, nullptr);
}

Ref TorchNode::answer(std::span<const Ref> operands, std::span<const std::int64_t> symbols, PyObject* target) const {
  const Ref dtype = takes_numbers_ ? Ref() : dtype_of(operands);
  const Arguments given = arguments(operands, symbols, dtype.get());
  if (target) checked(PyDict_SetItemString(given.keyword.get(), "out", target));
  return checked(PyObject_Call(callable_.get(), given.positional.get(), given.keyword.get()));
}

bool TorchNode::run_into(std::span<const Ref> operands, std::span<const std::int64_t> symbols, PyObject* target) const {
  if (!takes_target_) return false;
  try {
    if (answer(operands, symbols, target).is(target)) return true;
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  takes_target_ = false;
  return false;
}

std::vector<Ref> TorchNode::run(std::span<const Ref> operands, std::span<const std::int64_t> symbols) const {
  Ref answer;
  try {
    answer = this->answer(operands, symbols, nullptr);
  } catch (const PythonError&) {
    answer = answer_with_tensors(operands, symbols);
  }
  std::vector<Ref> results;
  if (!PyTuple_Check(answer.get()) && !PyList_Check(answer.get())) return {std::move(answer)};
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(answer.get()); ++i) results.push_back(Ref::borrow(PySequence_Fast_GET_ITEM(answer.get(), i)));
  return results;
}

}  // namespace tenon::python
