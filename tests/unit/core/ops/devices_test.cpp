// Where values are: inference, expansion and gradients of every op keep to the device of the operands, and mixed devices are refused.
#include "catch.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/check/type_checker.h"
#include "core/ops/foreign/foreign_call.h"
#include "core/ops/gradients/gradient.h"
#include "core/ops/infer.h"
#include "core/ops/reference/sample.h"
#include "core/rewrite/backward.h"

using namespace tenon;
using namespace tenon::ops;
using Catch::Contains;

namespace {

constexpr ir::Device kFar{9, 1};

/// The graph of a sample with its operands on the far device; with `host_scalars` those without dimensions stay where they are.
ir::Graph far_graph(const Op& op, const Sample& sample, bool host_scalars) {
  ir::Graph graph;
  std::vector<ir::ValueId> operands;
  for (const SampleOperand& o : sample.operands) {
    if (o.literal) {
      operands.push_back(graph.add_literal(*o.literal));
      continue;
    }
    const bool stays = host_scalars && o.shape.empty();
    operands.push_back(graph.add_input(ir::Type::tensor(o.dtype, ir::Shape(o.shape.begin(), o.shape.end()), stays ? ir::Device() : kFar)));
  }
  NodeBuilder builder(graph);
  builder.on(kFar);
  for (ir::ValueId v : builder.call(op.name, std::move(operands), sample.attributes)) graph.add_output({.value = v});
  return graph;
}

bool has_scalar_beside_tensors(const Sample& sample) {
  bool scalar = false, tensor = false;
  for (const SampleOperand& o : sample.operands)
    if (!o.literal) (o.shape.empty() ? scalar : tensor) = true;
  return scalar && tensor;
}

/// What is wrong with a graph of the far device: types that do not fit, or a value of the host that has dimensions.
std::string fault_of(const ir::Graph& graph) {
  if (const TypeReport report = check_graph(graph); !report.violations.empty()) return report.violations[0].text;
  for (ir::NodeId n : graph.nodes())
    for (ir::ValueId r : graph.node(n).results)
      if (graph.type(r).device != kFar && !graph.type(r).is_host_scalar()) return ir::print_node(graph, n);
  return {};
}

/// Replaces composite nodes down to ops that have none; then each body by its primitives, once.
void expand_all(ir::Graph& graph) {
  const auto each = [&](auto&& wanted) {
    bool any = false;
    for (ir::NodeId n : std::vector<ir::NodeId>(graph.nodes().begin(), graph.nodes().end()))
      if (const Op* op = find_op(graph.node(n).op); op && wanted(*op)) any = expand_node(graph, n) || any;
    return any;
  };
  while (each([](const Op& op) { return static_cast<bool>(op.decompose); })) {}
  each([](const Op& op) { return static_cast<bool>(op.body); });
}

std::string fault_of_expansion(const Op& op, const Sample& sample, bool host_scalars) {
  ir::Graph graph = far_graph(op, sample, host_scalars);
  if (std::string fault = fault_of(graph); !fault.empty()) return "inference: " + fault;
  if (op.decompose)
    if (std::string fault = fault_of(decomposition(graph, graph.nodes()[graph.nodes().size() - 1])); !fault.empty()) return "decomposition: " + fault;
  expand_all(graph);
  if (std::string fault = fault_of(graph); !fault.empty()) return "expansion: " + fault;
  return {};
}

/// Gradients are where their operands are.
std::string fault_of_gradients(const Op& op, const Sample& sample, bool host_scalars, std::size_t& checked) {
  const ir::Graph graph = far_graph(op, sample, host_scalars);
  ir::Graph backward;
  try {
    backward = rewrite::backward_graph(graph);
  } catch (const Exception& e) {
    return e.code() == Code::unsupported ? "" : std::string("gradient: ") + e.what();  // it says that there is none
  }
  ++checked;
  if (std::string fault = fault_of(backward); !fault.empty()) return "gradient: " + fault;
  std::size_t k = 0;
  for (ir::ValueId input : graph.inputs()) {
    if (!is_float(graph.type(input).dtype)) continue;
    if (backward.type(backward.outputs()[k++].value).device != graph.type(input).device) return "gradient: the device is another";
  }
  expand_all(backward);
  if (std::string fault = fault_of(backward); !fault.empty()) return "expansion of the gradient: " + fault;
  return {};
}

std::string refusal_by_device(const std::string& inputs, const std::string& node, const std::string& results = "%y") {
  const auto accepted = accept_graph(ir::parse_graph("graph @main (" + inputs + ") {\n  " + node + "\n  return " + results + "\n}\n").value());
  return accepted ? std::string() : accepted.error().message;
}

struct Made {
  ir::Graph graph;
  NodeBuilder builder{graph};

  ir::ValueId input(std::vector<std::int64_t> shape, ir::Device device) { return graph.add_input(ir::Type::tensor(DType::f32, ir::Shape(shape.begin(), shape.end()), device)); }

  /// The call's result, as its node's text, or why there is none.
  std::string call(std::string_view name, std::vector<ForeignArgument> positional, std::vector<std::pair<std::string, ForeignArgument>> keyword = {},
                   Flavour flavour = Flavour::torch, bool any_device = true) {
    auto made = call_foreign(builder, {name, std::move(positional), std::move(keyword), flavour, DType::f32, any_device});
    if (!made) return made.error().message;
    return ir::print_type(graph, graph.type((*made)[0]));
  }
};

}  // namespace

TEST_CASE("every op keeps to the device of its operands, down to primitives and in its gradients") {
  std::size_t gradients = 0, scalars = 0;
  for (const Op& op : all_ops()) {
    if (op.traits.copies) continue;  // goes elsewhere on purpose
    for (const Sample& sample : samples_of(op))
      for (bool host_scalars : {false, true}) {
        if (host_scalars && !has_scalar_beside_tensors(sample)) continue;
        scalars += host_scalars;
        INFO(op.name << " / " << sample.name << (host_scalars ? ", with scalars of the host" : ""));
        CHECK(fault_of_expansion(op, sample, host_scalars) == "");
        CHECK(fault_of_gradients(op, sample, host_scalars, gradients) == "");
      }
  }
  CHECK(gradients > 500);
  CHECK(scalars > 20);
}

TEST_CASE("operands are on one device, but for scalars of the host") {
  CHECK(refusal_by_device("%x: f32[4] on device2:0, %s: f32[]", "%y: f32[4] on device2:0 = add(%x, %s)").empty());
  CHECK(refusal_by_device("%x: f32[4] on device2:0, %s: f32[]", "%y: f32[4] on device2:0 = add(%s, %x)").empty());
  CHECK(refusal_by_device("%x: f32[] on device2:0, %s: f32[]", "%y: f32[] on device2:0 = add(%s, %x)").empty());
  CHECK_THAT(refusal_by_device("%x: f32[4] on device2:0, %s: f32[]", "%y: f32[4] = add(%s, %x)"), Contains("declared f32[4]; it is f32[4] on device2:0 (c)"));
  CHECK_THAT(refusal_by_device("%x: f32[4] on device2:0, %s: f32[1]", "%y: f32[4] on device2:0 = add(%x, %s)"),
             Contains("operand 1 is f32[1], and one before it is f32[4] on device2:0: they are on different devices (b)"));
  CHECK_THAT(refusal_by_device("%x: f32[4] on device2:0, %s: f32[] on device2:1", "%y: f32[4] on device2:0 = add(%x, %s)"), Contains("on different devices (b)"));
  CHECK_THAT(refusal_by_device("%x: f32[4], %s: f32[] on device2:1", "%y: f32[4] = add(%x, %s)"), Contains("on different devices (b)"));
  CHECK_THAT(refusal_by_device("%c: bool[4], %x: f32[4] on device9:1", "%y: f32[4] on device9:1 = where(%c, %x, 1.0)"), Contains("on different devices (b)"));
}

TEST_CASE("a node between devices is refused where it is made") {
  Made m;
  const ir::ValueId here = m.input({4}, {}), there = m.input({4}, kFar);
  CHECK_THROWS_WITH(m.builder.call("add", {here, there}), Contains("add: operand 1 is f32[4] on device9:1, and one before it is f32[4]"));
}

TEST_CASE("a predicate may be on any device, and so may what branches take") {
  const auto cond = [](const std::string& pred, const std::string& inside) {
    const std::string branch = " graph @b (%i: f32[4] on device2:0, %j: f32[2]" + inside + ") {\n return %i\n }";
    return refusal_by_device("%p: bool[]" + pred + ", %x: f32[4] on device2:0, %h: f32[2]", "%y: f32[4] on device2:0 = cond(%p, %x, %h)" + branch + branch);
  };
  CHECK(cond("", "").empty());
  CHECK(cond(" on device2:0", "").empty());
  CHECK(cond(" on device9:1", "").empty());
  CHECK_THAT(cond("", " on device2:0"), Contains("input 1 of the region @b is f32[2] on device2:0, and operand 1 is f32[2]"));
}

TEST_CASE("an update's value is on its input's device") {
  CHECK(refusal_by_device("%x: f32[4] on device2:0", "%y: f32[4] on device2:0 = relu(%x)", "update %x = %y").empty());
  const auto graph = ir::parse_graph("graph @main (%x: f32[4], %z: f32[4] on device2:0) {\n %y: f32[4] = relu(%x)\n return update %z = %y\n}\n");
  REQUIRE(!graph);
  CHECK_THAT(graph.error().message, Contains("%y of type f32[4] cannot update %z of type f32[4] on device2:0 (10)"));
}

TEST_CASE("a copy says where it goes, in one form") {
  const std::string far = "%x: f32[4, 2] on device2:1";
  CHECK(refusal_by_device(far, "%y: f32[4, 2] = to_device(%x) {device = \"cpu:0\"}").empty());
  CHECK(refusal_by_device(far, "%y: f32[4, 2] on device9:0 = to_device(%x) {device = \"device9:0\"}").empty());
  CHECK(refusal_by_device(far, "%y: f32[4, 2] on device2:1 = to_device(%x) {device = \"device2:1\"}").empty());
  CHECK_THAT(refusal_by_device(far, "%y: f32[4, 2] on device2:0 = to_device(%x) {device = \"device2\"}"), Contains("attribute 'device' is 'device2'; write 'device2:0'"));
  CHECK_THAT(refusal_by_device(far, "%y: f32[4, 2] on device2:2 = to_device(%x) {device = \"device02:2\"}"), Contains("write 'device2:2'"));
  CHECK_THAT(refusal_by_device(far, "%y: f32[4, 2] = to_device(%x) {device = \"meta:0\"}"), Contains("'meta' is no device; cpu is, "));
  CHECK_THAT(refusal_by_device(far, "%y: f32[4, 2] = to_device(%x) {device = \"device2:x\"}"), Contains("'device2:x' has no number of a device"));
  CHECK_THAT(refusal_by_device(far, "%y: f32[4, 2] = to_device(%x)"), Contains("attribute 'device' (str) is missing"));
  CHECK_THAT(refusal_by_device(far, "%y: f32[4, 2] = to_device(%x) {device = \"device2:0\"}"), Contains("declared f32[4, 2]; it is f32[4, 2] on device2:0"));
}

TEST_CASE("the gradient of a copy goes back") {
  const auto graph = ir::parse_graph("graph @main (%x: f64[4]) {\n %y: f64[4] on device2:0 = to_device(%x) {device = \"device2:0\"}\n %z: f64[4] on device2:0 = mul(%y, %y)\n return %z\n}\n").value();
  const ir::Graph backward = rewrite::backward_graph(graph);
  CHECK(check_graph(backward).violations.empty());
  CHECK(backward.type(backward.inputs()[1]).device == ir::Device{2, 0});
  CHECK(backward.type(backward.outputs()[0].value).device == ir::Device());
}

TEST_CASE("what is created is on the device that is asked for") {
  CHECK(refusal_by_device("%s: f32[]", "%y: f32[3] on device2:0 = full(%s) {device = \"device2:0\", dtype = f32, size = [3]}").empty());
  CHECK(refusal_by_device("%s: f32[] on device2:0", "%y: f32[3] on device2:0 = full(%s) {dtype = f32, size = [3]}").empty());
  CHECK(refusal_by_device("", "%y: i64[3] on device9:1 = arange() {device = \"device9:1\", dtype = i64, end = 3, start = 0}").empty());
  CHECK_THAT(refusal_by_device("%s: f32[] on device2:1", "%y: f32[3] on device2:0 = full(%s) {device = \"device2:0\", dtype = f32, size = [3]}"), Contains("the value is on device2:1, and the result on device2:0"));
  CHECK_THAT(refusal_by_device("", "%y: f32[2] on device2:0 = full(0.0) {dtype = f32, size = [2]}"), Contains("declared f32[2] on device2:0; it is f32[2]"));
  CHECK_THAT(refusal_by_device("%x: f32[2]", "%y: f32[2] = relu(%x) {device = \"device2:0\"}"), Contains("its op has no attribute 'device'"));

  Made m;
  const ir::ValueId made = m.builder.one("eye", {}, {{"device", "cpu:0"}, {"dtype", DType::f32}, {"k", ir::Dim(0)}, {"m", ir::Dim(2)}, {"n", ir::Dim(2)}});
  CHECK(m.graph.node(m.graph.value(made).node).attribute("device") == nullptr);  // the text form of the host is none
}

TEST_CASE("a divisor of integers is looked at in the host's memory alone: kernels of a device do not raise") {
  const auto nodes_of = [](ir::Device device) {
    Made m;
    const auto integers = [&] { return m.graph.add_input(ir::Type::tensor(DType::i64, {ir::Dim(4)}, device)); };
    m.call("torch.remainder", {{integers()}, {integers()}});
    std::string names;
    for (const NodeId n : m.graph.nodes()) names += std::string(m.graph.node(n).op) + " ";
    return names;
  };
  CHECK(nodes_of({}) == "nonzero_divisor remainder ");
  CHECK(nodes_of(kFar) == "remainder ");
}

TEST_CASE("calls of a library ask for devices by its words") {
  using List = ForeignList;
  Made m;
  const ir::ValueId here = m.input({4}, {}), there = m.input({4}, kFar), scalar = m.input({}, {});
  const auto text = [](const char* word) { return ForeignArgument{std::string(word)}; };
  const ForeignArgument two{List{{ir::Dim(2)}}};
  CHECK(m.call("torch.zeros", {two}, {{"device", text("device2:1")}}) == "f32[2] on device2:1");
  CHECK(m.call("torch.zeros", {two}, {{"device", text("device8")}}) == "f32[2] on device8:0");
  CHECK(m.call("torch.zeros", {two}, {{"device", text("cpu")}}) == "f32[2]");
  CHECK(m.call("torch.zeros", {two}) == "f32[2]");
  CHECK(m.call("torch.full", {two, {3.0}}, {{"device", text("device2")}}) == "f32[2] on device2:0");
  CHECK(m.call("torch.arange", {{ir::Dim(5)}}, {{"device", text("device9:1")}}) == "i64[5] on device9:1");
  CHECK(m.call("torch.linspace", {{0.0}, {1.0}, {ir::Dim(5)}}, {{"device", text("device2:0")}}) == "f32[5] on device2:0");
  CHECK(m.call("torch.eye", {{ir::Dim(2)}}, {{"device", text("device14:1")}}) == "f32[2, 2] on device14:1");
  CHECK(m.call("torch.tensor", {{1.5}}, {{"device", text("device2:0")}}) == "f32[] on device2:0");
  CHECK(m.call("torch.as_tensor", {{there}}, {{"device", text("cpu")}}) == "f32[4]");
  CHECK(m.call("torch.zeros_like", {{there}}) == "f32[4] on device9:1");
  CHECK(m.call("torch.zeros_like", {{there}}, {{"device", text("cpu")}}) == "f32[4]");
  CHECK(m.call("torch.Tensor.new_zeros", {{there}, two}) == "f32[2] on device9:1");
  CHECK(m.call("torch.Tensor.new_tensor", {{there}, {here}}) == "f32[4] on device9:1");
  CHECK(m.call("torch.Tensor.to", {{there}, text("cpu")}) == "f32[4]");
  CHECK(m.call("torch.Tensor.to", {{here}, {there}}) == "f32[4] on device9:1");
  CHECK(m.call("torch.Tensor.to", {{here}}, {{"device", text("device2:1")}, {"dtype", {DType::f64}}}) == "f64[4] on device2:1");
  CHECK(m.call("torch.add", {{there}, {scalar}}) == "f32[4] on device9:1");
  CHECK_THAT(m.call("torch.add", {{there}, {here}}), Contains("on different devices"));
  CHECK_THAT(m.call("torch.zeros", {two}, {{"device", text("meta")}}), Contains("'meta' is no device; cpu is, "));
  CHECK(check_graph(m.graph).violations.empty());
}

TEST_CASE("what is written goes to the memory that it is written to") {
  Made m;
  const ir::ValueId here = m.input({4}, {}), there = m.input({4}, kFar), scalar = m.input({}, {}), far_scalar = m.input({}, kFar);
  const ir::ValueId places = m.graph.add_input(ir::Type::tensor(DType::i64, {4}, kFar)), near_places = m.graph.add_input(ir::Type::tensor(DType::i64, {4}));
  const ForeignArgument slice{ForeignSlice{ir::Dim(0), ir::Dim(4), std::nullopt}};
  CHECK(m.call("torch.Tensor.copy_", {{there}, {here}}) == "f32[4] on device9:1");
  CHECK(m.call("torch.Tensor.copy_", {{here}, {there}}) == "f32[4]");
  CHECK(m.call("torch.Tensor.fill_", {{there}, {2.0}}) == "f32[4] on device9:1");
  CHECK(m.call("torch.Tensor.fill_", {{here}, {far_scalar}}) == "f32[4]");
  CHECK(m.call("torch.Tensor.zero_", {{there}}) == "f32[4] on device9:1");
  CHECK(m.call("torch.Tensor.__setitem__", {{there}, slice, {here}}) == "f32[4] on device9:1");
  CHECK(m.call("torch.Tensor.__setitem__", {{there}, {places}, {there}}) == "f32[4] on device9:1");
  CHECK(m.call("torch.Tensor.__setitem__", {{there}, {places}, {scalar}}) == "f32[4] on device9:1");
  CHECK_THAT(m.call("torch.Tensor.__setitem__", {{there}, {places}, {here}}), Contains("writing what is on cpu:0 under indices of a tensor on device9:1"));
  CHECK_THAT(m.call("torch.Tensor.__setitem__", {{here}, {near_places}, {far_scalar}}), Contains("writing what is on device9:1 under indices of a tensor on cpu:0"));
  CHECK(m.call("torch.Tensor.add_", {{there}, {scalar}}) == "f32[4] on device9:1");
  CHECK_THAT(m.call("torch.Tensor.add_", {{scalar}, {far_scalar}}), Contains("the result is on device9:1, and what it is written to on cpu:0"));
  CHECK(check_graph(m.graph).violations.empty());
}

TEST_CASE("an importer of the host's memory alone is told of other devices") {
  Made m;
  const ForeignArgument two{ForeignList{{ir::Dim(2)}}}, cuda{std::string("device2:0")};
  const ir::ValueId here = m.input({4}, {});
  CHECK_THAT(m.call("torch.zeros", {two}, {{"device", cuda}}, Flavour::torch, false), Contains("torch.zeros on the device 'device2:0'"));
  CHECK_THAT(m.call("torch.Tensor.to", {{here}, cuda}, {}, Flavour::torch, false), Contains("torch.Tensor.to on the device 'device2:0'"));
  CHECK_THAT(m.call("numpy.zeros", {two}, {{"device", cuda}}, Flavour::numpy, true), Contains("numpy.zeros on the device 'device2:0'"));
  CHECK_THAT(m.call("numpy.astype", {{here}, {DType::f64}}, {{"device", cuda}}, Flavour::numpy, true), Contains("argument 'device'"));
}
