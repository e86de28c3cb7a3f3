// Pipelines: order, grouping, dumps, counts, and passes that fail or answer nonsense.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../test_backend.h"
#include "catch.h"
#include "core/ir/buffer.h"

using namespace tenon;
using namespace tenon::test;
using nlohmann::json;

namespace {

/// What the passes of the test plugin were asked, crossing by crossing.
std::vector<std::vector<std::string>> crossings;

void give(const ir::Graph& graph, const TenonPassResult& result) {
  const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
  std::vector<std::uint32_t> constants;
  for (std::uint32_t i = 0; i < graph.constants().size(); ++i) constants.push_back(i);
  result.graph(result.self, {buffer.data(), buffer.size()}, constants.data(), constants.size(), nullptr, 0);
}

/// `double` replaces neg by a second neg around it; the others misbehave as their names say.
std::int32_t run_pass(const TenonHost* host, const std::string& name, ir::Graph& graph, const TenonPassResult& result) {
  if (name == "nothing") return TENON_OK;
  if (name == "fails") {
    host->report(host->self, TENON_INTERNAL, TENON_NO_NODE, "I cannot");
    return TENON_INTERNAL;
  }
  if (name == "damages") {
    const std::uint8_t bytes[] = {1, 2, 3};
    result.graph(result.self, {bytes, 3}, nullptr, 0, nullptr, 0);
    return TENON_OK;
  }
  if (name == "adds_output") graph.add_output(graph.outputs()[0]);
  if (name == "lies") graph.mutable_node(graph.nodes().back()).op = "sum";  // of which the result has no dimensions
  if (name == "double") {
    const ir::Output output = graph.outputs()[0];
    const NodeId once = graph.add_node("neg", {output.value}, {}, {graph.type(output.value)});
    const NodeId twice = graph.add_node("neg", {graph.node(once).results[0]}, {}, {graph.type(output.value)});
    std::vector<ir::Output> outputs(graph.outputs().begin(), graph.outputs().end());
    outputs[0].value = graph.node(twice).results[0];
    graph.set_outputs(std::move(outputs));
  }
  return TENON_OK;
}

std::int32_t run_passes(const TenonHost* host, const char* const* names, std::size_t count, const TenonGraph* given, const char*, const TenonPassResult* result) {
  crossings.emplace_back(names, names + count);
  ir::Graph graph = ir::read_buffer(given->buffer, {given->constants, given->constant_count}).value();
  bool changed = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = names[i];
    if (const std::int32_t code = run_pass(host, name, graph, *result); code != TENON_OK) return code;
    if (name == "damages") return TENON_OK;
    changed = changed || name != "nothing";
  }
  if (changed) give(graph, *result);
  return TENON_OK;
}

const char* const kNames[] = {"nothing", "double", "fails", "damages", "adds_output", "lies"};
const char* const kDocs[] = {"", "", "", "", "", ""};
const TenonPassTable kTable{sizeof(TenonPassTable), kNames, kDocs, 6, run_passes};
const TenonPlugin kPlugin{sizeof(TenonPlugin), TENON_PLUGIN_MAGIC, TENON_ABI_NEWEST, TENON_KIND_PASSES, "test_passes", "1", "test", "", "passes of the tests", nullptr, &kTable, nullptr};

struct Run {
  std::vector<std::string> events;
  json passes;
  float result = 0;
};

Run run(const std::vector<std::string>& pipeline, std::vector<std::string> overrides = {"passes.verify=false"}) {
  crossings.clear();
  TestBackend backend("backend");
  TestSession session({&backend}, std::move(overrides));
  require_ok(tenon_session_register(session.get(), &kPlugin));
  const std::vector<std::uint8_t> buffer = ir::write_buffer(parse("graph @g (%x: f32[1]) {\n  %y: f32[1] = tanh(%x)\n  return %y\n}\n"));
  std::vector<const char*> names;
  for (const std::string& name : pipeline) names.push_back(name.c_str());
  TenonCompileRequest request{};
  request.struct_size = sizeof request;
  request.graph = {sizeof(TenonGraph), {buffer.data(), buffer.size()}, nullptr, 0};
  request.pipeline = names.data();
  request.pipeline_count = names.size();
  TenonProgram* program = nullptr;
  require_ok(tenon_compile(session.get(), &request, &program));
  char* text = nullptr;
  require_ok(tenon_program_query(program, "passes", &text));
  Run done{session.events("pass_failed"), json::parse(text), 0};
  tenon_free(text);
  float x = 0.5f;
  const void* inputs[] = {&x};
  alignas(64) float y = 0;
  void* outputs[] = {&y};
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs;
  args.outputs = outputs;
  require_ok(tenon_program_run(program, &args));
  done.result = y;
  tenon_program_release(program);
  return done;
}

const float kExpected = std::tanh(0.5f);

}  // namespace

TEST_CASE("adjacent passes of one plugin cross together, and changes are counted", "[passes]") {
  const Run done = run({"nothing", "double", "double"});
  REQUIRE(crossings.size() == 1);
  CHECK(crossings[0] == std::vector<std::string>{"nothing", "double", "double"});
  REQUIRE(done.passes.size() == 1);
  CHECK(done.passes[0]["changes"] == 4);
  CHECK(std::abs(done.result - kExpected) < 1e-6f);
}

TEST_CASE("while somebody watches, passes cross one at a time", "[passes]") {
  const Run done = run({"nothing", "double"}, {"passes.verify=true"});
  CHECK(crossings.size() == 2);
  CHECK(done.passes[0]["changes"] == 0);
  CHECK(done.passes[1]["changes"] == 2);
}

TEST_CASE("passes are disabled by pattern", "[passes]") {
  run({"nothing", "double"}, {"passes.disable=dou*"});
  REQUIRE(crossings.size() == 1);
  CHECK(crossings[0] == std::vector<std::string>{"nothing"});
}

TEST_CASE("a pass that fails is named and left out, its neighbours are not", "[passes]") {
  for (const std::string bad : {"fails", "damages", "adds_output", "lies"}) {
    const Run done = run({"double", bad, "double"});
    REQUIRE(done.events.size() == 1);
    const json event = json::parse(done.events[0]);
    CHECK(event["passes"] == json({bad}));
    CHECK(event["plugin"] == "test_passes");
    CHECK(std::abs(done.result - kExpected) < 1e-6f);
    std::size_t changes = 0;
    for (const json& record : done.passes) changes += record["changes"].get<std::size_t>();
    CHECK(changes == 4);
  }
}

TEST_CASE("a pass that nobody offers is an error", "[passes]") { CHECK_THROWS_WITH(run({"dubble"}), Catch::Contains("double")); }

TEST_CASE("graphs are dumped before and after the passes that match", "[passes]") {
  const auto folder = std::filesystem::temp_directory_path() / ("tenon_dump_" + std::to_string(::getpid()));
  run({"nothing", "double"}, {"passes.dump_before=dou*", "passes.dump_after=double", "passes.dump_directory=" + folder.string()});
  std::vector<std::string> texts;
  for (const char* name : {"g_01_double_before.tir", "g_01_double_after.tir"}) {
    std::ifstream stream(folder / name);
    REQUIRE(stream);
    texts.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  CHECK(parse(texts[0]).nodes().size() == 1);
  CHECK(parse(texts[1]).nodes().size() == 3);
  std::filesystem::remove_all(folder);
}
