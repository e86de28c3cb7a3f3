#include "core/ir/buffer.h"

#include <cstring>

#include "catch.h"
#include "core/abi/buffer_verifier.h"
#include "core/abi/graph_view.h"
#include "core/ir/parser.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

Graph parsed(std::string_view text) { return parse_graph(text).value(); }

constexpr std::string_view kExample = R"(
graph @main [n: 2..64, m] (%x: f32[n, 4], %w: f32[4, m]{1, 4}, %y: f32[n, m]) {
  const @scale: f64[2, 3]
  %p: f32[n, m] = mm(%x, %w) @ "model.py":12 "forward" "y = x @ w"
  %s: f32[n] = sum(%p) {dim = [1], keepdim = false, dtype = f32, size = n*2 + 1, eps = 0.5, mode = "same", nothing = none, scales = [1.0, 0.5]}
  %q: f32[n, m] = mul(%p, 2.5, n, true)
  %c: f64[2, 3] = constant() {index = @scale}
  return %s, saved %c, update %y = %q
}
)";

/// A buffer of kExample whose semantic sections can be damaged.
struct Damaged {
  std::vector<std::uint8_t> bytes = write_buffer(parsed(kExample));
  detail::SemanticSections s{bytes.data()};

  template <class Record>
  static Record& change(const Record& record) {
    return const_cast<Record&>(record);
  }
  std::string verdict() const { return verify_buffer(bytes_of(bytes)); }
};

}  // namespace

TEST_CASE("a view reads what the graph says") {
  const auto buffer = write_buffer(parsed(kExample));
  const GraphView g(bytes_of(buffer));
  CHECK(g.name() == "main");
  REQUIRE(g.nodes().size() == 4);
  REQUIRE(g.inputs().size() == 3);
  CHECK(g.inputs()[1].name() == "w");

  const NodeView mm = g.node(0);
  CHECK(mm.op() == "mm");
  CHECK(mm.operand(0) == g.inputs()[0]);
  CHECK(mm.result().name() == "p");
  CHECK(mm.location().file == "model.py");
  CHECK(mm.location().line == 12);
  CHECK(mm.location().code == "y = x @ w");
  CHECK(mm.origin() == 0);

  const NodeView sum = g.node(1);
  CHECK(sum.integers("dim") == std::vector<std::int64_t>{1});
  CHECK_FALSE(sum.flag("keepdim"));
  CHECK(sum.attribute("dtype").dtype() == DType::f32);
  CHECK(sum.number("eps") == 0.5);
  CHECK(sum.text("mode") == "same");
  CHECK(sum.attribute("scales").numbers() == std::vector<double>{1.0, 0.5});
  CHECK(sum.integer("absent", 7) == 7);
  CHECK(sum.number("nothing", 3.0) == 3.0);
  CHECK_THROWS_AS(sum.integer("absent"), std::invalid_argument);
  CHECK_THROWS_AS(sum.flag("mode"), std::invalid_argument);
  CHECK_THROWS_AS(sum.integer("size"), std::logic_error);
  const std::int64_t symbols[] = {8, 5};
  CHECK(sum.attribute("size").dim().evaluate(symbols) == 17);
  CHECK_FALSE(sum.attribute("absent"));

  const NodeView mul = g.node(2);
  CHECK(mul.operand(1).number() == 2.5);
  CHECK(mul.operand(2).literal_int().evaluate(symbols) == 8);
  CHECK(mul.operand(2).literal_int().as_symbol() == 0u);
  CHECK(mul.operand(3).literal_kind() == TENON_LITERAL_BOOL);

  CHECK(g.constant_count() == 1);
  CHECK(g.constant_type(0).shape() == std::vector<std::int64_t>{2, 3});
  CHECK(g.constant_name(0) == "scale");
  CHECK(g.symbol(0).max == 64);
  CHECK(g.symbol_name(1) == "m");
  REQUIRE(g.outputs().size() == 3);
  CHECK(g.outputs()[1].kind == TENON_OUTPUT_SAVED);
  CHECK(*g.outputs()[2].target == g.inputs()[2]);
}

TEST_CASE("sizes and strides are computed from symbol values") {
  const auto buffer = write_buffer(parsed(kExample));
  const GraphView g(bytes_of(buffer));
  const std::int64_t symbols[] = {8, 5};
  const TypeView p = g.node(0).type(), w = g.inputs()[1].type();
  CHECK(p.shape(symbols) == std::vector<std::int64_t>{8, 5});
  CHECK(p.strides(symbols) == std::vector<std::int64_t>{5, 1});
  CHECK(w.strides() == std::vector<std::int64_t>{1, 4});
  CHECK(p.element_count(symbols) == 40);
  CHECK(p.byte_count(symbols) == 160);
  CHECK_FALSE(p.is_static());
  CHECK_THROWS_AS(p.shape(), std::logic_error);
  const std::int64_t huge[] = {INT64_MAX, 5};
  CHECK_THROWS_AS(p.byte_count(huge), std::overflow_error);
}

TEST_CASE("graphs that differ in meaning differ in bytes, others do not") {
  const auto bytes = [](std::string_view text) { return write_buffer(parsed(text), {.debug = false}); };
  const auto base = bytes("graph @a (%x: f32[2]) { %y: f32[2] = add(%x, 1) return %y }");
  CHECK(base == bytes("graph @b (%in: f32[2]) { %out: f32[2] = add(%in, 1) @ \"f\":1 return %out }"));
  CHECK(base != bytes("graph @a (%x: f32[2]) { %y: f32[2] = add(%x, 1.0) return %y }"));
  CHECK(base != bytes("graph @a (%x: f32[2]) { %y: f32[2] = add(%x, 1) return saved %y }"));
  CHECK(base != bytes("graph @a (%x: f32[2]) { %y: f32[2]{1} = add(%x, 1) return %y }"));
  CHECK(bytes("graph @a () { %y: f32[] = add(0.0) return %y }") != bytes("graph @a () { %y: f32[] = add(-0.0) return %y }"));
}

TEST_CASE("origins travel with the debug part") {
  const Graph g = parsed("graph @a (%x: f32[2]) { %y: f32[2] = neg(%x) %z: f32[2] = neg(%y) return %z }");
  const std::uint32_t origins[] = {7, 9};
  const auto buffer = write_buffer(g, {.origins = origins});
  CHECK(GraphView(bytes_of(buffer)).node(1).origin() == 9);
}

TEST_CASE("hints of symbols travel with the debug part") {
  const char* rest = " (%x: f32[s0, s1]) { %y: f32[s0, s1] = neg(%x) return %y }";
  const Graph g = parsed(fmt::format("graph @a [s0, s1: 2.. ~ 124]{}", rest));
  const auto without = write_buffer(parsed(fmt::format("graph @a [s0, s1: 2..]{}", rest)));
  const auto buffer = write_buffer(g);
  const GraphView view(bytes_of(buffer));
  CHECK(view.symbol_hint(0) == -1);
  CHECK(view.symbol_hint(1) == 124);
  CHECK(read_buffer(bytes_of(buffer))->symbols()[1].hint == 124);
  CHECK(semantic_bytes(bytes_of(buffer)).size == semantic_bytes(bytes_of(without)).size);
  CHECK(std::memcmp(buffer.data(), without.data(), semantic_bytes(bytes_of(buffer)).size) == 0);
  const auto bare = write_buffer(g, {.debug = false});
  CHECK(GraphView(bytes_of(bare)).symbol_hint(1) == -1);
}

TEST_CASE("constants are borrowed, and checked against their types") {
  const auto buffer = write_buffer(parsed(kExample));
  double data[6] = {};
  std::int64_t shape[] = {2, 3}, strides[] = {3, 1}, column_major[] = {1, 2}, wrong[] = {2, 4};
  DLTensor t{data, {kDLCPU, 0}, 2, {kDLFloat, 64, 1}, shape, strides, 0};
  const DLTensor* tensors[] = {&t};
  const auto message = [&] {
    const Result<Graph> g = read_buffer(bytes_of(buffer), tensors);
    return g ? std::string() : g.error().message;
  };
  REQUIRE(message() == "");
  CHECK(read_buffer(bytes_of(buffer), tensors)->constants()[0].data == data);
  t.byte_offset = 8;
  CHECK(read_buffer(bytes_of(buffer), tensors)->constants()[0].data == data + 1);
  t.strides = column_major;
  CHECK(message().find("not row-major") != std::string::npos);
  t.strides = nullptr;
  t.shape = wrong;
  CHECK(message().find("dimension 1") != std::string::npos);
  t.shape = shape;
  t.dtype.bits = 32;
  CHECK(message().find("dtype f64") != std::string::npos);
  const DLTensor* two[] = {&t, &t};
  CHECK_FALSE(read_buffer(bytes_of(buffer), two).ok());
}

TEST_CASE("a refusal names section and record") {
  CHECK(Damaged().verdict() == "");
  {
    Damaged d;
    Damaged::change(d.s.operands[1]) = 99;
    CHECK(d.verdict() == "nodes[0]: operand 1 is value 99, which is not defined before it");
  }
  {
    Damaged d;
    Damaged::change(d.s.operands[2]) = d.s.nodes[1].first_result;  // of the node itself
    CHECK(d.verdict().starts_with("nodes[1]: operand 0 is value"));
  }
  {
    Damaged d;
    REQUIRE(d.s.expressions[3].kind == TENON_EXPRESSION_MUL);
    Damaged::change(d.s.expressions[3]).a = 3;
    CHECK(d.verdict() == "expressions[3]: its operands are not before it");
  }
  {
    Damaged d;
    Damaged::change(d.s.types[0]).dtype = 77;
    CHECK(d.verdict() == "types[0]: an unknown kind, dtype or layout");
  }
  {
    Damaged d;
    Damaged::change(d.s.nodes[3]).attribute_count = 0xfffffff0u;
    CHECK(d.verdict().starts_with("nodes[3]: its operands, attributes or regions"));
  }
  {
    Damaged d;
    Damaged::change(d.s.outputs[2]).target = d.s.outputs[2].value;
    CHECK(d.verdict() == "outputs[2]: its target is no input");
  }
  {
    Damaged d;
    Damaged::change(d.s.attributes[0]).kind = 8;
    CHECK(d.verdict() == "attributes[0]: an unknown kind, or a value that does not fit it");
  }
}

TEST_CASE("a buffer that is cut short, misaligned or of another schema is refused") {
  const auto good = write_buffer(parsed(kExample));
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::vector<std::uint8_t> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    const bool semantic_only = size == semantic_bytes(bytes_of(good)).size;
    REQUIRE(verify_buffer(bytes_of(cut)).empty() == semantic_only);
  }
  std::vector<std::uint8_t> moved(good.size() + 1);
  std::memcpy(moved.data() + 1, good.data(), good.size());
  CHECK(verify_buffer({moved.data() + 1, good.size()}).find("aligned") != std::string::npos);
  std::vector<std::uint8_t> newer = good;
  newer[8] = 2;
  CHECK(verify_buffer(bytes_of(newer)) == "semantic header: schema 2 is unknown; this reader knows 1");
}

TEST_CASE("records that a later writer has lengthened are read by their stride") {
  // The values section of a small buffer, rewritten with records of 24 bytes.
  const auto old = write_buffer(parsed("graph @a (%x: f32[2]) { %y: f32[2] = neg(%x) return %y }"), {.debug = false});
  const TenonBufferSection* table = detail::section_table(old.data());
  const TenonBufferSection values = table[TENON_SECTION_VALUES];
  const std::uint32_t more = values.count * 8;
  std::vector<std::uint8_t> longer(old.begin(), old.begin() + values.offset);
  for (std::uint32_t i = 0; i < values.count; ++i) {
    longer.insert(longer.end(), old.begin() + values.offset + i * 16, old.begin() + values.offset + (i + 1) * 16);
    longer.insert(longer.end(), 8, 0xee);
  }
  longer.insert(longer.end(), old.begin() + values.offset + values.count * 16, old.end());
  auto* header = reinterpret_cast<TenonBufferHeader*>(longer.data());
  auto* sections = reinterpret_cast<TenonBufferSection*>(longer.data() + header->header_size);
  header->part_size += more;
  sections[TENON_SECTION_VALUES].stride = 24;
  for (int i = TENON_SECTION_VALUES + 1; i < TENON_SECTION_COUNT; ++i) sections[i].offset += more;
  REQUIRE(verify_buffer(bytes_of(longer)) == "");
  CHECK(GraphView(bytes_of(longer)).node(0).result().type().shape() == std::vector<std::int64_t>{2});
  const Result<Graph> g = read_buffer(bytes_of(longer));
  REQUIRE(g.ok());
  CHECK(write_buffer(*g, {.debug = false}) == old);
}
