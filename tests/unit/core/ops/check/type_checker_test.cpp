// The checker of types: what the catalogue's own samples are passes, what a stranger may write instead is refused with the node, what was
// declared and what is right.
#include "core/ops/check/type_checker.h"

#include "catch.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/reference/sample.h"
#include "fuzz/op_graphs.h"

using namespace tenon;
using Catch::Contains;

namespace {

/// The words against the one graph that a text holds: `head` goes between the name and the body.
std::string refusal(const std::string& inputs, const std::string& body, const std::string& results = "%y", const std::string& symbols = {}) {
  const std::string text = "graph @main " + symbols + "(" + inputs + ") {\n  " + body + "\n  return " + results + "\n}\n";
  const auto accepted = ops::accept_graph(ir::parse_graph(text).value());
  return accepted ? std::string() : accepted.error().message;
}

}  // namespace

TEST_CASE("every sample of the catalogue has the types that its op gives") {
  for (const ops::Op& op : ops::all_ops())
    for (const ops::Sample& sample : ops::samples_of(op)) {
      const ops::TypeReport report = ops::check_types(ops::sample_graph(op, sample));
      INFO(op.name << " " << sample.name << ": " << (report.violations.empty() ? "" : report.violations[0].text));
      CHECK(report.violations.empty());
      CHECK(report.not_negative.empty());
    }
}

TEST_CASE("a declared result is what its op gives") {
  CHECK_THAT(refusal("%x: f32[2]", "%y: f32[4000] = relu(%x)"), Contains("node 0 (relu) of %y: its result %y is declared f32[4000]; it is f32[2]"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f64[4] = add(%x, %x)"), Contains("declared f64[4]; it is f32[4]"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[4, 1] = relu(%x)"), Contains("it is f32[4]"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[4] on device2:0 = relu(%x)"), Contains("declared f32[4] on device2:0; it is f32[4]"));
  CHECK_THAT(refusal("%x: f32[4, 2]", "%y: f32[4], %z: f32[4] = max_dim(%x) {dim = 1}"), Contains("its result %z is declared f32[4]; it is i64[4]"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[4], %z: f32[4] = relu(%x)"), Contains("it has 2 results; its op gives 1"));
  CHECK_THAT(refusal("%x: f32[2, 3], %w: f32[4, 4]", "%y: f32[2, 4] = mm(%x, %w)"), Contains("the inner dimensions of the product differ: 3 and 4"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[1000, 1000] = reshape(%x) {shape = [1000, 1000]}"), Contains("invalid for input of size 4"));
}

TEST_CASE("operands that belong together have sizes that do") {
  const std::string scan = "%y: f32[3, 21] = scan_carried(%x, %totals) {dim = 1, product = false}";
  CHECK(refusal("%x: f32[3, 21], %totals: f32[3, 2]", scan).empty());
  CHECK_THAT(refusal("%x: f32[3, 21], %totals: f32[3, 1]", scan), Contains("sizes of the totals differ: 1 and 2"));
  CHECK_THAT(refusal("%x: f32[3, 21], %totals: f32[0, 2]", scan), Contains("sizes of the totals differ: 0 and 3"));
}

TEST_CASE("operands and attributes are those of the schema") {
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[4] = relu()"), Contains("it has 0 operands; its op takes 1"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[4] = add(%x, %x, %x)"), Contains("it has 3 operands; its op takes 2"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[] = sum(%x) {true = [0], keepdim = false}"), Contains("its op has no attribute 'true'; it has dim, keepdim, dtype"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[] = sum(%x) {dim = 1.5}"), Contains("attribute 'dim' is 1.5; its op takes int[]"));
  CHECK_THAT(refusal("%x: f32[4, 4]", "%y: f32[4] = select(%x) {dim = 0}"), Contains("attribute 'index' (int) is missing"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[4] = _to_copy(%x)"), Contains("attribute 'dtype' (ScalarType) is missing"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[4] = gelu(%x) {approximate = \"sum\"}"), Contains("approximate must be 'none' or 'tanh', not 'sum'"));
  CHECK_THAT(refusal("%x: f32[s0]", "%y: f32[s0] = hardtanh(%x) {max_val = 3.0, min_val = s0}", "%y", "[s0: 0..9] "), Contains("attribute 'min_val' must be a constant"));
  CHECK_THAT(refusal("%x: bool[1, 1, 4]", "%y: bool[1, 1, 8] = upsample(%x) {mode = \"linear\", output_size = [8]}"), Contains("bools have nothing between them"));
  const std::string images = "%x: f32[1, 2, 4, 4], %g: f32[1, 3, 3, 2]";
  CHECK(refusal(images, "%y: f32[1, 2, 3, 3] = grid_sampler(%x, %g)").empty());
  CHECK_THAT(refusal(images, "%y: f32[1, 2, 3, 3] = grid_sampler(%x, %g) {mode = \"area\"}"), Contains("grid_sampler has no mode 'area'"));
}

TEST_CASE("what an op is made of takes its sizes and dtypes too") {
  CHECK(refusal("%x: c64[4, 2]", "%y: c64[2, 4] = permute(%x) {dims = [1, 0]}").empty());
  CHECK_THAT(refusal("%x: c64[4]", "%y: i64[] = argmin(%x)"), Contains("it computes with complex numbers"));
  for (const ops::Op& op : ops::all_ops()) {
    if (!op.decompose) continue;
    for (const ops::Sample& sample : ops::samples_of(op)) {
      const ir::Graph graph = ops::sample_graph(op, sample);
      INFO(op.name << " " << sample.name);
      CHECK(ops::accept_graph(ops::decomposition(graph, graph.nodes().front())).ok());
    }
  }
}

TEST_CASE("inference that is said to be whole takes what the op's meaning takes") {
  for (const ops::Op& op : ops::all_ops()) {
    if (!op.traits.is_inferred_whole) continue;
    std::vector<ir::Graph> graphs = fuzz::resized_samples(op);
    fuzz::Random random(29);
    for (int i = 0; i < 40; ++i) graphs.push_back(fuzz::op_graph(op, random));
    for (const ir::Graph& graph : graphs) {
      if (ir::verify_graph(graph) || !ops::check_types(graph).violations.empty()) continue;
      const auto asked = ops::check_types(graph, 1, ops::AskedMeanings::all).violations;
      INFO(ir::print_graph(graph));
      CHECK((asked.empty() ? "" : asked[0].text) == "");
    }
  }
}

TEST_CASE("composite ops whose inference is whole are checked without being made") {
  CHECK_THAT(refusal("%x: f32[4, 10], %w: f32[9]", "%y: f32[4, 10] = layer_norm(%x, %w) {normalized_shape = [10]}"), Contains("elements of the weight and of what is normalised differ: 9 and 10"));
  CHECK_THAT(refusal("%x: f32[2, 6, 3], %w: f32[6], %b: f32[3]", "%y: f32[2, 6, 3] = group_norm(%x, %w, %b) {num_groups = 3}"), Contains("elements of the bias and of what is normalised differ: 3 and 6"));
  CHECK_THAT(refusal("%x: bool[3, 8]", "%y: bool[3, 3] = avg_pool(%x) {kernel_size = [3], stride = [2]}"), Contains("given bool"));
  CHECK_THAT(refusal("%w: f32[3, 2, 3], %g: f32[1, 3, 3]", "%y: f32[1, 2, 11] = conv_input_sum(%w, %g) {before = [0], dilation = [1], groups = 1, sizes = [11], stride = [3, 1]}"), Contains("attribute 'stride' has 2 numbers"));
  CHECK_THAT(refusal("%w: f32[3, 2, 3], %g: f32[1, 3, s0]", "%y: f32[1, 2, 11] = conv_input_sum(%w, %g) {before = [0], dilation = [1], groups = 1, sizes = [11], stride = [3]}", "%y", "[s0: 1..9] "), Contains("over dimensions of unknown size"));
  CHECK_THAT(refusal("%x: f32[s0]", "%y: f32[] = var(%x) {correction = 0.5}", "%y", "[s0: 1..9] "), Contains("a correction that is no integer, over dimensions of unknown size"));
}

TEST_CASE("composite ops of large sizes, or of sizes that the ranges leave open, are made to be checked") {
  const std::string kernel = "%w: f32[4, 3, 3, 3], %g: f32[2, 4, 7, 6]";
  CHECK_THAT(refusal(kernel, "%y: f32[2, 3, 1099511627776, 6] = conv_input_sum(%w, %g) {before = [1, 1], dilation = [1, 1], groups = 1, sizes = [1099511627776, 6], stride = [1, 1]}"), Contains("windows reach 1073741823"));
  CHECK_THAT(refusal("%x: f32[0, 3, 576460752303423488]", "%y: f32[3, 576460752303423488] = std(%x) {correction = 1, dim = [0], keepdim = false}"), Contains("cannot be counted"));
  const std::string node = "%y: f32[1, 6, s0*3 - 6, 9] = convolution(%x, %w) {groups = 3, output_padding = [2, 0], padding = [5, 0], stride = [3, 1], transposed = true}";
  CHECK_THAT(refusal("%x: f32[1, 6, s0, 8], %w: f32[6, 2, 5, 2]", node, "%y", "[s0: 0..9] "), Contains("a place whose sign is not known: s0 - 1"));
  CHECK(refusal("%x: f32[1, 6, s0, 8], %w: f32[6, 2, 5, 2]", node, "%y", "[s0: 3..9] ").empty());
}

TEST_CASE("a number is an operand only where its op reads it as one") {
  CHECK(refusal("%x: f32[4]", "%y: f32[4] = add(%x, 1.0)").empty());
  CHECK(refusal("", "%y: f32[3] = full(2.5) {dtype = f32, size = [3]}").empty());
  CHECK_THAT(refusal("", "%y: f64[] = sum(1.0)"), Contains("one of its operands is a number"));
  CHECK_THAT(refusal("", "%y: f64[] = cumsum(1.0) {dim = 0}"), Contains("number"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[4] = where(true, %x, %x)"), Contains("the condition must be a tensor, not a number"));
  CHECK_THAT(refusal("%x: f32[4]", "%y: f32[] = add(%x, 1.0)"), Contains("declared f32[]; it is f32[4]"));
  CHECK_THAT(refusal("%x: f32[4, 5]", "%y: f32[5] = index(%x, 7) {dims = [0]}"), Contains("index 7 is out of bounds for a dimension of size 4"));
  CHECK(refusal("%x: f32[4, 5]", "%y: f32[5] = index(%x, -4) {dims = [0]}").empty());
}

TEST_CASE("a node that looks like one before it is asked for what it says itself") {
  const std::string known = "%a: f32[5] = index(%x, 3) {dims = [0]}\n  %b: f32[5] = index(%x, 3) {dims = [0]}\n  ";
  CHECK(refusal("%x: f32[4, 5]", known + "%y: f32[5] = index(%x, 2) {dims = [0]}").empty());
  CHECK_THAT(refusal("%x: f32[4, 5]", known + "%y: f32[5] = index(%x, 7) {dims = [0]}"), Contains("node 2 (index) of %y: index 7 is out of bounds"));
  CHECK_THAT(refusal("%x: f32[4, 5], %z: f32[3, 5]", known + "%y: f32[5] = index(%z, 3) {dims = [0]}"), Contains("node 2 (index) of %y: index 3 is out of bounds"));
  const auto branch = [](const char* name, int place) {
    return fmt::format(" graph @{} (%v: f32[4, 5]) {{\n    %w: f32[5] = index(%v, {}) {{dims = [0]}}\n    return %w\n  }}", name, place);
  };
  CHECK(refusal("%x: f32[4, 5], %p: bool[]", known + "%y: f32[5] = cond(%p, %x)" + branch("a", 2) + branch("b", 3)).empty());
  CHECK_THAT(refusal("%x: f32[4, 5], %p: bool[]", known + "%y: f32[5] = cond(%p, %x)" + branch("a", 3) + branch("b", 4)), Contains("index 4 is out of bounds"));
}

TEST_CASE("sizes are proven equal, or what must hold of them is noted") {
  const std::string n = "[s0: 0..9] ", two = "[s0: 1..9, s1: 1..9] ";
  CHECK(refusal("%x: f32[s0, 4]", "%y: f32[s0] = sum(%x) {dim = [1]}", "%y", n).empty());
  CHECK_THAT(refusal("%x: f32[s0], %z: f32[s1]", "%y: f32[s0] = add(%x, %z)", "%y", two), Contains("cannot be proven equal"));
  CHECK_THAT(refusal("%x: f32[s0]", "%y: f32[s0 + 1] = relu(%x)", "%y", n), Contains("declared f32[s0 + 1]; it is f32[s0]"));
  const auto noted = [](const std::string& range) {
    return ops::accept_graph(ir::parse_graph("graph @main [s0: " + range + "] (%x: f32[s0]) {\n  %y: f32[] = select(%x) {dim = 0, index = 3}\n  return %y\n}\n").value()).value().size();
  };
  CHECK(noted("4..") == 0);
  CHECK(noted("0..") == 1);
}

TEST_CASE("a size that depends on data is a symbol of its own") {
  CHECK(refusal("%x: bool[4]", "%y: i64[u0, 1] = nonzero(%x)", "%y", "[u0] ").empty());
  CHECK_THAT(refusal("%x: bool[4]", "%y: i64[4, 1] = nonzero(%x)"), Contains("a size that depends on data is a symbol"));
  CHECK_THAT(refusal("%x: bool[u0]", "%y: i64[u0, 1] = nonzero(%x)", "%y", "[u0] "), Contains("nothing mentions before"));
  CHECK_THAT(refusal("%x: bool[4]", "%y: i64[u0, 1] = nonzero(%x)\n  %z: i64[1] = select(%y) {dim = 0, index = 0}", "%z", "[u0] "), Contains("depends on data, and may be negative"));
}

TEST_CASE("layouts of results leave no gaps") {
  CHECK(refusal("%x: f32[2, 3]", "%y: f32[2, 3]{1, 2} = relu(%x)").empty());
  for (const char* strides : {"{4, 1}", "{0, 1}", "{1, 1}", "{-3, 1}", "{300000, 1}"})
    CHECK_THAT(refusal("%x: f32[2, 3]", std::string("%y: f32[2, 3]") + strides + " = relu(%x)"), Contains("leave gaps, or put two elements in one place"));
  CHECK_THAT(refusal("%x: f32[2, 3]{9223372036854775807, 1}", "%y: f32[2, 3] = relu(%x)"), Contains("reaches further than can be counted"));
}

TEST_CASE("branches take and give what their node does") {
  const auto branch = [](const std::string& predicate, const std::string& inside, const std::string& given) {
    return refusal("%p: " + predicate + ", %x: f32[4]",
                   "%y: f32[4] = cond(%p, %x) graph @a (%v: " + inside + ") {\n    return %v\n  } graph @b (%v: f32[4]) {\n    %w: " + given + " = neg(%v)\n    return %w\n  }");
  };
  CHECK(branch("bool[]", "f32[4]", "f32[4]").empty());
  CHECK_THAT(branch("f32[]", "f32[4]", "f32[4]"), Contains("its predicate is f32[], not bool[]"));
  CHECK_THAT(branch("bool[]", "f32[5]", "f32[4]"), Contains("input 0 of the region @a is f32[5], and operand 0 is f32[4]"));
  CHECK_THAT(branch("bool[]", "f32[4]", "f32[5]"), Contains("declared f32[5]; it is f32[4]"));
}

TEST_CASE("numbers at the ends of their range are refused, not computed with") {
  for (const char* number : {"9223372036854775807", "-9223372036854775807", "4611686018427387904"}) {
    INFO(number);
    const std::string n = number;
    CHECK_FALSE(refusal("%x: f32[1, 2, 9], %w: f32[3, 2, 3]", "%y: f32[1, 3, 9] = conv_sum(%x, %w) {after = [" + n + "], before = [1], dilation = [1], groups = 1, stride = [1]}").empty());
    CHECK_FALSE(refusal("%x: f32[2, 8]", "%y: f32[2, 4], %z: i64[2, 4] = max_pool_with_indices(%x) {kernel_size = [" + n + "]}").empty());
    CHECK_FALSE(refusal("", "%y: f32[4] = arange() {dtype = f32, end = " + n + ", start = 0, step = 1}").empty());
    CHECK_FALSE(refusal("%x: f32[4]", "%y: f32[4] = repeat(%x) {repeats = [" + n + "]}").empty());
  }
  CHECK_THAT(refusal("%x: f32[3, 5]", "%y: f32[3, 1], %z: i64[3, 1] = kthvalue(%x) {dim = 1, k = -2}"), Contains("selected number k out of range"));
}
