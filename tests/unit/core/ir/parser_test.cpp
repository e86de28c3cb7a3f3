#include "core/ir/parser.h"

#include <cstring>

#include "catch.h"
#include "core/base/float16.h"
#include "core/ir/printer.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

std::string refusal(std::string_view text) {
  const Result<Graph> g = parse_graph(text);
  return g ? "accepted" : g.error().message;
}

/// The refusal of a graph with these nodes.
std::string refusal_of(std::string_view nodes) { return refusal(fmt::format("graph @g [s0] (%x: f32[s0, 4]) {{\n{}\nreturn %x }}", nodes)); }

template <class T>
std::vector<T> elements(const Graph& g, std::size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), g.constants()[0].data, count * sizeof(T));
  return values;
}

}  // namespace

TEST_CASE("a graph is read with all its parts") {
  const Result<Graph> g = parse_graph(R"tir(
    graph @main [s0: 2..1024, s1] (%x: f32[s0, 4], %w: f32[4, s1]{1, 4} on device2:1) {
      # a comment
      %y: f32[s0, s1] = mm(%x, %w)
      %v: f32[s0], %i: i64[s0] = max_dim(%y) {dim = 1} @ "model.py":12 "forward" "y.max(1)"
      return %v, saved %i
    })tir");
  REQUIRE(g.ok());
  CHECK(g->symbols()[0].min == 2);
  CHECK(g->symbols()[0].max == 1024);
  CHECK(g->symbols()[1].max == INT64_MAX);
  CHECK(g->type(g->inputs()[1]).device == Device{2, 1});
  const Node& n = g->node(g->nodes()[1]);
  CHECK(n.results.size() == 2);
  CHECK(n.location->line == 12);
  CHECK(std::get<Dim>(*n.attribute("dim")) == Dim(1));
  CHECK(g->outputs()[1].kind == OutputKind::saved);
}

TEST_CASE("an error says where, what was expected, and what is there") {
  CHECK(refusal("") == "line 1, column 1: expected 'graph', found the end of the text");
  CHECK(refusal("graph main") == "line 1, column 7: expected the graph's name, like @main, found 'main'");
  CHECK(refusal_of("%y: f32[s0] = neg(%z)") == "line 2, column 19: there is no value %z before this place");
  CHECK(refusal_of("%x: f32[s0] = neg(%x)") == "line 2, column 1: there is a value %x already");
  CHECK(refusal_of("%y: f31[s0] = neg(%x)") == "line 2, column 5: expected a type, like f32[2, 3], found 'f31'");
  CHECK(refusal_of("%y: f32[s1] = neg(%x)") == "line 2, column 9: there is no symbol s1");
  CHECK(refusal_of("%y: f32[-1] = neg(%x)") == "line 2, column 9: a dimension cannot be -1");
  CHECK(refusal_of("%y: f32[2]{1, 1} = neg(%x)") == "line 2, column 11: 2 strides for 1 dimensions");
  CHECK(refusal_of("%y: f32[2] = neg(%x") == "line 3, column 1: expected ')', found 'return'");
  CHECK(refusal_of("%y: f32[2] = neg(%x) {a = 1, a = 2}") == "line 2, column 30: attribute 'a' is given twice");
  CHECK(refusal_of("%y: f32[2] = neg(%x) {a = [1.0, 2]}") == "line 2, column 33: expected a float, as the others in this list, found '2'");
  CHECK(refusal_of("%y: f32[2] = neg(%x) {a = \"x") == "line 2, column 27: this string has no end");
  CHECK(refusal_of("%y: f32[9223372036854775808] = neg(%x)") == "line 2, column 9: this integer does not fit in 64 bits");
  CHECK(refusal_of("%y: f32[log(2, 3)] = neg(%x)") == "line 2, column 9: 'log' is no function of sizes; floor_div, mod, min and max are");
  CHECK(refusal_of("%y: f32[floor_div(2, 0)] = neg(%x)") == "line 2, column 9: division of a symbolic size by zero");
  CHECK(refusal_of("%y: f32[2] on tpu:0 = neg(%x)") == "line 2, column 15: 'tpu' is no device; cpu is, and device1 to device255 by DLPack's numbers are");
  CHECK(refusal_of("%y: f32[2] on device0:0 = neg(%x)").find("'device0' is no device") != std::string::npos);
  CHECK(refusal_of("%y: f32[2] on device256 = neg(%x)").find("'device256' is no device") != std::string::npos);
  CHECK(refusal_of("%y: f32[2] on device2:-1 = neg(%x)") == "line 2, column 15: this is no number of a device");
  CHECK(refusal_of("const @c: f32[1] on device2:0 = [1]") == "line 2, column 31: the elements of a constant on device2:0 are not in the text");
  CHECK(refusal_of("%y: f32[2] on device2:2147483648 = neg(%x)") == "line 2, column 15: this is no number of a device");
  CHECK(refusal_of("const @c: i8[1] = [300]") == "line 2, column 20: 300 does not fit in the constant's dtype");
  CHECK(refusal_of("const @c: i8[2] = [3]") == "line 2, column 7: constant @c has 2 elements, 1 are given");
  CHECK(refusal("graph @g (%x: f32[2]) { %y: f32[2] = neg(%x) return update %y = %x }") == "line 1, column 60: only an input can be updated");
  CHECK(refusal("graph @g [f32] () { return }") == "line 1, column 11: 'f32' is no name for a symbol");
  CHECK(refusal("graph @g (%x: f32[3], %y: f32[2]) { return update %x = %y }").find("%y of type f32[2] cannot update %x of type f32[3]") != std::string::npos);
}

TEST_CASE("deep nesting is refused, not followed") {
  CHECK(refusal_of("%y: f32[" + std::string(100000, '(') + "] = neg(%x)").find("nested too deeply") != std::string::npos);
  CHECK(refusal_of("%y: f32[" + std::string(100000, '-') + "1] = neg(%x)").find("nested too deeply") != std::string::npos);
  std::string regions;
  for (int i = 0; i < 1000; ++i) regions += "f() graph @r () { ";
  CHECK(refusal_of(regions).find("nested too deeply") != std::string::npos);
}

TEST_CASE("constants that are written out have their bytes") {
  const auto read = [](std::string_view constant) { return parse_graph(fmt::format("graph @g () {{ const @c: {} return }}", constant)).value(); };
  CHECK(elements<float>(read("f32[3] = [1, -2.5, 1e-45]"), 3) == std::vector<float>{1, -2.5f, 1e-45f});
  CHECK(elements<std::uint8_t>(read("bool[2] = [true, false]"), 2) == std::vector<std::uint8_t>{1, 0});
  CHECK(elements<std::int64_t>(read("i64[1] = [-9223372036854775808]"), 1) == std::vector<std::int64_t>{INT64_MIN});
  CHECK(elements<std::uint16_t>(read("f16[3] = [1.0, 65504.0, 6e-08]"), 3) == std::vector<std::uint16_t>{0x3c00, 0x7bff, 0x0001});
  CHECK(elements<std::uint16_t>(read("bf16[2] = [1.0, inf]"), 2) == std::vector<std::uint16_t>{0x3f80, 0x7f80});
  const Graph g = read("f32[2, 2] = [0.1, 3.4028235e+38, -0.0, nan]");
  CHECK(print_graph(g).find("= [0.1, 3.4028235e+38, -0.0, nan]") != std::string::npos);
}

TEST_CASE("numbers keep their kind and their bits") {
  const Result<Graph> g = parse_graph("graph @g [n] () { %a: f32[] = f(1, 1.0, -0.0, n*2 - 1, true, nan(0xfff8000000000001), -inf, -9223372036854775808) return %a }");
  REQUIRE(g.ok());
  CHECK(print_graph(*g).find("f(1, 1.0, -0.0, n*2 - 1, true, nan(0xfff8000000000001), -inf, -9223372036854775808)") != std::string::npos);
}

TEST_CASE("half floats round to nearest even, both ways") {
  for (std::uint32_t h = 0; h < 0x10000; ++h) {
    const float f = float_of_half(static_cast<std::uint16_t>(h));
    if (f == f) REQUIRE(half_of_float(f) == h);
    const float b = float_of_bfloat16(static_cast<std::uint16_t>(h));
    if (b == b) REQUIRE(bfloat16_of_float(b) == h);
  }
  CHECK(half_of_float(65519.996f) == 0x7bff);
  CHECK(half_of_float(65520.0f) == 0x7c00);
  CHECK(half_of_float(1.0f + 0x1p-11f) == 0x3c00);             // a tie goes to even
  CHECK(half_of_float(1.0f + 3 * 0x1p-11f) == 0x3c02);
  CHECK(half_of_float(0x1p-25f) == 0);
  CHECK(half_of_float(0x1.8p-25f) == 1);
  CHECK(bfloat16_of_float(1.00390625f) == 0x3f80);
}
