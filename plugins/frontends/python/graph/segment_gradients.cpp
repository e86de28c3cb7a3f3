#include "python/graph/segment_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/base/error.h"
#include "core/rewrite/differentiated.h"
#include "python/graph/captured_graph.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "tenon/host.h"

namespace tenon::python {
namespace {

bool varies(const ir::Shape& shape) {
  return !std::ranges::all_of(shape, [](const ir::Dim& d) { return d.is_constant(); });
}

Extents sizes_now(const CapturedGraph& captured, const ir::Shape& shape) {
  Extents sizes;
  for (const ir::Dim& d : shape)
    sizes.push_back(d.is_constant() ? d.constant() : d.evaluate({captured.numbers->values(), captured.numbers->sources().size()}));
  return sizes;
}

/// A tensor in memory of its own that holds an output of a graph; its dimensions lie in the given order, or row-major.
TensorOutput fresh_tensor(const CapturedGraph& captured, const ir::Type& type, std::size_t output, std::vector<std::int64_t> order = {}) {
  TensorOutput made;
  made.kind = TensorOutput::Kind::fresh;
  made.tensor = TensorKind::torch;
  made.index = static_cast<std::uint32_t>(output);
  made.dtype = type.dtype;
  made.shape = sizes_now(captured, type.shape);
  if (order.empty()) {
    order.resize(type.shape.size());
    std::iota(order.begin(), order.end(), 0);
  }
  made.strides = dense_strides(made.shape, order);
  if (varies(type.shape)) {
    made.varying_shape = type.shape;
    made.order = std::move(order);
  }
  return made;
}

/// How a result lies, over the symbols of its graph; nothing for row-major order.
std::optional<ir::Shape> strides_of(const TensorOutput& output, const ir::Type& type) {
  if (output.varying_shape.empty()) {
    if (is_row_major(output.shape, output.strides)) return std::nullopt;
    return ir::Shape(output.strides.begin(), output.strides.end());
  }
  if (std::ranges::is_sorted(output.order)) return std::nullopt;
  ir::Shape strides(output.order.size());
  ir::Dim step(1);
  for (std::size_t k = output.order.size(); k-- > 0;) {
    const auto dim = static_cast<std::size_t>(output.order[k]);
    strides[dim] = step;
    step = step * type.shape[dim];
  }
  return strides;
}

/// The metadata of a tensor that the segment makes, as far as finding its elements needs it.
TensorSpec made_spec(DType dtype, Extents shape, Extents strides) {
  TensorSpec spec;
  const TorchLibrary& torch = *known_torch_library();
  spec.dtype = dtype;
  spec.type = reinterpret_cast<PyTypeObject*>(torch.tensor.get());
  spec.shape = std::move(shape);
  spec.strides = std::move(strides);
  spec.key_set = torch.direct_fields ? torch.plain_keys : 0;
  return spec;
}

void require_values(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  const auto nodes = graph.nodes();
  for (ir::ValueId v : values)
    if (graph.value(v).kind == ir::ValueKind::result && std::ranges::find(nodes, graph.value(v).node) == nodes.end())
      throw GraphBreak("a branch is decided by what a gradient takes apart");
}

/// The order in which the dimensions of a gradient lie: as those of its tensor where that is dense.
std::vector<std::int64_t> order_of_gradient(const TensorSpec& spec) {
  if (spec.varies() || is_row_major(spec.shape, spec.strides)) return {};
  return memory_order(spec.shape, spec.strides);
}

/// What a captured graph needs to be compiled and run, of one that nobody traced.
void set_graph(CapturedGraph& captured, ir::Graph graph) {
  captured.input_steps.resize(captured.inputs.size());
  captured.recording = std::make_unique<Recording>(std::move(graph), Trace{}, std::vector<std::string>{});
}

TensorSpec spec_of_gradient(const TensorOutput& of) { return made_spec(of.dtype, of.shape, row_major(of.shape)); }

std::uint32_t tensor_of_output(const CapturedGraph& captured, std::uint32_t output) {
  const auto tensor = std::ranges::find_if(captured.tensors, [&](const TensorOutput& t) { return t.kind == TensorOutput::Kind::fresh && t.index == output; });
  return static_cast<std::uint32_t>(tensor - captured.tensors.begin());
}

/// The inputs with a gradient, by number among them: what the forward reads first has its gradient last; those of one node come in its order.
std::vector<std::uint32_t> order_of_gradients(const ir::Graph& forward, std::span<const std::uint32_t> wanted, const rewrite::BackwardGraph& part) {
  struct Read {
    std::ptrdiff_t node, operand;
    std::uint32_t number;
  };
  std::vector<Read> first_reads;
  const auto nodes = forward.nodes();
  for (std::size_t w = 0; w < wanted.size(); ++w) {
    if (!part.gradients[w]) continue;
    const ir::ValueId input = forward.inputs()[wanted[w]];
    const auto place_in = [&](NodeId id) { return std::ranges::find(forward.node(id).operands, input) - forward.node(id).operands.begin(); };
    const auto reader = std::ranges::find_if(nodes, [&](NodeId id) { return place_in(id) < std::ssize(forward.node(id).operands); });
    first_reads.push_back({reader - nodes.begin(), reader == nodes.end() ? 0 : place_in(*reader), static_cast<std::uint32_t>(first_reads.size())});
  }
  std::ranges::sort(first_reads, [](const Read& a, const Read& b) { return std::tie(b.node, a.operand) < std::tie(a.node, b.operand); });
  std::vector<std::uint32_t> order;
  for (const Read& read : first_reads) order.push_back(read.number);
  return order;
}

/// A graph of gradients as it is run.
GradientGraph captured_gradients(const CapturedGraph& captured, const GradientNode& node, std::span<const std::uint32_t> wanted, rewrite::BackwardGraph part,
                                 std::span<const TangentLayout> tangents) {
  auto made = std::make_shared<CapturedGraph>();
  made->numbers = captured.numbers;
  made->opaque_calls = captured.opaque_calls;
  const auto next_input = [&] { return part.graph.inputs()[made->inputs.size()]; };
  for (std::uint32_t i : part.kept_inputs) made->inputs.push_back(captured.inputs[i]);
  for (std::uint32_t t : node.kept_tensors) {
    const TensorOutput& tensor = captured.tensors[t];
    if (const auto strides = strides_of(tensor, part.graph.type(next_input()))) part.graph.set_strides(next_input(), *strides);
    made->inputs.push_back(made_spec(tensor.dtype, tensor.shape, tensor.strides));
  }
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    const TensorOutput& tensor = captured.tensors[node.results[k]];
    TensorSpec spec = spec_of_gradient(tensor);
    std::optional<ir::Shape> strides;
    if (tangents[k] == TangentLayout::as_result) strides = strides_of(tensor, part.graph.type(next_input()));
    else if (tangents[k] == TangentLayout::one_element) strides = ir::Shape(tensor.shape.size(), ir::Dim(0));
    if (strides) part.graph.set_strides(next_input(), *strides);
    made->inputs.push_back(std::move(spec));
  }
  for (std::size_t w = 0; w < wanted.size(); ++w)
    if (const auto output = part.gradients[w])
      made->tensors.push_back(fresh_tensor(captured, part.graph.type(part.graph.outputs()[*output].value), *output, order_of_gradient(captured.inputs[wanted[w]])));
  set_graph(*made, std::move(part.graph));
  return {std::move(made), std::move(part.gradients)};
}

GradientNode node_of(const CapturedGraph& captured, const ir::Graph& forward, std::span<const std::uint32_t> wanted, rewrite::BackwardGraph part) {
  GradientNode node;
  node.order = order_of_gradients(forward, wanted, part);
  for (std::uint32_t o : part.outputs) node.results.push_back(tensor_of_output(captured, o));
  for (std::uint32_t o : part.kept_outputs) node.kept_tensors.push_back(tensor_of_output(captured, o));
  node.part = {.graph = {}, .outputs = part.outputs, .kept_inputs = part.kept_inputs, .kept_outputs = part.kept_outputs, .gradients = part.gradients};
  node.whole = captured_gradients(captured, node, wanted, std::move(part), std::vector<TangentLayout>(node.results.size(), TangentLayout::row_major));
  return node;
}

/// What the host says is cheapest.
std::vector<bool> cheapest_to_keep(const rewrite::KeepNetwork& network) {
  std::vector<std::int64_t> keep, compute;
  std::vector<std::uint8_t> needed, kept(network.values.size());
  std::vector<std::uint32_t> ends, operands;
  for (const rewrite::KeepNetwork::Value& value : network.values) {
    keep.push_back(value.keep);
    compute.push_back(value.compute);
    needed.push_back(value.needed);
    operands.insert(operands.end(), value.operands.begin(), value.operands.end());
    ends.push_back(static_cast<std::uint32_t>(operands.size()));
  }
  const TenonKeepNetwork given{sizeof(TenonKeepNetwork), network.values.size(), keep.data(), compute.data(), needed.data(), ends.data(), operands.data()};
  if (tenon_choose_kept(&given, kept.data()) != TENON_OK) throw Exception(error(Code::internal, "{}", tenon_last_error()->text));
  return {kept.begin(), kept.end()};
}

std::shared_ptr<SegmentGradients> made_gradients(CapturedGraph& captured) {
  std::vector<std::uint32_t> outputs;
  for (const TensorOutput& tensor : captured.tensors)
    if (tensor.kind == TensorOutput::Kind::fresh && tensor.requires_grad && !tensor.spent) outputs.push_back(tensor.index);
  if (outputs.empty()) return nullptr;
  if (captured.uses_numpy()) throw GraphBreak("functions of NumPy beside tensors that require grad", "call them under torch.no_grad(), or on detached tensors");
  if (captured.late_sizes) throw GraphBreak("a size that depends on data beside tensors that require grad");
  auto made = std::make_shared<SegmentGradients>();
  for (std::uint32_t i = 0; i < captured.inputs.size(); ++i)
    if (captured.inputs[i].requires_grad) made->wanted.push_back(i);
  rewrite::DifferentiatedGraph parts;
  try {
    parts = rewrite::with_backwards(captured.recording->graph, outputs, made->wanted, cheapest_to_keep);
  } catch (const Exception& failure) {
    throw GraphBreak(fmt::format("no gradient: {}", failure.what()));
  }
  for (NodeId id : parts.forward.nodes())
    for (ir::ValueId v : parts.forward.node(id).results)
      if (!parts.forward.type(v).device.is_host()) throw GraphBreak("tensors of a device beside tensors that require grad", "detach them, or move them before the call");
  require_values(parts.forward, captured.assumptions);
  for (std::size_t o = captured.recording->graph.outputs().size(); o < parts.forward.outputs().size(); ++o)
    captured.tensors.push_back(fresh_tensor(captured, parts.forward.type(parts.forward.outputs()[o].value), o));
  for (rewrite::BackwardGraph& part : parts.backwards) made->nodes.push_back(node_of(captured, parts.forward, made->wanted, std::move(part)));
  made->forward = std::move(parts.forward);
  return made;
}

/// Gives a graph of gradients what their node has kept, in place of computing it.
void give_kept_tensors(CapturedGraph& captured, SegmentGradients& gradients, const GradientNode& node) {
  const std::size_t first = node.whole.captured->tensors.size(), count = node.kept_tensors.size();  // behind the gradients
  try {
    gradients.from_kept = rewrite::from_outputs(gradients.forward, first, count);
  } catch (const Exception& failure) {
    throw GraphBreak(fmt::format("no gradient of the gradient: {}", failure.what()));
  }
  for (std::size_t t = first; t < captured.tensors.size(); ++t) {
    TensorOutput& tensor = captured.tensors[t];
    if (t >= first + count) {
      tensor.index -= static_cast<std::uint32_t>(count);
      continue;
    }
    tensor.kind = TensorOutput::Kind::given;
    tensor.index = static_cast<std::uint32_t>(captured.inputs.size());
    const ir::ValueId input = gradients.from_kept->inputs()[tensor.index];
    if (const auto strides = strides_of(tensor, gradients.from_kept->type(input))) gradients.from_kept->set_strides(input, *strides);
    captured.inputs.push_back(made_spec(tensor.dtype, tensor.shape, tensor.strides));
  }
}

}  // namespace

void add_gradients(CapturedGraph& captured) { captured.gradients = made_gradients(captured); }

GradientGraph gradients_of(const CapturedGraph& captured, const GradientNode& node, std::span<const TangentLayout> tangents, const std::vector<bool>& asked) {
  std::vector<bool> given;
  for (TangentLayout t : tangents) given.push_back(t != TangentLayout::none);
  const SegmentGradients& gradients = *captured.gradients;
  return captured_gradients(captured, node, gradients.wanted, rewrite::part_of(gradients.forward, node.part, gradients.wanted, given, asked), tangents);
}

std::shared_ptr<CapturedGraph> gradients_with_gradients(const CapturedGraph& captured, const GradientNode& node, const std::vector<bool>& given) {
  const std::vector<std::uint32_t>& wanted = captured.gradients->wanted;
  auto made = std::make_shared<CapturedGraph>();
  made->numbers = captured.numbers;
  const auto inputs = static_cast<std::ptrdiff_t>(captured.gradients->forward.inputs().size());  // behind them may be what was kept
  made->inputs.assign(captured.inputs.begin(), captured.inputs.begin() + inputs);
  for (std::size_t w = 0; w < wanted.size(); ++w) made->inputs[wanted[w]].requires_grad = node.part.gradients[w].has_value();
  for (std::size_t k = 0; k < given.size(); ++k) made->inputs.emplace_back(spec_of_gradient(captured.tensors[node.results[k]])).requires_grad = given[k];
  try {
    ir::Graph graph = rewrite::gradients_anew(captured.gradients->forward, node.part, wanted, given);
    std::uint32_t output = 0;
    for (std::size_t w = 0; w < wanted.size(); ++w) {
      if (!node.part.gradients[w]) continue;
      made->tensors.emplace_back(fresh_tensor(captured, graph.type(graph.outputs()[output].value), output, order_of_gradient(captured.inputs[wanted[w]]))).requires_grad = true;
      ++output;
    }
    for (std::uint32_t t : node.kept_tensors) {
      TensorOutput& kept = made->tensors.emplace_back(captured.tensors[t]);
      kept.kind = TensorOutput::Kind::fresh;
      kept.index = output++;
      kept.requires_grad = false;
    }
    set_graph(*made, std::move(graph));
  } catch (const Exception& failure) {
    throw GraphBreak(fmt::format("no gradient of the gradient: {}", failure.what()));
  }
  const std::shared_ptr<SegmentGradients> gradients = made_gradients(*made);
  give_kept_tensors(*made, *gradients, node);
  made->gradients = gradients;
  return made;
}

}  // namespace tenon::python
