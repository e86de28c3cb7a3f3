#include "graph/layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/loop_body.h"
#include "core/ops/notation/window.h"
#include "core/ops/view.h"
#include "core/rewrite/reached_values.h"
#include "drafts/contraction.h"
#include "drafts/operand.h"

namespace tenon::codegen {
namespace {

using ir::Dim;

bool has_matrix_kernel(const ir::Type& type) { return type.is_tensor() && (type.dtype == DType::f32 || type.dtype == DType::f64); }

/// The elements of the one operand, each where it is, in another dtype.
bool is_cast(const ir::Graph& graph, NodeId id) {
  const ir::Node& node = graph.node(id);
  if (!ops::is_view(graph, id)) return false;
  const ir::Type &from = graph.type(node.operands[0]), &to = graph.type(node.results[0]);
  return from.dtype != to.dtype && from.shape == to.shape;
}

bool is_convolution(const ir::Graph& graph, const ir::Node& node) {
  return (node.op == "conv_sum" || node.op == "conv_weight_sum") && has_matrix_kernel(graph.type(node.results[0]));
}

/// The weight, or its gradient.
const ir::Shape& weight_of(const ir::Graph& graph, const ir::Node& node) {
  return graph.type(node.op == "conv_sum" ? node.operands[1] : node.results[0]).shape;
}

/// The values of a convolution that are pictures: others are weights.
std::vector<ValueId> pictures_of(const ir::Node& node) {
  return node.op == "conv_sum" ? std::vector{node.operands[0], node.results[0]} : std::vector{node.operands[0], node.operands[1]};
}

/// Multiplications of a convolution as far as they are known; a size that is not known counts as one.
double work_of(const ir::Graph& graph, const ir::Node& node) {
  double work = 1;
  auto count = [&](const Dim& d) { work *= d.is_constant() ? static_cast<double>(d.constant()) : 1; };
  const auto& result = graph.type(pictures_of(node)[1]).shape;
  const auto& weight = weight_of(graph, node);
  std::for_each(result.begin(), result.end(), count);
  std::for_each(weight.begin() + 1, weight.end(), count);
  return work;
}

/// Padding after the spatial dimensions of the input: the gradient of a weight knows of it by its sizes.
std::vector<Dim> padding_after(const ir::Graph& graph, const ir::Node& node) {
  if (node.op == "conv_sum") return std::get<std::vector<Dim>>(*node.attribute("after"));
  const auto numbers = [&](const char* name) { return std::get<std::vector<Dim>>(*node.attribute(name)); };
  const auto stride = numbers("stride"), dilation = numbers("dilation"), before = numbers("before"), kernel = numbers("kernel");
  std::vector<Dim> after;
  for (std::size_t d = 0; d < stride.size(); ++d) {
    const Dim &in = graph.type(node.operands[0]).shape[2 + d], &out = graph.type(node.operands[1]).shape[2 + d];
    after.push_back(ops::padding_after(in, out, kernel[d], stride[d], dilation[d], before[d]));
  }
  return after;
}

/// True when a run of channels is too short to be multiplied where it lies, and one of channels and a row of the kernel is not.
bool gains_by_padding(const Machine& machine, const ir::Graph& graph, const ir::Node& node) {
  if (!is_convolution(graph, node)) return false;
  const auto& weight = weight_of(graph, node);
  if (weight.size() != 4 || !weight[1].is_constant() || !weight[3].is_constant()) return false;
  const auto channels = static_cast<double>(weight[1].constant());
  const auto numbers = [&](const char* name) { return std::get<std::vector<Dim>>(*node.attribute(name)); };
  const auto before = numbers("before"), after = padding_after(graph, node), dilation = numbers("dilation");
  auto pads = [](const Dim& d) { return d.is_constant() && d.constant() >= 0; };
  if (!std::all_of(before.begin(), before.end(), pads) || !std::all_of(after.begin(), after.end(), pads)) return false;
  return channels < machine.thresholds.shortest_run && channels * static_cast<double>(weight[3].constant()) >= machine.thresholds.shortest_run && dilation.back() == Dim(1) &&
         std::get<Dim>(*node.attribute("groups")) == Dim(1) && work_of(graph, node) >= machine.thresholds.small_product;
}

/// True for a filter a channel that runs over its channels, once they lie last, where the machine is better at that.
bool gains_by_lanes_of_channels(const Machine& machine, const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "conv_sum" || !is_convolution(graph, node) || machine.thresholds.depthwise_gain < 0) return false;
  const Dim &channels = graph.type(node.operands[0]).shape[1], &filters = weight_of(graph, node)[0];
  return weight_of(graph, node)[1] == Dim(1) && channels == filters && channels.is_constant() && static_cast<double>(channels.constant()) >= machine.thresholds.shortest_run;
}

/// The rank of values around most of the work that runs over channels. 0 when other convolutions do more. Convolutions over few channels
/// do not decide: what follows them (a mean over pixels) would sum in one chain where rows have several, and err more.
std::size_t rank_that_gains(const Machine& machine, const ir::Graph& graph) {
  double gain = 0, loss = 0;
  std::size_t rank = 0;
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (!is_convolution(graph, node)) continue;
    const auto& weight = weight_of(graph, node);
    const auto& channels = weight[1];
    const bool runs = channels.is_constant() && static_cast<double>(channels.constant()) >= machine.thresholds.shortest_run;
    if (runs) gain += work_of(graph, node), rank = weight.size();
    else if (gains_by_lanes_of_channels(machine, graph, node)) gain += machine.thresholds.depthwise_gain * work_of(graph, node), rank = weight.size();
    else if (channels == Dim(1)) loss += std::abs(machine.thresholds.depthwise_gain) * work_of(graph, node);
  }
  return gain > loss ? rank : 0;
}

/// Pads what a convolution over few channels reads, so that rows of its windows are runs: no padding lies within them. The gradient of its
/// weight reads the same.
void pad_few_channels(const Machine& machine, ir::Graph& graph) {
  std::vector<NodeId> convolutions;
  for (NodeId id : graph.nodes())
    if (gains_by_padding(machine, graph, graph.node(id))) convolutions.push_back(id);
  std::map<ValueId, std::vector<std::pair<std::vector<Dim>, ValueId>>> padded;  // by what was padded: the sizes, and what came of it
  for (NodeId id : convolutions) {
    const ir::Node node = graph.node(id);
    ops::NodeBuilder b(graph, id);
    const std::vector<Dim> none(2, Dim(0));
    const auto with_none = [&](const std::vector<Dim>& spatial) {
      std::vector<Dim> all = none;
      all.insert(all.end(), spatial.begin(), spatial.end());
      return all;
    };
    const auto before = std::get<std::vector<Dim>>(*node.attribute("before")), after = padding_after(graph, node);
    std::vector<Dim> sizes = before;
    sizes.insert(sizes.end(), after.begin(), after.end());
    auto& known = padded[node.operands[0]];
    auto found = std::ranges::find(known, sizes, &std::pair<std::vector<Dim>, ValueId>::first);
    if (found == known.end())
      found = known.insert(known.end(), {sizes, b.one("pad", {node.operands[0]}, {{"after", with_none(after)}, {"before", with_none(before)}, {"mode", std::string("constant")}, {"value", 0.0}})});
    ir::Attributes attributes = node.attributes;
    for (auto& [name, value] : attributes)
      if (name == "before" || name == "after") value = none;
    const ValueId sum = b.one(node.op, {found->second, node.operands[1]}, std::move(attributes));
    graph.replace_uses(node.results[0], sum);
    graph.erase_nodes(std::vector{id});
  }
}

double taps_of(const ir::Shape& weight) {
  double taps = 1;
  for (std::size_t d = 2; d < weight.size(); ++d) taps *= weight[d].is_constant() ? static_cast<double>(weight[d].constant()) : 1;
  return taps;
}

/// True when windows of the convolution's operand are read where they lie, once its channels lie last.
bool reads_windows(const Machine& machine, const ir::Graph& graph, const ir::Node& node, std::size_t rank) {
  if (!is_convolution(graph, node) || work_of(graph, node) < machine.thresholds.small_product) return false;
  const auto& weight = weight_of(graph, node);
  if (gains_by_lanes_of_channels(machine, graph, node)) return weight.size() == rank && taps_of(weight) >= machine.thresholds.depthwise_taps;
  const bool one_tap = std::all_of(weight.begin() + 2, weight.end(), [](const Dim& d) { return d == Dim(1); });
  if (weight.size() != rank || one_tap || !weight[1].is_constant()) return false;
  const auto few = std::all_of(weight.begin() + 1, weight.end(), [](const Dim& d) { return d.is_constant(); }) ? weight[1].constant() * weight.back().constant() : 0;
  return static_cast<double>(std::max(weight[1].constant(), few)) >= machine.thresholds.shortest_run;
}

/// What is cast for a convolution that reads runs of its channels as they are.
std::optional<ValueId> read_before_cast(const Machine& machine, const ir::Graph& graph, ValueId picture) {
  const auto half = half_before_cast(graph, picture);
  if (!half || !machine.reads_runs_of(graph.type(*half).dtype, graph.type(*half).shape[1])) return {};
  return half;
}

/// True when they do, and the channels of what it reads do not lie last now. One filter alone reads it too few times.
bool gains_by_copying(const Machine& machine, const ir::Graph& graph, const ir::Node& node, ValueId operand, std::size_t rank) {
  if (!reads_windows(machine, graph, node, rank) || weight_of(graph, node)[0] == Dim(1)) return false;
  const bool reads_channels = operand == node.operands[0] && !gains_by_lanes_of_channels(machine, graph, node);  // else places of a result, whose weight is asked for
  if (reads_channels && static_cast<double>(weight_of(graph, node)[1].constant()) < machine.thresholds.shortest_run) return false;
  const ir::Value& read = graph.value(operand);
  const bool moved = read.kind == ir::ValueKind::result && graph.node(read.node).results.size() == 1 && ops::is_view(graph, read.node) && !is_cast(graph, read.node);
  const ValueId lies = read_before_cast(machine, graph, operand).value_or(operand);
  return !moved && !(graph.type(lies).resolved_strides()[1] == Dim(1));
}

/// Puts a copy between convolutions and outputs of the graph, whose layout is given: rows of a product are then pixels. Other readers take what is
/// copied. Adds what loop nests give to `stored`, so that they run as it lies.
void copy_to_outputs(const Machine& machine, ir::Graph& graph, std::size_t rank, std::vector<ValueId>& stored) {
  std::set<ValueId> outputs;
  for (const ir::Output& output : graph.outputs()) outputs.insert(output.value);
  for (ValueId output : outputs) {
    const ir::Value& value = graph.value(output);
    if (value.kind != ir::ValueKind::result || graph.node(value.node).op != "conv_sum" || graph.type(output).strides || !reads_windows(machine, graph, graph.node(value.node), rank)) continue;
    const ir::Node node = graph.node(value.node);
    const std::vector<NodeId> readers = graph.users()[output.value];
    ops::NodeBuilder b(graph, value.node);
    const ValueId sum = b.one(node.op, node.operands, node.attributes);
    for (const NodeId user : readers) std::ranges::replace(graph.mutable_node(user).operands, output, sum);
    graph.replace_uses(output, b.one("clone", {sum}));
    if (gains_by_lanes_of_channels(machine, graph, node)) stored.push_back(sum);
    graph.erase_nodes(std::vector{graph.value(node.results[0]).node});
  }
}

/// A copy before a node, with channels last.
ValueId channels_last_copy(const Machine& machine, ir::Graph& graph, NodeId before, ValueId from) {
  ops::NodeBuilder b(graph, before);
  const auto laid = [&](ValueId v) {
    graph.set_strides(v, ir::channels_last_strides(graph.type(v).shape));
    return v;
  };
  const auto narrow = read_before_cast(machine, graph, from);
  if (!narrow) return laid(b.one("clone", {from}));
  const ir::Node cast = graph.node(graph.value(from).node);
  return laid(b.one(cast.op, {laid(b.one("clone", {*narrow}))}, cast.attributes));
}

/// Copies what convolutions read in another layout (an input of the graph), so that their windows are runs of channels. Adds what loop nests read of that to `stored`.
void copy_to_channels_last(const Machine& machine, ir::Graph& graph, std::size_t rank, std::vector<ValueId>& stored) {
  std::map<ValueId, ValueId> copies;
  for (NodeId id : std::vector(graph.nodes().begin(), graph.nodes().end())) {
    for (std::size_t k = 0; k < graph.node(id).operands.size(); ++k) {
      const ValueId from = graph.node(id).operands[k];
      if ((k == 1 && graph.node(id).op == "conv_sum") || !gains_by_copying(machine, graph, graph.node(id), from, rank)) continue;
      if (!copies.contains(from)) copies[from] = channels_last_copy(machine, graph, id, from);
      graph.mutable_node(id).operands[k] = copies[from];
      if (gains_by_lanes_of_channels(machine, graph, graph.node(id))) stored.push_back(copies[from]);
    }
  }
}

/// Copies filters of one channel each, so that those of neighbouring channels lie side by side. Adds the copies to `stored`.
void lay_filters_by_channels(const Machine& machine, ir::Graph& graph, std::size_t rank, std::vector<ValueId>& stored) {
  for (NodeId id : std::vector(graph.nodes().begin(), graph.nodes().end())) {
    if (!gains_by_lanes_of_channels(machine, graph, graph.node(id)) || weight_of(graph, graph.node(id)).size() != rank) continue;
    const ValueId copy = ops::NodeBuilder(graph, id).one("clone", {graph.node(id).operands[1]});
    const ir::Shape shape = graph.type(copy).shape;
    ir::Shape strides(shape.size(), Dim(1));
    Dim step = shape[0];
    for (std::size_t d = shape.size(); d-- > 1;) strides[d] = step, step = step * shape[d];
    graph.set_strides(copy, strides);
    graph.mutable_node(id).operands[1] = copy;
    stored.push_back(copy);
  }
}

/// True when elements of the operands become elements of the result where they are: not moved (but maybe cast), and not multiplied as matrices.
bool keeps_places(const ir::Graph& graph, NodeId id) {
  const auto body = ops::loop_of(graph, id);
  return body && (!ops::is_view(graph, id) || is_cast(graph, id)) && !is_sum_of_products(graph, id, *body);
}

/// What convolutions read and give, and what is computed from it and for it in place. Other values of their rank keep dense rows: the
/// scores of attention in the middle of a network.
std::vector<bool> around_convolutions(const ir::Graph& graph, std::size_t rank) {
  const auto takes = [&](ValueId v) { return graph.value(v).kind != ir::ValueKind::literal && graph.type(v).rank() == rank; };
  std::vector<ValueId> pictures;
  for (NodeId id : graph.nodes())
    if (is_convolution(graph, graph.node(id))) std::ranges::copy_if(pictures_of(graph.node(id)), std::back_inserter(pictures), takes);
  const auto in_place = [&](NodeId id) {
    const ir::Node& node = graph.node(id);
    if (is_convolution(graph, node)) return pictures_of(node);
    std::vector<ValueId> values;
    if (!keeps_places(graph, id)) return values;
    values = node.operands;
    values.insert(values.end(), node.results.begin(), node.results.end());
    return values;
  };
  return rewrite::reached_values(graph, pictures, in_place, takes);
}

/// What library calls and scatters read and give, whose layout is given.
std::set<ValueId> whole_operands(const ir::Graph& graph) {
  std::set<ValueId> values;
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if ((node.op == "constant" && node.operands.empty()) || ops::loop_of(graph, id)) continue;
    values.insert(node.operands.begin(), node.operands.end());
    values.insert(node.results.begin(), node.results.end());
  }
  return values;
}

/// What moves the channels of its operand to the end: in row-major order it lies as that does with channels last.
std::optional<ValueId> picture_behind(const ir::Graph& graph, ValueId value) {
  if (graph.value(value).kind != ir::ValueKind::result) return {};
  const ir::Node& node = graph.node(graph.value(value).node);
  if (node.op != "permute") return {};
  const auto dims = std::get<std::vector<Dim>>(*node.attribute("dims"));
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != Dim(d == 0 ? 0 : d + 1 == dims.size() ? 1 : static_cast<std::int64_t>(d) + 1)) return {};
  return node.operands[0];
}

/// Makes pictures outputs themselves whose channels are moved to the end for an output: it is the same memory, which others read, too.
void give_where_they_lie(ir::Graph& graph, std::size_t rank) {
  std::vector<ir::Output> outputs(graph.outputs().begin(), graph.outputs().end());
  if (std::ranges::none_of(outputs, [&](const ir::Output& output) { return picture_behind(graph, output.value).has_value(); })) return;
  const std::set<ValueId> fixed = whole_operands(graph);
  const auto around = around_convolutions(graph, rank);
  std::set<ValueId> given;
  for (const ir::Output& output : outputs) given.insert(output.value);
  std::vector<NodeId> moves;
  for (ir::Output& output : outputs) {
    const auto picture = picture_behind(graph, output.value);
    if (!picture || !around[picture->value] || graph.value(*picture).kind != ir::ValueKind::result || graph.type(*picture).strides || fixed.contains(*picture)) continue;
    if (ops::is_view(graph, graph.value(*picture).node) || !given.insert(*picture).second) continue;
    graph.set_strides(*picture, ir::channels_last_strides(graph.type(*picture).shape));
    moves.push_back(graph.value(output.value).node);
    output.value = *picture;
  }
  graph.set_outputs(std::move(outputs));
  const auto users = graph.users();
  std::erase_if(moves, [&](NodeId id) {
    const ValueId moved = graph.node(id).results[0];
    return !users[moved.value].empty() || std::ranges::find(graph.outputs(), moved, &ir::Output::value) != graph.outputs().end();
  });
  graph.erase_nodes(moves);
}

}  // namespace

std::vector<ValueId> choose_layouts(ir::Graph& graph, const Machine& machine) {
  const std::size_t rank = rank_that_gains(machine, graph);
  if (rank == 0) return {};
  pad_few_channels(machine, graph);
  give_where_they_lie(graph, rank);
  std::vector<ValueId> stored;
  copy_to_outputs(machine, graph, rank, stored);
  std::set<ValueId> fixed = whole_operands(graph);
  for (const ir::Output& output : graph.outputs()) fixed.insert(output.value);
  const auto around = around_convolutions(graph, rank);
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op == "constant" && node.operands.empty()) continue;
    for (ValueId v : node.results) {
      const ir::Type& type = graph.type(v);
      if (!type.is_tensor() || !around[v.value] || type.strides || fixed.contains(v)) continue;
      graph.set_strides(v, ir::channels_last_strides(type.shape));
    }
  }
  copy_to_channels_last(machine, graph, rank, stored);
  lay_filters_by_channels(machine, graph, rank, stored);
  return stored;
}

}  // namespace tenon::codegen
