#include "python/graph/lifted_graph.h"

#include <algorithm>
#include <unordered_map>

#include "core/ops/build/node_builder.h"
#include "python/graph/row_major_bytes.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// The type of an argument that the program does not use.
ir::Type type_of_unused(const ArgumentTensor& argument) {
  auto read = read_spec(argument.object);
  if (const auto* odd = std::get_if<std::string>(&read)) throw GraphBreak(*odd + " as an argument of an exported program");
  const TensorSpec& spec = std::get<TensorSpec>(read);
  if (!spec.device.is_host()) throw GraphBreak("a tensor of a device as an argument of an exported program");
  return ir::Type::tensor(spec.dtype, ir::Shape(spec.shape.begin(), spec.shape.end()));
}

class Lifting {
 public:
  Lifting(const CapturedGraph& captured, std::span<PyObject* const> objects) : from_(captured.recording->graph), captured_(captured), objects_(objects) {
    to_.name = from_.name;
    for (const ir::SymbolInfo& symbol : from_.symbols()) to_.add_symbol(symbol);
    for (const ir::Constant& constant : from_.constants()) to_.add_constant(constant);
  }

  ir::Graph run(std::span<const ArgumentTensor> arguments) {
    for (const ArgumentTensor& argument : arguments) add_argument(argument);
    for (std::size_t i = 0; i < objects_.size(); ++i)
      if (!values_.contains(from_.inputs()[i])) freeze(i);
    for (ir::NodeId node : from_.nodes()) copy(from_.node(node));
    for (std::uint32_t output : captured_.outputs) add_output(captured_.tensors[output]);
    for (const ir::Output& output : from_.outputs())
      if (output.kind == ir::OutputKind::update) add_update(output);
    return std::move(to_);
  }

 private:
  void add_argument(const ArgumentTensor& argument) {
    const auto found = std::find(objects_.begin(), objects_.end(), argument.object);
    if (found == objects_.end()) {
      to_.add_input(type_of_unused(argument), argument.name);
      return;
    }
    const ir::ValueId input = from_.inputs()[static_cast<std::size_t>(found - objects_.begin())];
    values_[input] = to_.add_input(from_.type(input), argument.name);
  }

  void freeze(std::size_t position) {
    const ir::ValueId input = from_.inputs()[position];
    const TensorSpec& spec = captured_.inputs[position];
    auto bytes = row_major_bytes(spec, objects_[position]);
    ir::Constant constant;
    constant.type = ir::Type::tensor(spec.dtype, ir::Shape(spec.shape.begin(), spec.shape.end()));
    constant.data = bytes->data();
    constant.owner = bytes;
    constant.name = from_.value(input).name;
    const ir::Type type = constant.type;
    const ConstantId id = to_.add_constant(std::move(constant));
    const std::string names[] = {from_.value(input).name};
    const ir::NodeId node = to_.add_node("constant", {}, {{"index", ir::Dim(id.value)}}, {type}, {}, {}, {}, names);
    values_[input] = to_.node(node).results.front();
  }

  ir::ValueId value(ir::ValueId id) {
    const auto known = values_.find(id);
    if (known != values_.end()) return known->second;
    return values_[id] = to_.add_literal(from_.value(id).literal);
  }

  void copy(const ir::Node& node) {
    std::vector<ir::ValueId> operands;
    for (ir::ValueId operand : node.operands) operands.push_back(value(operand));
    std::vector<ir::RegionId> regions;
    for (ir::RegionId region : node.regions) regions.push_back(to_.add_region(from_.region(region).clone()));
    std::vector<ir::Type> types;
    std::vector<std::string> names;
    for (ir::ValueId result : node.results) {
      types.push_back(from_.type(result));
      names.push_back(from_.value(result).name);
    }
    const ir::NodeId made = to_.add_node(node.op, std::move(operands), node.attributes, std::move(types), node.location, std::move(regions), {}, names);
    for (std::size_t i = 0; i < node.results.size(); ++i) values_[node.results[i]] = to_.node(made).results[i];
  }

  /// Each output is a value of its own, in the layout that eager execution gives it where that leaves no gaps.
  void add_output(const TensorOutput& output) {
    if (!output.value) throw GraphBreak("a result of an exported program is an unusual view of a tensor that it writes", "return a .clone() of it");
    ir::ValueId id = value(output.value);
    const bool taken = std::any_of(to_.outputs().begin(), to_.outputs().end(), [&](const ir::Output& o) { return o.value == id; });
    const bool plain = is_row_major(output.shape, output.strides) || memory_order(output.shape, output.strides).empty();
    if (taken || !plain || to_.value(id).kind != ir::ValueKind::result) id = ops::NodeBuilder(to_).one("reshape", {id}, {{"shape", to_.type(id).shape}});
    if (!plain) to_.set_strides(id, ir::Shape(output.strides.begin(), output.strides.end()));
    to_.add_output({id, ir::OutputKind::result, {}});
  }

  void add_update(const ir::Output& output) {
    const ir::ValueId target = values_.at(output.target);
    if (to_.value(target).kind != ir::ValueKind::input)
      throw GraphBreak("an exported program writes into " + from_.value(output.target).name + ", which is no argument",
                       "call eval() on the module, or give the tensor as an argument");
    to_.add_output({value(output.value), output.kind, target});
  }

  const ir::Graph& from_;
  const CapturedGraph& captured_;
  std::span<PyObject* const> objects_;
  ir::Graph to_;
  std::unordered_map<ir::ValueId, ir::ValueId> values_;
};

}  // namespace

ir::Graph lifted_graph(const CapturedGraph& captured, std::span<PyObject* const> objects, std::span<const ArgumentTensor> arguments) {
  return Lifting(captured, objects).run(arguments);
}

}  // namespace tenon::python
