#include "fuzz/op_graphs.h"

#include <algorithm>
#include <cmath>

#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/reference/sample.h"

namespace tenon::fuzz {
namespace {

using ir::Dim;

std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

template <class T>
const T& one_of(Random& random, const std::vector<T>& choices) {
  return choices[below(random, choices.size())];
}

Dim symbol(Random& random, const ir::Graph& graph) {
  if (graph.symbols().empty()) return Dim(2);
  const Dim s = Dim::symbol(SymbolId(below(random, graph.symbols().size())));
  switch (below(random, 4)) {
    case 0: return s + Dim(1);
    case 1: return s * Dim(2);
    default: return s;
  }
}

/// Numbers around what ops tell apart, and around where arithmetic ends.
Dim telling_integer(Random& random, const ir::Graph& graph) {
  static const std::vector<std::int64_t> kFar{INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, std::int64_t{1} << 62, std::int64_t{1} << 31, -(std::int64_t{1} << 31), std::int64_t{1} << 40};
  switch (below(random, 8)) {
    case 0: return one_of(random, kFar);
    case 1: return symbol(random, graph);
    default: return static_cast<std::int64_t>(below(random, 12)) - 4;
  }
}

Dim telling_size(Random& random, const ir::Graph& graph) {
  if (below(random, 24) == 0) return std::int64_t{1} << (20 + below(random, 42));
  return below(random, 6) == 0 ? symbol(random, graph) : Dim(static_cast<std::int64_t>(below(random, 6)));
}

DType telling_dtype(Random& random) {
  static const std::vector<DType> kAll{DType::b8, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128};
  return one_of(random, kAll);
}

double telling_number(Random& random) {
  static const std::vector<double> kNumbers{0, -0.0, 1, -1, 0.5, 2, 3.7, 1e300, -1e300, 1e-300, INFINITY, -INFINITY, NAN, 9.3e18, 1e10};
  return one_of(random, kNumbers);
}

std::string telling_text(Random& random) {
  static const std::vector<std::string> kTexts{"", "constant", "reflect", "replicate", "circular", "sum", "mean", "prod", "amax", "amin", "bilinear", "nearest", "bicubic", "linear", "trilinear",
                                               "area", "zeros", "border", "reflection", "none", "max", "nearest-exact", "x"};
  return one_of(random, kTexts);
}

ir::Device telling_device(Random& random) {
  static const std::vector<ir::Device> kDevices{{}, {ir::Device::kHost, 1}, {2, 0}, {9, 0}, {9, 1}};
  return one_of(random, kDevices);
}

/// The name of a device, in its one form most often.
std::string telling_device_text(Random& random) {
  static const std::vector<std::string> kOdd{"cuda", "meta:0", "device2:0", "device0:0", "device256:1", "cuda:x", "cuda:-1", "cpu:", ":1", ""};
  return below(random, 6) == 0 ? one_of(random, kOdd) : ir::device_text(telling_device(random));
}

/// Asks for a device, where the op takes one.
void place(ir::Attributes& attributes, const ops::Op& op, Random& random) {
  if (!op.traits.copies && !(op.traits.creates && below(random, 2) == 0)) return;
  std::erase_if(attributes, [](const ir::NamedAttribute& a) { return a.name == "device"; });
  attributes.push_back({"device", telling_device_text(random)});
}

/// An operand without dimensions stays where it is now and then.
void place(ir::Type& type, ir::Device device, Random& random) {
  if (!type.shape.empty() || below(random, 2) == 0) type.device = device;
}

ir::Attribute telling_attribute(Random& random, const ir::Graph& graph) {
  switch (below(random, 8)) {
    case 0: return std::monostate();
    case 1: return below(random, 2) == 0;
    case 2: return telling_integer(random, graph);
    case 3: return telling_number(random);
    case 4: return telling_text(random);
    case 5: return telling_dtype(random);
    case 6: return std::vector<double>(below(random, 4), telling_number(random));
    default: {
      std::vector<Dim> list(below(random, 5));
      for (Dim& d : list) d = telling_integer(random, graph);
      return list;
    }
  }
}

/// Another value of the same kind, most often.
void change(ir::Attribute& value, Random& random, const ir::Graph& graph) {
  if (below(random, 6) == 0) {
    value = telling_attribute(random, graph);
    return;
  }
  if (bool* flag = std::get_if<bool>(&value)) *flag = !*flag;
  if (Dim* dim = std::get_if<Dim>(&value)) *dim = telling_integer(random, graph);
  if (double* number = std::get_if<double>(&value)) *number = telling_number(random);
  if (auto* text = std::get_if<std::string>(&value)) *text = telling_text(random);
  if (DType* dtype = std::get_if<DType>(&value)) *dtype = telling_dtype(random);
  if (auto* list = std::get_if<std::vector<Dim>>(&value)) {
    switch (list->empty() ? 0 : below(random, 6)) {
      case 0: list->push_back(telling_integer(random, graph)); break;
      case 1: list->pop_back(); break;
      case 2: list->push_back(list->front()); break;
      default: (*list)[below(random, list->size())] = telling_integer(random, graph);
    }
  }
}

void change(ir::Type& type, Random& random, const ir::Graph& graph) {
  switch (below(random, 12)) {
    case 0:
    case 1: type.dtype = telling_dtype(random); break;
    case 2: type.shape.insert(type.shape.begin() + static_cast<std::ptrdiff_t>(below(random, type.rank() + 1)), telling_size(random, graph)); break;
    case 3:
      if (!type.shape.empty()) type.shape.erase(type.shape.begin() + static_cast<std::ptrdiff_t>(below(random, type.rank())));
      break;
    case 4:
      if (type.rank() >= 2) std::swap(type.shape[below(random, type.rank())], type.shape[below(random, type.rank())]);
      break;
    case 5: type.shape.clear(); break;
    case 6:
      if (below(random, 4) == 0) type.device = telling_device(random);
      break;
    case 7:
      if (below(random, 4) == 0) type = ir::Type::token();
      break;
    case 8:
      type.strides = ir::Shape(type.rank());
      for (Dim& d : *type.strides) d = below(random, 20) == 0 ? telling_integer(random, graph) : Dim(static_cast<std::int64_t>(below(random, 12)) - 3);
      return;
    default:
      if (!type.shape.empty()) type.shape[below(random, type.rank())] = telling_size(random, graph);
  }
  type.strides.reset();
}

ir::Literal telling_literal(Random& random, const ir::Graph& graph) {
  switch (below(random, 3)) {
    case 0: return below(random, 2) == 0;
    case 1: return telling_number(random);
    default: return telling_integer(random, graph);
  }
}

/// One node of an op, taken apart.
struct Draft {
  ir::Graph graph;
  std::vector<ir::ValueId> operands;
  ir::Attributes attributes;
};

ir::ValueId add_input(Draft& draft, Random& random, ir::Type type) {
  change(type, random, draft.graph);
  return draft.graph.add_input(std::move(type));
}

void change_operand(Draft& draft, Random& random) {
  std::vector<ir::ValueId>& operands = draft.operands;
  if (operands.empty() || below(random, 10) == 0) {
    operands.push_back(operands.empty() || below(random, 2) == 0 ? add_input(draft, random, ir::Type::tensor(DType::f32, {Dim(2), Dim(3)})) : one_of(random, operands));
    return;
  }
  const std::size_t k = below(random, operands.size());
  switch (below(random, 8)) {
    case 0: operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(k)); break;
    case 1: std::swap(operands[k], operands[below(random, operands.size())]); break;
    case 2: operands[k] = draft.graph.add_literal(telling_literal(random, draft.graph)); break;
    default: operands[k] = add_input(draft, random, draft.graph.type(operands[k]));
  }
}

void change_attribute(Draft& draft, Random& random) {
  ir::Attributes& attributes = draft.attributes;
  switch (attributes.empty() ? 0 : below(random, 10)) {
    case 0: {
      static const std::vector<std::string> kNames{"dim", "keepdim", "dtype", "value", "size", "stride", "step", "shape", "index", "groups", "device", "unknown"};
      const std::string& name = one_of(random, kNames);
      if (std::ranges::find(attributes, ir::Name(name), &ir::NamedAttribute::name) == attributes.end()) attributes.push_back({name, telling_attribute(random, draft.graph)});
      break;
    }
    case 1: attributes.erase(attributes.begin() + static_cast<std::ptrdiff_t>(below(random, attributes.size()))); break;
    default: change(attributes[below(random, attributes.size())].value, random, draft.graph);
  }
}

/// The inputs that nothing reads stay behind: a graph anew has the operands only.
ir::Graph finished(const Draft& draft, const ops::Op& op, Random& random) {
  ir::Graph graph;
  for (const ir::SymbolInfo& s : draft.graph.symbols()) graph.add_symbol(s);
  std::vector<ir::ValueId> operands, known(draft.graph.value_capacity());
  for (ir::ValueId v : draft.operands) {
    ir::ValueId& made = known[v.value];
    if (!made) made = draft.graph.value(v).kind == ir::ValueKind::literal ? graph.add_literal(draft.graph.value(v).literal) : graph.add_input(draft.graph.type(v));
    operands.push_back(made);
  }
  std::vector<ir::Type> results{ir::Type::tensor(DType::f32, {Dim(2), Dim(3)})};
  if (auto inferred = op.infer(ops::OpQuery(graph, operands, draft.attributes))) {
    results = std::move(*inferred);
    for (ir::Type& type : results)  // sizes that depend on data
      for (Dim& d : type.shape)
        if (const SymbolId s = d.as_symbol(); s && s.value >= graph.symbols().size()) d = Dim::symbol(graph.add_symbol({.name = fmt::format("u{}", graph.symbols().size())}));
  }
  if (below(random, 6) == 0 && !results.empty()) change(results[below(random, results.size())], random, graph);
  if (below(random, 30) == 0) results.push_back(ir::Type::tensor(DType::f32, {Dim(2)}));
  if (below(random, 30) == 0 && !results.empty()) results.pop_back();
  const NodeId node = graph.add_node(op.name, std::move(operands), draft.attributes, std::move(results));
  for (ir::ValueId v : graph.node(node).results) graph.add_output({.value = v});
  return graph;
}

}  // namespace

ir::Graph op_graph(const ops::Op& op, Random& random) {
  Draft draft;
  const std::vector<ops::Sample> samples = ops::samples_of(op);
  for (std::size_t s = below(random, 3); s-- > 0;) draft.graph.add_symbol({.name = fmt::format("s{}", s), .min = static_cast<std::int64_t>(below(random, 3)), .max = below(random, 2) ? INT64_MAX : 9});
  const ir::Device device = below(random, 4) == 0 ? telling_device(random) : ir::Device();
  if (!samples.empty()) {
    const ops::Sample& sample = one_of(random, samples);
    draft.attributes = sample.attributes;
    place(draft.attributes, op, random);
    for (const ops::SampleOperand& o : sample.operands) {
      if (o.literal) {
        draft.operands.push_back(draft.graph.add_literal(*o.literal));
        continue;
      }
      ir::Type type = ir::Type::tensor(o.dtype, ir::Shape(o.shape.begin(), o.shape.end()));
      if (o.strides) type.strides = ir::Shape(o.strides->begin(), o.strides->end());
      place(type, device, random);
      draft.operands.push_back(draft.graph.add_input(std::move(type)));
    }
  }
  for (std::size_t changes = below(random, 4); changes-- > 0;)
    if (below(random, 2) == 0) change_operand(draft, random);
    else change_attribute(draft, random);
  return finished(draft, op, random);
}

std::vector<ir::Graph> resized_samples(const ops::Op& op) {
  std::vector<ir::Graph> graphs;
  const auto add = [&](const ops::Sample& sample) {
    ir::Graph graph;
    std::vector<ir::ValueId> operands;
    for (const ops::SampleOperand& o : sample.operands)
      operands.push_back(o.literal ? graph.add_literal(*o.literal) : graph.add_input(ir::Type::tensor(o.dtype, ir::Shape(o.shape.begin(), o.shape.end()))));
    ops::NodeBuilder builder(graph);
    try {
      for (ir::ValueId v : builder.call(op.name, std::move(operands), sample.attributes)) graph.add_output({.value = v});
      graphs.push_back(std::move(graph));
    } catch (const Exception&) {  // as it should be
    }
  };
  for (const ops::Sample& sample : ops::samples_of(op))
    for (std::size_t k = 0; k < sample.operands.size(); ++k)
      for (std::size_t d = 0; d < sample.operands[k].shape.size(); ++d) {
        const std::int64_t was = sample.operands[k].shape[d];
        for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, was - 1, was + 1, 2 * was}) {
          if (size < 0 || size == was) continue;
          ops::Sample resized = sample;
          resized.operands[k].shape[d] = size;
          add(resized);
        }
      }
  return graphs;
}

ir::Graph chain_of_ops(Random& random) {
  ir::Graph graph;
  std::vector<ir::ValueId> values;
  const std::size_t length = 2 + below(random, 5);
  const bool anywhere = below(random, 3) == 0;
  for (std::size_t tries = 0; tries < 40 && graph.nodes().size() < length; ++tries) {
    const ops::Op& op = ops::all_ops()[below(random, ops::all_ops().size())];
    const std::vector<ops::Sample> samples = ops::samples_of(op);
    if (samples.empty()) continue;
    const ops::Sample& sample = one_of(random, samples);
    std::vector<ir::ValueId> operands;
    ir::Attributes attributes = sample.attributes;
    ops::NodeBuilder builder(graph);
    if (anywhere) {
      builder.on(telling_device(random));
      place(attributes, op, random);
    }
    for (const ops::SampleOperand& o : sample.operands) {
      ir::Type type = ir::Type::tensor(o.dtype, ir::Shape(o.shape.begin(), o.shape.end()));
      place(type, builder.device(), random);
      const bool reuse = !values.empty() && below(random, 3) != 0;
      if (o.literal) operands.push_back(graph.add_literal(*o.literal));
      else operands.push_back(reuse ? one_of(random, values) : graph.add_input(std::move(type)));
    }
    try {
      for (ir::ValueId v : builder.call(op.name, std::move(operands), std::move(attributes))) values.push_back(v);
    } catch (const Exception&) {
    }
  }
  for (ir::ValueId v : values)
    if (below(random, 2) == 0 || v == values.back()) graph.add_output({.value = v});
  return graph;
}

ir::Graph as_branches(ir::Graph graph, Random& random) {
  const bool plain = std::ranges::all_of(graph.outputs(), [](const ir::Output& o) { return o.kind == ir::OutputKind::result; });
  if (!plain || !graph.symbols().empty() || !graph.constants().empty() || graph.outputs().empty()) return graph;
  ir::Graph whole;
  std::vector<ir::ValueId> operands{whole.add_input(ir::Type::tensor(DType::b8, {}))};
  std::vector<ir::Type> results;
  for (ir::ValueId v : graph.inputs()) operands.push_back(whole.add_input(graph.type(v)));
  for (const ir::Output& o : graph.outputs()) {
    results.push_back(graph.type(o.value));
    results.back().strides.reset();
  }
  ir::Graph other = graph.clone();
  if (below(random, 3) == 0) mutate_types(other, random);
  std::vector<RegionId> regions{whole.add_region(std::move(graph)), whole.add_region(std::move(other))};
  const NodeId node = whole.add_node("cond", std::move(operands), {}, std::move(results), {}, std::move(regions));
  for (ir::ValueId v : whole.node(node).results) whole.add_output({.value = v});
  return whole;
}

void mutate_types(ir::Graph& graph, Random& random) {
  const auto nodes = graph.nodes();
  if (nodes.empty()) return;
  const NodeId n = nodes[below(random, nodes.size())];
  const ir::Node& node = graph.node(n);
  if (!node.regions.empty() && below(random, 2) == 0) return mutate_types(graph.mutable_region(node.regions[below(random, node.regions.size())]), random);
  switch (below(random, 5)) {
    case 0: graph.mutable_node(n).op = ops::all_ops()[below(random, ops::all_ops().size())].name; break;
    case 1:
      if (!node.attributes.empty()) change(graph.mutable_node(n).attributes[below(random, node.attributes.size())].value, random, graph);
      break;
    case 2: {
      const auto inputs = graph.inputs();
      if (inputs.empty()) break;
      const ir::ValueId v = inputs[below(random, inputs.size())];
      ir::Type type = graph.type(v);
      change(type, random, graph);
      graph.set_type(v, std::move(type));
      break;
    }
    case 3: {
      if (node.results.empty()) break;
      const ir::ValueId v = node.results[below(random, node.results.size())];
      ir::Type type = graph.type(v);
      change(type, random, graph);
      graph.set_type(v, std::move(type));
      break;
    }
    default:
      if (!node.operands.empty()) graph.mutable_node(n).operands[below(random, node.operands.size())] = graph.add_literal(telling_literal(random, graph));
  }
}

}  // namespace tenon::fuzz
