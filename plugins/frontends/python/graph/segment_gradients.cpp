#include "python/graph/segment_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/ir/symbol_uses.h"
#include "core/ops/gradients/differentiated_once.h"
#include "core/ops/gradients/own_gradients.h"
#include "core/rewrite/differentiated.h"
#include "core/rewrite/gradient_sections.h"
#include "python/graph/captured_graph.h"
#include "python/graph/spread_gradients.h"
#include "python/library/torch_device.h"
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

bool depends_on_data(const CapturedGraph& captured, SymbolId symbol) {
  return captured.late_sizes && captured.numbers->sources()[symbol.value].kind == NumberSource::Kind::data;
}

bool depends_on_data(const CapturedGraph& captured, const ir::Shape& shape) {
  bool depends = false;
  for (const ir::Dim& d : shape) d.for_each_symbol([&](SymbolId s) { depends |= depends_on_data(captured, s); });
  return depends;
}

/// A tensor in memory of its own that holds an output of a graph; its dimensions lie in the given order, or row-major.
TensorOutput fresh_tensor(const CapturedGraph& captured, const ir::Type& type, std::size_t output, std::vector<std::int64_t> order = {}) {
  TensorOutput made;
  made.kind = TensorOutput::Kind::fresh;
  made.tensor = TensorKind::torch;
  made.index = static_cast<std::uint32_t>(output);
  made.dtype = type.dtype;
  made.device = type.device;
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

/// The order in which the dimensions of a value lie whose type says its strides; nothing for row-major order.
std::vector<std::int64_t> order_of(const CapturedGraph& captured, const ir::Type& type) {
  const Extents shape = sizes_now(captured, type.shape), strides = sizes_now(captured, *type.strides);
  return is_row_major(shape, strides) ? std::vector<std::int64_t>() : memory_order(shape, strides);
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
TensorSpec made_spec(const TensorOutput& of, Extents strides) {
  TensorSpec spec;
  const TorchLibrary& torch = *known_torch_library();
  spec.dtype = of.dtype;
  spec.device = of.device;
  spec.type = reinterpret_cast<PyTypeObject*>(torch.tensor.get());
  spec.shape = of.shape;
  spec.strides = std::move(strides);
  spec.key_set = !torch.direct_fields ? 0 : of.device.is_host() ? torch.plain_keys : torch_device(of.device).plain_keys;
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
  captured.recording = std::make_unique<Recording>(std::move(graph), Trace{}, std::vector<std::string>{}, true);
}

TensorSpec spec_of_gradient(const TensorOutput& of) { return made_spec(of, row_major(of.shape)); }

std::uint32_t tensor_of_output(const CapturedGraph& captured, std::uint32_t output) {
  const auto tensor = std::ranges::find_if(captured.tensors, [&](const TensorOutput& t) { return t.kind == TensorOutput::Kind::fresh && t.index == output; });
  return static_cast<std::uint32_t>(tensor - captured.tensors.begin());
}

/// The inputs with a gradient, by number among them, as torch's engine comes to them.
std::vector<std::uint32_t> order_of_gradients(const CapturedGraph& captured, const SegmentGradients& gradients, const rewrite::BackwardGraph& part) {
  if (captured.turns.empty()) return {};
  std::vector<std::int64_t> turns;
  for (std::size_t w = 0; w < gradients.wanted.size(); ++w)
    if (part.gradients[w]) turns.push_back(captured.turns[gradients.wanted[w]]);
  std::vector<std::uint32_t> order(turns.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t number) { return turns[number]; });
  return order;
}

/// The order in which the dimensions of the gradient of what is wanted lie.
std::vector<std::int64_t> order_of_gradient(const CapturedGraph& captured, const SegmentGradients& gradients, std::size_t w) {
  if (gradients.is_input(w)) return order_of_gradient(captured.inputs[gradients.wanted[w]]);
  if (!gradients.is_inner(w)) return {};
  const TensorOutput& tensor = captured.tensors[gradients.inner_tensor(w)];
  return tensor.varying_shape.empty() ? order_of_gradient(made_spec(tensor, tensor.strides)) : std::vector<std::int64_t>();
}

/// A graph of gradients as it is run.
GradientGraph captured_gradients(const CapturedGraph& captured, const SegmentGradients& gradients, const GradientNode& node, rewrite::BackwardGraph part,
                                 std::span<const TangentLayout> tangents) {
  auto made = std::make_shared<CapturedGraph>();
  made->numbers = captured.numbers;
  made->opaque_calls = captured.opaque_calls;
  const auto next_input = [&] { return part.graph.inputs()[made->inputs.size()]; };
  for (std::uint32_t i : part.kept_inputs) made->inputs.push_back(captured.inputs[i]);
  for (std::uint32_t t : node.kept_tensors) {
    const TensorOutput& tensor = captured.tensors[t];
    if (const auto strides = strides_of(tensor, part.graph.type(next_input()))) part.graph.set_strides(next_input(), *strides);
    made->inputs.push_back(made_spec(tensor, tensor.strides));
  }
  std::vector<ir::ValueId> given;
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    const TensorOutput& tensor = captured.tensors[node.results[k]];
    std::optional<ir::Shape> strides;
    if (tangents[k] == TangentLayout::as_result) strides = strides_of(tensor, part.graph.type(next_input()));
    else if (tangents[k] == TangentLayout::one_element) strides = ir::Shape(tensor.shape.size(), ir::Dim(0));
    if (strides) part.graph.set_strides(next_input(), *strides);
    given.push_back(next_input());
    made->inputs.push_back(spec_of_gradient(tensor));
  }
  for (std::size_t w = 0; w < gradients.wanted_count(); ++w)
    if (const auto output = part.gradients[w]) {
      const ir::ValueId gradient = part.graph.outputs()[*output].value;
      made->tensors.push_back(fresh_tensor(captured, part.graph.type(gradient), *output, order_of_gradient(captured, gradients, w)));
      show_once(made->tensors.back(), spread_of(part.graph, gradient, given, tangents, [&] { return is_only_summed(gradients.forward, gradients.values[w]); }));
    }
  set_graph(*made, std::move(part.graph));
  return {std::move(made), std::move(part.gradients)};
}

/// A value that only nodes know.
std::uint32_t add_unseen(CapturedGraph& captured, const ir::Graph& forward, ir::ValueId value) {
  const auto known = std::ranges::find_if(captured.tensors, [&](const TensorOutput& t) { return t.kind == TensorOutput::Kind::unseen && t.value == value; });
  if (known != captured.tensors.end()) return static_cast<std::uint32_t>(known - captured.tensors.begin());
  TensorOutput tensor = fresh_tensor(captured, forward.type(value), 0);
  tensor.kind = TensorOutput::Kind::unseen;
  tensor.value = value;
  captured.tensors.push_back(std::move(tensor));
  return static_cast<std::uint32_t>(captured.tensors.size() - 1);
}

GradientNode node_of(CapturedGraph& captured, const SegmentGradients& gradients, rewrite::BackwardGraph part) {
  GradientNode node;
  node.order = order_of_gradients(captured, gradients, part);
  for (const rewrite::BackwardGraph::Result& result : part.results)
    node.results.push_back(result.output ? tensor_of_output(captured, *result.output) : add_unseen(captured, gradients.forward, result.value));
  for (std::uint32_t o : part.kept_outputs) node.kept_tensors.push_back(tensor_of_output(captured, o));
  node.part = {.graph = {}, .results = part.results, .kept_inputs = part.kept_inputs, .kept_outputs = part.kept_outputs, .gradients = part.gradients, .reads_result = part.reads_result, .asked_once = part.asked_once};
  node.whole = captured_gradients(captured, gradients, node, std::move(part), std::vector<TangentLayout>(node.results.size(), TangentLayout::row_major));
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

/// Results that are made as views of other results, or of inputs, with a history of their own.
struct TrackedViews {
  std::vector<rewrite::ViewOfResult> views;
  std::vector<std::uint32_t> tensors;
};

TrackedViews tracked_views(const CapturedGraph& captured) {
  TrackedViews found;
  const ir::Graph& graph = captured.recording->graph;
  for (std::uint32_t t = 0; t < captured.tensors.size(); ++t) {
    const TensorOutput& tensor = captured.tensors[t];
    const bool of_input = tensor.kind == TensorOutput::Kind::input_view;
    if (!tensor.requires_grad || tensor.spent || (!of_input && tensor.kind != TensorOutput::Kind::fresh_view) || tensor.value == ir::ValueId()) continue;
    if (graph.value(tensor.value).kind != ir::ValueKind::result) continue;
    const TensorOutput* whole = of_input ? nullptr : &captured.tensors[tensor.index];
    if (whole && (whole->spent || !whole->requires_grad)) continue;
    found.views.push_back({tensor.value, whole ? std::optional(whole->index) : std::nullopt});
    found.tensors.push_back(t);
  }
  return found;
}

/// The graph that is run finds sizes that depend on data, and gives them with results that have them: adds one for each that gradients read and none has.
void give_sizes_that_gradients_read(const CapturedGraph& captured, rewrite::DifferentiatedGraph& parts) {
  std::vector<bool> given(parts.forward.symbols().size(), false);
  const auto give = [&](ir::ValueId value) {
    for (const ir::Dim& d : parts.forward.type(value).shape)
      if (const SymbolId s = d.is_constant() ? SymbolId() : d.as_symbol()) given[s.value] = true;
  };
  for (const ir::Output& output : parts.forward.outputs()) give(output.value);
  const std::vector<ir::NodeId> definers = ir::defining_nodes(parts.forward);
  const auto ask = [&](SymbolId s) {
    if (given[s.value] || !depends_on_data(captured, s)) return;
    for (ir::ValueId value : parts.forward.node(definers[s.value]).results) {
      if (std::ranges::find(parts.forward.type(value).shape, ir::Dim::symbol(s)) == parts.forward.type(value).shape.end()) continue;
      parts.forward.add_output({value, ir::OutputKind::saved, {}});
      return give(value);
    }
  };
  for (const rewrite::BackwardGraph& part : parts.backwards) {
    for (ir::ValueId input : part.graph.inputs()) ir::visit_symbols(part.graph.type(input), ask);
    for (ir::NodeId id : part.graph.nodes()) ir::visit_symbols(part.graph, part.graph.node(id), ask);
  }
}

/// Has torch's words come to all walks where they would come to some. Whether there are such.
bool refuses_all_walks(CapturedGraph& captured) {
  bool any = false;
  for (TensorOutput& tensor : captured.tensors)
    if (std::exchange(tensor.refusal_beside, false)) tensor.refusal_ends = false, any = true;
  return any;
}

/// `keeping`: what the recording says of it. `outer`: values in the graph that gradients are wanted of too.
std::shared_ptr<SegmentGradients> made_gradients(CapturedGraph& captured, rewrite::Keeping keeping, std::span<const ir::ValueId> outer = {}) {
  std::vector<std::uint32_t> outputs;
  for (const TensorOutput& tensor : captured.tensors)
    if (tensor.kind == TensorOutput::Kind::fresh && tensor.requires_grad && !tensor.spent && (tensor.refusal.empty() || tensor.refusal_beside)) outputs.push_back(tensor.index);
  if (outputs.empty() && std::ranges::all_of(captured.tensors, [](const TensorOutput& t) { return t.refusal.empty(); })) return nullptr;
  auto made = std::make_shared<SegmentGradients>();
  for (std::uint32_t i = 0; i < captured.inputs.size(); ++i)
    if (captured.inputs[i].requires_grad) made->wanted.push_back(i);
  std::vector<ir::ValueId> wanted;
  for (std::uint32_t i : made->wanted) wanted.push_back(captured.recording->graph.inputs()[i]);
  wanted.insert(wanted.end(), outer.begin(), outer.end());
  made->outer = outer.size();
  const TrackedViews views = tracked_views(captured);
  rewrite::DifferentiatedGraph parts;
  try {
    keeping.choose = cheapest_to_keep;
    keeping.numbers = captured.outputs_as_numbers();
    parts = rewrite::with_backwards(captured.recording->graph, outputs, wanted, keeping, views.views);
  } catch (const Exception& failure) {
    if (refuses_all_walks(captured)) return made_gradients(captured, keeping, outer);
    throw GraphBreak(fmt::format("no gradient: {}", failure.what()));
  }
  require_values(parts.forward, captured.assumptions);
  if (captured.late_sizes) give_sizes_that_gradients_read(captured, parts);
  for (std::size_t o = captured.recording->graph.outputs().size(); o < parts.forward.outputs().size(); ++o) {
    const ir::ValueId value = parts.forward.outputs()[o].value;
    const ir::Type type = parts.forward.type(value);
    const bool laid_out = type.strides && parts.forward.value(value).kind == ir::ValueKind::result;  // of an input it is a copy in row-major order
    captured.tensors.push_back(fresh_tensor(captured, type, o, laid_out ? order_of(captured, type) : std::vector<std::int64_t>()));
    captured.tensors.back().late = depends_on_data(captured, type.shape);
    if (laid_out) parts.forward.set_strides(value, std::nullopt);  // its tensor says it
  }
  made->forward = std::move(parts.forward);
  made->values = std::move(parts.wanted);
  for (std::size_t i = 0; i < parts.inner.size(); ++i) {
    const rewrite::InnerValue& inner = parts.inner[i];
    made->inner.push_back(inner.output ? tensor_of_output(captured, *inner.output)
                          : inner.view ? views.tensors[*inner.view]
                                       : add_unseen(captured, made->forward, made->values[wanted.size() + i]));
  }
  for (rewrite::BackwardGraph& part : parts.backwards) made->nodes.push_back(node_of(captured, *made, std::move(part)));
  ir::Graph plain = made->forward.clone();
  made->has_functions = ops::drop_own_gradients(plain) > 0;
  if (made->has_functions) made->run = std::move(plain);
  return made;
}

/// Throws GraphBreak where a graph reads inputs that are not there.
void require_inputs_unread(const ir::Graph& graph, std::span<const std::uint32_t> missing) {
  const auto is_missing = [&](ir::ValueId v) {
    return graph.value(v).kind == ir::ValueKind::input && std::ranges::find(missing, graph.value(v).index) != missing.end();
  };
  const auto reads = [&](ir::NodeId id) { return std::ranges::any_of(graph.node(id).operands, is_missing); };
  if (std::ranges::any_of(graph.nodes(), reads) || std::ranges::any_of(graph.outputs(), [&](const ir::Output& o) { return is_missing(o.value); }))
    throw GraphBreak("no gradient of the gradient: it reads what was not kept");
}

/// Notes which gradients torch refuses to differentiate: those that depend on one that is refused, and would have a history. They are plain values then.
void note_refusals(CapturedGraph& gradients, ir::Graph& graph, std::span<const ir::ValueId> tracked, const std::vector<bool>& reached) {
  const std::vector<ops::Refused> all = ops::refused_gradients(graph);
  std::vector<ir::ValueId> ending;
  for (const ops::Refused& refused : all)
    if (refused.ends) ending.push_back(refused.value);
  const std::vector<bool> beside = rewrite::depending_on(graph, tracked, ending);
  for (const ops::Refused& refused : all) {
    if (!reached[refused.value.value]) continue;
    const std::vector<bool> depending = rewrite::depending_on(graph, {{refused.value}});
    for (TensorOutput& tensor : gradients.tensors) {
      const ir::ValueId gradient = graph.outputs()[tensor.index].value;
      const bool refuses_all = !tensor.refusal.empty() && !tensor.refusal_ends;
      if (!depending[gradient.value] || refuses_all) continue;
      tensor.refusal = refused.message;
      tensor.refusal_ends = refused.ends;
      tensor.refusal_beside = refused.ends && beside[gradient.value];
    }
  }
  ops::drop_refusals(graph);
}

/// Gives a graph of gradients what their node has kept, in place of computing it.
void give_kept_tensors(CapturedGraph& captured, SegmentGradients& gradients, const GradientNode& node, std::span<const std::uint32_t> missing) {
  const std::size_t first = node.whole.captured->tensors.size(), count = node.kept_tensors.size();  // behind the gradients
  try {
    gradients.run = rewrite::from_outputs(gradients.forward, first, count);
  } catch (const Exception& failure) {
    throw GraphBreak(fmt::format("no gradient of the gradient: {}", failure.what()));
  }
  require_inputs_unread(*gradients.run, missing);
  for (const GradientNode& later : gradients.nodes)
    if (std::ranges::find_first_of(later.part.kept_inputs, missing) != later.part.kept_inputs.end()) throw GraphBreak("no gradient of the gradient: it keeps what was not kept");
  for (std::size_t t = first; t < captured.tensors.size(); ++t) {
    TensorOutput& tensor = captured.tensors[t];
    if (t >= first + count) {
      tensor.index -= static_cast<std::uint32_t>(count);
      continue;
    }
    tensor.kind = TensorOutput::Kind::given;
    tensor.index = static_cast<std::uint32_t>(captured.inputs.size());
    const ir::ValueId input = gradients.run->inputs()[tensor.index];
    if (const auto strides = strides_of(tensor, gradients.run->type(input))) gradients.run->set_strides(input, *strides);
    captured.inputs.push_back(made_spec(tensor, tensor.strides));
  }
}

}  // namespace

void add_gradients(CapturedGraph& captured, const rewrite::Keeping& known) {
  captured.gradients = made_gradients(captured, known);
  if (!captured.gradients) ops::drop_own_gradients(captured.recording->graph);
}

GradientGraph gradients_of(const CapturedGraph& captured, const GradientNode& node, std::span<const TangentLayout> tangents, const std::vector<bool>& asked) {
  std::vector<bool> given;
  for (TangentLayout t : tangents) given.push_back(t != TangentLayout::none);
  const SegmentGradients& gradients = *captured.gradients;
  return captured_gradients(captured, gradients, node, rewrite::part_of(gradients.forward, node.part, gradients.values, given, asked), tangents);
}

std::shared_ptr<CapturedGraph> gradients_with_gradients(const CapturedGraph& captured, const GradientNode& node, const std::vector<TangentHistory>& given) {
  const SegmentGradients& gradients = *captured.gradients;
  auto made = std::make_shared<CapturedGraph>();
  made->numbers = captured.numbers;
  made->opaque_calls = captured.opaque_calls;
  std::vector<ir::ValueId> outer;
  std::vector<bool> are_there;
  const auto inputs = static_cast<std::ptrdiff_t>(gradients.forward.inputs().size());  // behind them may be what was kept
  made->inputs.assign(captured.inputs.begin(), captured.inputs.begin() + inputs);
  for (std::size_t w = 0; w < gradients.wanted.size(); ++w) made->inputs[gradients.wanted[w]].requires_grad = node.part.gradients[w].has_value();
  for (std::size_t k = 0; k < given.size(); ++k) {
    made->inputs.emplace_back(spec_of_gradient(captured.tensors[node.results[k]])).requires_grad = given[k] == TangentHistory::tracked;
    are_there.push_back(given[k] != TangentHistory::none);
  }
  try {
    ir::Graph graph = rewrite::gradients_anew(gradients.forward, node.part, gradients.values, are_there);
    for (std::size_t w = gradients.wanted.size(); w < gradients.wanted_count(); ++w)
      if (node.part.gradients[w]) outer.push_back(gradients.values[w]);
    if (node.part.reads_result) outer.push_back(node.part.results[0].value);
    std::vector<ir::ValueId> tracked = outer;
    for (std::size_t i = 0; i < made->inputs.size(); ++i)
      if (made->inputs[i].requires_grad) tracked.push_back(graph.inputs()[i]);
    const std::vector<bool> reached = rewrite::depending_on(graph, tracked);
    std::uint32_t output = 0;
    for (std::size_t w = 0; w < gradients.wanted_count(); ++w) {
      if (!node.part.gradients[w]) continue;
      const ir::ValueId gradient = graph.outputs()[output].value;
      made->tensors.emplace_back(fresh_tensor(captured, graph.type(gradient), output, order_of_gradient(captured, gradients, w))).requires_grad = reached[gradient.value];
      ++output;
    }
    if (std::ranges::none_of(made->tensors, &TensorOutput::requires_grad)) return nullptr;
    note_refusals(*made, graph, tracked, reached);
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
  std::vector<ir::ValueId> missing;
  std::vector<std::uint32_t> numbers_of_missing;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(inputs); ++i) {
    if (std::ranges::find(node.part.kept_inputs, i) != node.part.kept_inputs.end()) continue;
    numbers_of_missing.push_back(i);
    missing.push_back(made->recording->graph.inputs()[i]);
  }
  const std::shared_ptr<SegmentGradients> again = made_gradients(*made, {.choose = {}, .missing = missing}, outer);
  give_kept_tensors(*made, *again, node, numbers_of_missing);
  made->gradients = again;
  return made;
}

}  // namespace tenon::python
