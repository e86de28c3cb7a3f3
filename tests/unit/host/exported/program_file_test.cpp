// Exported programs: saved and loaded through the C API, run without whoever made them, and refused when a section makes no sense.
#include "host/exported/program_file.h"

#include <unistd.h>

#include <filesystem>

#include "../test_backend.h"
#include "catch.h"
#include "core/ir/buffer.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "host/exported/container.h"
#include "host/plugins/contact/crossing.h"

using namespace tenon;
using namespace tenon::test;
using Catch::Contains;

namespace {

const char* const kSavedGraph = R"(graph @g [s0: 1..8] (%x: f32[s0, 3]) {
  const @c0: f32[3] = [1.0, 2.0, 4.0]
  const @c1: i64[2] = [5, 6]
  %c: f32[3] = constant() {index = @c0}
  %d: i64[2] = constant() {index = @c1}
  %z: f32[s0, 3] = mul(%x, %c)
  return %z, %d
}
)";

struct Path {
  std::string text = (std::filesystem::temp_directory_path() / ("tenon_program_" + std::to_string(::getpid()) + ".tnx")).string();
  ~Path() { std::filesystem::remove(text); }
};

/// What the C API takes: the buffer, and the constants as tensors.
struct Submitted {
  explicit Submitted(const ir::Graph& graph) : buffer(ir::write_buffer(graph)) {
    for (const ir::Constant& constant : graph.constants()) tensors.push_back(store.tensor(constant));
    graph_ = {sizeof(TenonGraph), ir::bytes_of(buffer), tensors.data(), tensors.size()};
  }
  const TenonGraph* operator&() const { return &graph_; }

  std::vector<std::uint8_t> buffer;
  host::ConstantStore store;
  std::vector<const DLTensor*> tensors;
  TenonGraph graph_{};
};

/// The inputs of a call: a tensor with these sizes.
std::vector<ops::HostTensor> input(std::vector<std::int64_t> shape) {
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, std::move(shape), 1));
  return inputs;
}

void save(const std::string& text, const Path& path, const char* signature = "{\"a\": 1}") {
  const ir::Graph graph = parse(text);
  const Submitted submitted(graph);
  require_ok(tenon_export_save(&submitted, signature, path.text.c_str()));
}

}  // namespace

TEST_CASE("an exported program is the graph, with its constants and its signature") {
  const Path path;
  save(kSavedGraph, path);
  const host::ExportedProgram loaded = host::load_program(path.text);
  CHECK(ir::print_graph(loaded.graph) == ir::print_graph(parse(kSavedGraph)));
  CHECK(loaded.signature == "{\"a\": 1}");
  CHECK(static_cast<const float*>(loaded.graph.constants()[0].data)[2] == 4.0f);
  CHECK(static_cast<const std::int64_t*>(loaded.graph.constants()[1].data)[1] == 6);
}

TEST_CASE("an exported program runs, and its guards are checked") {
  const Path path;
  save(kSavedGraph, path);
  TestBackend backend{"backend"};
  TestSession session({&backend});
  TenonCapturedGraph* captured = nullptr;
  require_ok(tenon_capture_file(session.get(), path.text.c_str(), "{}", &captured));
  CHECK(std::string(tenon_captured_signature(captured)) == "{\"a\": 1}");
  {
    const TenonGraph& graph = *tenon_captured_graph(captured);
    TestProgram program(session, ir::read_buffer(graph.buffer, {graph.constants, graph.constant_count}).value(), {});
    const auto x = input({2, 3});
    const auto results = program.call(x);
    CHECK(results.at(0).as<float>()[5] == x[0].as<float>()[5] * 4.0f);
    CHECK(results.at(1).as<std::int64_t>()[0] == 5);
    CHECK_THROWS_WITH(program.call(input({2, 4})), Contains("[2, 4]"));
    CHECK_THROWS_WITH(program.call(input({9, 3})), Contains("from 1 to 8"));
  }
  tenon_captured_release(captured);
}

TEST_CASE("what cannot travel is refused with its name") {
  const Path path;
  CHECK_THROWS_WITH(save("graph @g (%x: f32[2]) {\n  %y: f32[2] = vendor.magic(%x) @ \"m.py\":7 \"f\" \"y = magic(x)\"\n  return %y\n}\n", path),
                    Contains("vendor.magic") && Contains("line 7"));
  CHECK_THROWS_WITH(save(kSavedGraph, path, "[]"), Contains("JSON object"));
  CHECK_FALSE(std::filesystem::exists(path.text));
}

TEST_CASE("sections that make no sense are named") {
  const Path path;
  const ir::Graph graph = parse(kSavedGraph);
  const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
  const std::string bytes(buffer.begin(), buffer.end());
  const auto refusal = [&](std::vector<host::SectionToWrite> sections) {
    host::write_container(path.text, sections);
    try {
      host::load_program(path.text);
    } catch (const Exception& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::string constants(64 + 16, '\0');
  CHECK(refusal({{"graph", {bytes}}, {"signature", {"{}"}}, {"constants", {constants}}}).empty());
  CHECK_THAT(refusal({{"graph", {"nonsense"}}, {"signature", {"{}"}}, {"constants", {constants}}}), Contains("section 'graph'"));
  CHECK_THAT(refusal({{"graph", {bytes}}, {"signature", {"no"}}, {"constants", {constants}}}), Contains("section 'signature'"));
  CHECK_THAT(refusal({{"graph", {bytes}}, {"signature", {"{}"}}, {"constants", {"short"}}}), Contains("section 'constants' has 5 bytes; the graph's constants have 80"));
  CHECK_THAT(refusal({{"graph", {bytes}}, {"signature", {"{}"}}, {"constants", {constants + "x"}}}), Contains("section 'constants' has 81 bytes"));
  CHECK_THAT(refusal({{"graph", {bytes}}, {"signature", {"{}"}}}), Contains("'constants' is missing"));
  CHECK_THAT(refusal({{"signature", {"{}"}}, {"graph", {bytes}}, {"constants", {constants}}}), Contains("the sections are signature, graph, constants"));
  CHECK_THAT(refusal({{"graph", {bytes}}, {"signature", {"{}"}}, {"constants", {constants}}, {"more", {"x"}}}), Contains("the sections are graph, signature, constants, more"));
}

TEST_CASE("a file whose checksums are right is not believed for that") {
  const Path path;
  TestBackend backend{"backend"};
  TestSession session({&backend});
  const auto refusal_of = [&](const ir::Graph& graph, const std::string& constants) {
    const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
    const std::string bytes(buffer.begin(), buffer.end());
    const host::SectionToWrite sections[] = {{"graph", {bytes}}, {"signature", {"{}"}}, {"constants", {constants}}};
    host::write_container(path.text, sections);
    TenonCapturedGraph* captured = nullptr;
    const std::int32_t code = tenon_capture_file(session.get(), path.text.c_str(), "{}", &captured);
    tenon_captured_release(captured);
    return code == TENON_OK ? std::string() : std::string(tenon_last_error()->text);
  };
  const auto refusal = [&](const std::string& text, const std::string& constants = {}) { return refusal_of(ir::parse_graph(text).value(), constants); };
  CHECK(refusal("graph @g (%x: f32[2]) {\n  %y: f32[2] = relu(%x)\n  return %y\n}\n").empty());
  CHECK_THAT(refusal("graph @g (%x: f32[2]) {\n  %y: f32[4000] = relu(%x)\n  return %y\n}\n"), Contains("declared f32[4000]; it is f32[2]") && Contains(path.text));
  CHECK_THAT(refusal("graph @g (%x: f32[2]) {\n  %y: f32[2] = opaque(%x) {handle = 3, target = \"f\"}\n  return %y\n}\n"), Contains("only the process that recorded the call has"));
  CHECK_THAT(refusal("graph @g (%x: f32[2]) {\n  %y: f32[2] = vendor::f(%x)\n  return %y\n}\n"), Contains("the catalogue has no op vendor::f"));
  const std::string bools = "graph @g () {\n  const @c: bool[3]\n  %y: bool[3] = constant() {index = @c}\n  return %y\n}\n";
  CHECK(refusal(bools, std::string("\0\1\1", 3)).empty());
  CHECK_THAT(refusal(bools, std::string("\0\2\1", 3)), Contains("neither 0 nor 1"));

  // Sizes whose sum comes to 4 bytes where it is counted in 64 bits.
  const std::string far = "graph @g () {\n  const @a: u8[9223372036854775807]\n  const @b: u8[9223372036854775807]\n  const @c: u8[4]\n  %a: u8[9223372036854775807] = constant() {index = @a}\n  return %a\n}\n";
  CHECK_THAT(refusal(far, "1234"), Contains("the section 'constants' has 4 bytes"));
  ir::Graph symbolic;
  symbolic.add_constant({ir::Type::tensor(DType::f32, {ir::Dim::symbol(symbolic.add_symbol({.name = "n"}))}), nullptr, nullptr, "c"});
  CHECK_THAT(refusal_of(symbolic, "1234"), Contains(path.text + ": the section 'graph': graph @main is malformed:") && Contains("constant @c is no row-major tensor of constant size"));
}

TEST_CASE("a graph that is submitted is checked, and sizes that its ranges leave open with each call") {
  TestBackend backend{"backend"};
  TestSession session({&backend});
  CHECK_THROWS_WITH((TestProgram(session, ir::parse_graph("graph @g (%x: f32[2]) {\n  %y: f32[9] = relu(%x)\n  return %y\n}\n").value(), {})), Contains("declared f32[9]; it is f32[2]"));
  TestProgram program(session, parse("graph @g [s0] (%x: f32[s0]) {\n  %y: f32[] = select(%x) {dim = 0, index = 3}\n  return %y\n}\n"), {});
  CHECK(program.call(input({4})).size() == 1);
  CHECK_THROWS_WITH(program.call(input({3})), Contains("the graph does not hold for these sizes: s0 - 4 is -1"));
}
