#include "core/rewrite/constant_values.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/build/node_builder.h"
#include "core/rewrite/rewriter.h"

namespace tenon::rewrite {
namespace {

constexpr std::string_view kConstantOp = "constant";  // the structural node that reads a constant

bool is_static(const ir::Type& type) {
  return type.is_tensor() && !type.strides && std::ranges::all_of(type.shape, [](const ir::Dim& d) { return d.is_constant(); });
}

std::vector<std::int64_t> static_shape(const ir::Type& type) {
  std::vector<std::int64_t> shape;
  for (const ir::Dim& d : type.shape) shape.push_back(d.constant());
  return shape;
}

std::vector<std::int64_t> row_major(const ir::Type& type) {
  std::vector<std::int64_t> strides;
  for (const ir::Dim& d : ir::row_major_strides(type.shape)) strides.push_back(d.constant());
  return strides;
}

bool is_static(const ir::Attribute& attribute) {
  const auto constant = [](const ir::Dim& d) { return d.is_constant(); };
  if (const auto* dim = std::get_if<ir::Dim>(&attribute)) return constant(*dim);
  const auto* dims = std::get_if<std::vector<ir::Dim>>(&attribute);
  return !dims || std::ranges::all_of(*dims, constant);
}

bool may_be_evaluated(const ir::Graph& graph, const ir::Node& node, std::size_t most_bytes) {
  if (!node.regions.empty() || node.operands.empty() || !is_pure(graph, node)) return false;
  if (std::ranges::any_of(node.attributes, [](const ir::NamedAttribute& a) { return !is_static(a.value); })) return false;
  return std::ranges::all_of(node.results, [&](ValueId result) {
    const ir::Type& type = graph.type(result);
    return is_static(type) && type.device.is_host() && type.element_count().constant() * static_cast<std::int64_t>(size_of(type.dtype)) <= static_cast<std::int64_t>(most_bytes);
  });
}

/// One view an operand; nothing when one is neither literal nor constant, or none is a constant.
std::optional<std::vector<ops::TensorView>> constant_operands(const ir::Graph& graph, const ir::Node& node) {
  std::vector<ops::TensorView> views;
  bool any_tensor = false;
  for (ValueId operand : node.operands) {
    ops::TensorView& view = views.emplace_back();
    if (graph.value(operand).kind == ir::ValueKind::literal) {
      const ir::Dim* integer = std::get_if<ir::Dim>(&graph.value(operand).literal);
      if (integer && !integer->is_constant()) return {};
      continue;
    }
    const ir::Constant* constant = constant_of(graph, operand);
    if (!constant || !is_static(constant->type)) return {};
    view = {const_cast<void*>(constant->data), constant->type.dtype, static_shape(constant->type), row_major(constant->type)};
    any_tensor = true;
  }
  if (!any_tensor) return {};
  return views;
}

}  // namespace

const ir::Constant* constant_of(const ir::Graph& graph, ValueId value) {
  const ir::Value& v = graph.value(value);
  if (v.kind != ir::ValueKind::result || graph.node(v.node).op != kConstantOp) return nullptr;
  const ir::Attribute* index = graph.node(v.node).attribute("index");
  const auto number = static_cast<std::size_t>(std::get<ir::Dim>(*index).constant());
  if (number >= graph.constants().size()) return nullptr;  // in a region: the constants are the outermost graph's
  const ir::Constant& constant = graph.constants()[number];
  return constant.data && constant.type.device.is_host() ? &constant : nullptr;
}

double element_of(const ir::Constant& constant, std::size_t i) {
  if (constant.type.dtype == DType::f64) return static_cast<const double*>(constant.data)[i];
  TENON_CHECK(constant.type.dtype == DType::f32, "a constant of {} is read as a number", name_of(constant.type.dtype));
  return static_cast<const float*>(constant.data)[i];
}

std::optional<std::vector<ops::HostTensor>> evaluate_node(const ir::Graph& graph, NodeId id, std::size_t most_bytes) {
  const ir::Node& node = graph.node(id);
  if (!may_be_evaluated(graph, node, most_bytes)) return {};
  const auto inputs = constant_operands(graph, node);
  if (!inputs) return {};

  std::vector<ops::HostTensor> results;
  std::vector<ops::TensorView> outputs;
  for (ValueId result : node.results) results.emplace_back(graph.type(result).dtype, static_shape(graph.type(result)));
  for (const ops::HostTensor& result : results) outputs.push_back(result.view());
  try {
    ops::NodeRun run;
    run.inputs = *inputs;
    run.outputs = outputs;
    ops::run_node(graph, id, run);
  } catch (const Exception& failure) {
    if (failure.code() == Code::invalid_argument || failure.code() == Code::unsupported) return {};
    throw;
  }
  return results;
}

ValueId add_constant_node(ir::Graph& graph, NodeId before, const ir::Type& type, ops::HostTensor tensor) {
  const auto owner = std::make_shared<const ops::HostTensor>(std::move(tensor));
  ops::NodeBuilder builder(graph, before);
  builder.at(graph.node(before).location);
  return builder.constant(type, {owner, owner->data()});
}

}  // namespace tenon::rewrite
