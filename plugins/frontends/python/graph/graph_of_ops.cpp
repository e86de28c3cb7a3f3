#include "python/graph/graph_of_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <variant>

#include "core/ir/printer.h"
#include "core/ops/catalog.h"
#include "python/graph/traced_graph.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/sequences.h"
#include "python/opaque/opaque_call.h"
#include "python/opaque/torch_node.h"
#include "python/results/torch_results.h"

namespace tenon::python {
namespace {

Ref method_of_tensors(const char* name) { return checked(PyObject_GetAttrString(known_torch_library()->tensor.get(), name)); }

std::shared_ptr<OpaqueCall> opaque_call_of(const ir::Node& node) {
  auto call = OpaqueCall::find(std::get<ir::Dim>(*node.attribute("handle")).constant());
  if (!call) throw GraphBreak("an opaque call of the graph is gone");
  if (!std::ranges::all_of(call->operands, [](TensorKind kind) { return kind == TensorKind::torch; })) throw GraphBreak("a function of NumPy in a graph that computes gradients");
  return call;
}

/// What an attribute says, in Python's words; empty for nothing.
Ref object_of(const ir::Attribute& attribute) {
  return std::visit([](const auto& value) -> Ref {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, bool>) return Ref::borrow(value ? Py_True : Py_False);
    else if constexpr (std::is_same_v<T, ir::Dim>) return checked(PyLong_FromLongLong(value.constant()));
    else if constexpr (std::is_same_v<T, double>) return checked(PyFloat_FromDouble(value));
    else if constexpr (std::is_same_v<T, std::string>) return make_text(value);
    else if constexpr (std::is_same_v<T, DType>) return known_torch_library()->dtypes[static_cast<std::size_t>(value)];
    else if constexpr (std::is_same_v<T, std::monostate>) return {};
    else {
      std::vector<Ref> items;
      for (const auto& item : value) items.push_back(object_of(ir::Attribute(item)));
      return list_of(std::move(items));
    }
  }, attribute);
}

/// The function of `tenon._ops` for an op. Throws GraphBreak where there is none.
Ref function_of_op(const std::string& op) {
  Ref function = Ref::steal(PyObject_GetAttrString(checked(imported("tenon._ops")).get(), op.c_str()));
  PyErr_Clear();
  if (!function) throw GraphBreak(fmt::format("the graph computes gradients and holds the op '{}', for which torch has no function", op));
  return function;
}

/// The function of torch's that does just what a node does, where there is one.
std::optional<TorchNode> torch_node_of(const ir::Graph& graph, ir::NodeId id) {
  const Ref instead = checked(PyObject_GetAttrString(checked(imported("tenon._ops")).get(), "INSTEAD"));
  if (checked(PySet_Contains(instead.get(), make_text(std::string(std::string_view(graph.node(id).op))).get())) != 0) return std::nullopt;
  return TorchNode::of(graph, id);
}

bool reads_number(const ir::Graph& graph, const ir::Node& node) {
  return std::ranges::any_of(node.operands, [&](ir::ValueId v) { return graph.value(v).kind == ir::ValueKind::literal; });
}

/// The nodes as calls, in order.
class CallsOfOps {
 public:
  CallsOfOps(const CapturedGraph& captured, const std::vector<bool>& given) : captured_(captured), graph_(captured.graph()), given_(given), values_(graph_.value_capacity()) {
    // Inputs have their names before what uses them.
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
      if (given_[i]) add_input(i);
    for (ir::NodeId id : graph_.nodes()) add_node(id);
  }

  Ref inputs() const { return list_of(inputs_); }
  Ref calls() const { return list_of(calls_); }
  Ref op_names() const { return list_of(op_names_); }

  Ref outputs() const {
    std::vector<Ref> outputs;
    for (const ir::Output& output : graph_.outputs())
      if (output.kind != ir::OutputKind::update) outputs.push_back(values_[output.value.value]);
    return list_of(std::move(outputs));
  }

  /// (name of the input, its new value) of each.
  Ref updates() const {
    std::vector<Ref> updates;
    for (const ir::Output& output : graph_.outputs())
      if (output.kind == ir::OutputKind::update) updates.push_back(checked(PyTuple_Pack(2, make_text(name_of_input(output.target)).get(), values_[output.value.value].get())));
    return list_of(std::move(updates));
  }

 private:
  const std::string& name_of_input(ir::ValueId input) const { return names_[graph_.value(input).index]; }

  std::string free_name(const std::string& wish) {
    std::string name = wish;
    for (int n = 1; !taken_.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
    return name;
  }

  Ref define(const std::string& wish) { return make_value_reference(free_name(wish)); }

  std::string type_text(ir::ValueId value) const { return ir::print_type(graph_, graph_.type(value)); }

  void add_input(std::size_t i) {
    const ir::ValueId input = graph_.inputs()[i];
    const bool number = captured_.inputs[i].kind == TensorKind::scalar;
    names_.resize(graph_.inputs().size());
    names_[i] = free_name(graph_.value(input).name.empty() ? fmt::format("input_{}", i) : graph_.value(input).name);
    values_[input.value] = make_value_reference(names_[i]);
    inputs_.push_back(checked(Py_BuildValue("(sss)", names_[i].c_str(), number ? "float" : type_text(input).c_str(), names_[i].c_str())));
    if (!number) return;
    Ref function = checked(PyObject_GetAttrString(known_torch_library()->module.get(), "scalar_tensor"));
    Ref kwargs = checked(Py_BuildValue("{sO}", "dtype", known_torch_library()->dtypes[static_cast<std::size_t>(graph_.type(input).dtype)].get()));
    values_[input.value] = call(function.get(), "torch.scalar_tensor", tuple_of({values_[input.value]}), std::move(kwargs), names_[i], type_text(input), {});
  }

  /// Adds a call that gives one value, and gives its name.
  Ref call(PyObject* function, const std::string& op_name, Ref args, Ref kwargs, const std::string& wish, const std::string& type, const ir::SharedLocation& location) {
    Ref made = define(wish);
    add(made, function, op_name, std::move(args), std::move(kwargs), tuple_of({make_text(type)}), location);
    return made;
  }

  void add(const Ref& results, PyObject* function, const std::string& op_name, Ref args, Ref kwargs, Ref types, const ir::SharedLocation& location) {
    Ref where = checked(Py_BuildValue("(siss)", location->file.c_str(), location->line, location->function.c_str(), location->code.c_str()));
    if (!kwargs) kwargs = checked(PyDict_New());
    calls_.push_back(checked(PyTuple_Pack(6, results.get(), function, args.get(), kwargs.get(), types.get(), where.get())));
    op_names_.push_back(make_text(op_name));
  }

  void add_node(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (node.op == "constant") values_[node.results[0].value] = constant(std::get<ir::Dim>(*node.attribute("index")).constant());
    else if (node.op == "opaque") add_opaque(node);
    else if (const auto torch = torch_node_of(graph_, id)) add_torch_node(node, *torch);
    else add_op(node);
  }

  /// The tensor itself.
  Ref constant(std::int64_t index) const {
    const ir::Constant& constant = graph_.constants()[static_cast<std::size_t>(index)];
    if (!constant.type.device.is_host()) throw GraphBreak("a constant on a device, in a graph that computes gradients");
    Extents shape;
    for (const ir::Dim& d : constant.type.shape) shape.push_back(d.constant());
    Ref over = torch_tensor_over(*known_torch_library(), constant.type.dtype, shape, row_major(shape), const_cast<void*>(constant.data));
    return checked(PyObject_CallMethod(over.get(), "clone", nullptr));
  }

  /// Names what a call gives: one value, or a tuple of them. Tokens are nothing that a call gives.
  void add_results(const ir::Node& node, std::span<const ir::ValueId> results, PyObject* function, const std::string& op_name, Ref args, Ref kwargs) {
    const std::string wish(short_name(node.op == "opaque" ? std::string_view(op_name) : std::string_view(node.op)));
    std::vector<Ref> given, types;
    for (ir::ValueId v : results) {
      given.push_back(values_[v.value] = define(wish));
      types.push_back(make_text(type_text(v)));
    }
    const ops::Op* op = ops::find_op(node.op);
    const bool several = given.size() != 1 || (op && op->schema.ends_with("-> Tensor[]") && node.op != "opaque");
    Ref pattern = several ? tuple_of(given) : given[0];
    add(pattern, function, op_name, std::move(args), std::move(kwargs), tuple_of(std::move(types)), node.location);
  }

  static std::string_view short_name(std::string_view op) {
    op.remove_prefix(op.rfind('.') + 1);
    while (op.starts_with('_')) op.remove_prefix(1);
    while (op.ends_with('_')) op.remove_suffix(1);
    return op.empty() ? "value" : op;
  }

  void add_torch_node(const ir::Node& node, const TorchNode& torch) {
    std::vector<Ref> operands;
    for (ir::ValueId v : node.operands) operands.push_back(graph_.value(v).kind == ir::ValueKind::literal ? Ref() : values_[v.value]);
    const Ref dtype = reads_number(graph_, node) && !takes_numbers(node, torch) ? dtype_of_numbers(node) : Ref();
    TorchNode::Arguments given = torch.arguments(operands, {}, dtype.get());
    add_results(node, node.results, torch.callable(), torch.function(), std::move(given.positional), std::move(given.keyword));
  }

  /// By the function that is named like the op, which takes operands by position and attributes by name.
  void add_op(const ir::Node& node) {
    const std::string op(std::string_view(node.op));
    std::vector<Ref> operands;
    for (ir::ValueId v : node.operands) operands.push_back(graph_.value(v).kind == ir::ValueKind::literal ? number(graph_.value(v).literal) : values_[v.value]);
    Ref attributes = checked(PyDict_New());
    for (const ir::NamedAttribute& a : node.attributes)
      if (Ref value = object_of(a.value)) checked(PyDict_SetItemString(attributes.get(), std::string(std::string_view(a.name)).c_str(), value.get()));
    add_results(node, node.results, function_of_op(op).get(), "tenon._ops." + op, tuple_of(std::move(operands)), std::move(attributes));
  }

  static Ref number(const ir::Literal& literal) {
    return std::visit([](const auto& value) { return object_of(ir::Attribute(value)); }, literal);
  }

  /// That of the first operand that is a tensor; empty where none is.
  Ref dtype_of_numbers(const ir::Node& node) const {
    for (ir::ValueId v : node.operands)
      if (graph_.value(v).kind != ir::ValueKind::literal) return known_torch_library()->dtypes[static_cast<std::size_t>(graph_.type(v).dtype)];
    return {};
  }

  /// Whether a function takes numbers among its operands (torch.maximum takes tensors alone): tried with tensors that have no memory.
  bool takes_numbers(const ir::Node& node, const TorchNode& torch) const {
    const TorchLibrary& library = *known_torch_library();
    std::vector<Ref> operands;
    for (ir::ValueId v : node.operands) {
      if (graph_.value(v).kind == ir::ValueKind::literal) {
        operands.emplace_back();
        continue;
      }
      Extents shape;
      for (const ir::Dim& d : graph_.type(v).shape) shape.push_back(d.constant());
      operands.push_back(empty_strided(library, library.meta.get(), graph_.type(v).dtype, shape, row_major(shape)));
    }
    const TorchNode::Arguments given = torch.arguments(operands, {});
    const Ref answer = Ref::steal(PyObject_Call(torch.callable(), given.positional.get(), given.keyword.get()));
    const bool refused = !answer && PyErr_ExceptionMatches(PyExc_TypeError);
    PyErr_Clear();
    return !refused;
  }

  void add_opaque(const ir::Node& node) {
    const std::shared_ptr<OpaqueCall> opaque = opaque_call_of(node);
    std::vector<Ref> operands;
    for (ir::ValueId v : node.operands)
      if (graph_.type(v).is_tensor()) operands.push_back(opaque_operand(*opaque, operands.size(), v, node));
    std::vector<PyObject*> given;
    for (const Ref& operand : operands) given.push_back(operand.get());
    std::vector<ir::ValueId> results, made;
    for (ir::ValueId v : node.results)
      if (graph_.type(v).is_tensor()) results.push_back(v);
    made.assign(results.begin(), results.end() - static_cast<std::ptrdiff_t>(opaque->written.size()));
    add_results(node, made, opaque->callable(), opaque->target(), opaque->arguments(given.data()), opaque->named_arguments(given.data()));
    for (std::size_t k = 0; k < opaque->written.size(); ++k) values_[results[made.size() + k].value] = operands[opaque->written[k]];
    for (std::size_t k = 0; k < results.size(); ++k)
      if (const MemoryOrder& order = opaque->results[k].order; !std::ranges::is_sorted(order)) values_[results[k].value] = permuted(values_[results[k].value], order, node);
  }

  /// As the call gets it: in its own order, in memory of its own where it may be written or kept, or as a number.
  Ref opaque_operand(const OpaqueCall& opaque, std::size_t place, ir::ValueId value, const ir::Node& node) {
    Ref operand = values_[value.value];
    const bool number = std::ranges::find(opaque.numbers, place) != opaque.numbers.end();
    if (number) return call(method_of_tensors("item").get(), "torch.Tensor.item", tuple_of({operand}), {}, "number", "float", node.location);
    const MemoryOrder& order = opaque.orders[place];
    if (!order.empty()) operand = call(method_of_tensors("contiguous").get(), "torch.Tensor.contiguous", tuple_of({operand}), {}, "contiguous", type_text(value), node.location);
    if (!std::ranges::is_sorted(order)) operand = permuted(operand, inverse(order), node);
    if (opaque.may_keep_arguments) operand = call(method_of_tensors("clone").get(), "torch.Tensor.clone", tuple_of({operand}), {}, "clone", type_text(value), node.location);
    return operand;
  }

  Ref permuted(const Ref& tensor, const MemoryOrder& order, const ir::Node& node) {
    Ref args = tuple_of({tensor, integer_tuple(order)});
    return call(method_of_tensors("permute").get(), "torch.Tensor.permute", std::move(args), {}, "permute", "", node.location);
  }

  const CapturedGraph& captured_;
  const ir::Graph& graph_;
  const std::vector<bool>& given_;
  std::vector<Ref> values_;          // by ValueId: references, or constants
  std::vector<std::string> names_;   // by input
  std::unordered_set<std::string> taken_;
  std::vector<Ref> inputs_, calls_, op_names_;
};

void require_tensors_of_torch(const CapturedGraph& captured) {
  const auto is_array = [](const auto& kind) { return kind == TensorKind::array; };
  const bool arrays = std::ranges::any_of(captured.inputs, is_array, &TensorSpec::kind) || std::ranges::any_of(captured.tensors, [](const TensorOutput& t) {
    return t.kind == TensorOutput::Kind::fresh && t.tensor != TensorKind::torch && !t.plain_number;
  });
  if (arrays) throw GraphBreak("NumPy's arrays in a graph that computes gradients");
  if (!captured.graph().symbols().empty()) throw GraphBreak("sizes that depend on data, in a graph that computes gradients");
}

}  // namespace

bool is_of_ops(const CapturedGraph& captured) { return captured.gradients || captured.walks || captured.recording->is_backward; }

void require_calls_of_ops(const CapturedGraph& captured) {
  require_tensors_of_torch(captured);
  const ir::Graph& graph = captured.graph();
  for (ir::NodeId id : graph.nodes())
    if (const ir::Node& node = graph.node(id); node.op != "constant" && node.op != "opaque" && !torch_node_of(graph, id)) function_of_op(std::string(std::string_view(node.op)));
}

Ref graph_of_ops(const CapturedGraph& captured, const std::string& name, const std::vector<bool>& given) {
  require_tensors_of_torch(captured);
  const CallsOfOps made(captured, given);
  return make_traced_graph({.name = name,
                            .text = ir::print_graph(captured.graph()),
                            .inputs = made.inputs(),
                            .copies = checked(PyList_New(0)),
                            .numbers = checked(PyList_New(0)),
                            .calls = made.calls(),
                            .outputs = made.outputs(),
                            .updates = made.updates(),
                            .op_names = made.op_names(),
                            .is_backward = captured.recording->is_backward});
}

}  // namespace tenon::python
