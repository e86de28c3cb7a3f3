// Updates whose memory is that of their target: written in place where the artefact permits it and nothing can fail after it, else beside it.
#include "../test_backend.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Outcome {
  std::vector<float> data;   // of the target
  bool in_place = false;     // the backend was given the target's memory as output
};

/// Runs a graph whose last output is the update of its input, on a backend that permits the only output of its group over that input; it
/// may fail.
Outcome run(const char* text, bool fails = false, bool permits = true) {
  const ir::Graph graph = parse(text);
  const auto last = static_cast<std::uint32_t>(graph.outputs().size() - 1);
  const TenonAliasPermit permit{0, 0};
  TestBackend backend("backend"), other("other");
  Outcome outcome{{1, 2, 3}};
  backend.behaviour.compile = [&](const GraphView&, TenonArtefact& artefact) {
    artefact.aliases = &permit;
    artefact.alias_count = permits ? 1 : 0;
    return std::int32_t{TENON_OK};
  };
  backend.behaviour.execute = [&](const ir::Graph& group, const TenonExecuteArgs& args) {
    outcome.in_place = args.outputs[0] == args.inputs[0];
    return fails ? std::int32_t{TENON_PLUGIN_FAILED} : TestBackend::evaluate(group, args);
  };
  TestSession session({&backend, &other});
  TestProgram program(session, graph, {"backend"});
  std::vector<float> result(3);
  const void* inputs[] = {outcome.data.data()};
  void* outputs[] = {result.data(), result.data()};
  outputs[last] = outcome.data.data();
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs, args.outputs = outputs;
  require_ok(tenon_program_run(program.get(), &args));
  return outcome;
}

constexpr const char* kNegate = "graph @g (%x: f32[3]) {\n  %z: f32[3] = neg(%x)\n  return update %x = %z\n}\n";
const std::vector<float> kNegated{-1, -2, -3};

}  // namespace

TEST_CASE("an update is written over its target where the artefact permits it", "[updates]") {
  const Outcome found = run(kNegate);
  CHECK(found.in_place);
  CHECK(found.data == kNegated);
  const Outcome beside = run(kNegate, false, false);
  CHECK_FALSE(beside.in_place);
  CHECK(beside.data == kNegated);
}

TEST_CASE("who takes over a run that failed writes beside the target", "[updates]") { CHECK(run(kNegate, true).data == kNegated); }

TEST_CASE("a target that is returned too is copied before it changes", "[updates]") {
  const Outcome found = run("graph @g (%x: f32[3]) {\n  %z: f32[3] = neg(%x)\n  return %x, update %x = %z\n}\n");
  CHECK_FALSE(found.in_place);
  CHECK(found.data == kNegated);
}

TEST_CASE("no update is written in place in front of a step that may fail", "[updates]") {
  TestBackend first("first"), second("second");
  static constexpr TenonAliasPermit kPermit{0, 0};
  bool in_place = false;
  first.behaviour.claim = [](const GraphView& graph, const TenonClaims& claims) {
    const std::uint32_t node = 0;
    (void)graph;
    claims.claim(claims.self, &node, 1);
    return std::int32_t{TENON_OK};
  };
  first.behaviour.compile = [](const GraphView&, TenonArtefact& artefact) {
    artefact.aliases = &kPermit;
    artefact.alias_count = 1;
    return std::int32_t{TENON_OK};
  };
  first.behaviour.execute = [&](const ir::Graph& group, const TenonExecuteArgs& args) {
    in_place = in_place || args.outputs[0] == args.inputs[0];
    return TestBackend::evaluate(group, args);
  };
  second.behaviour.execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_INVALID_ARGUMENT}; };
  TestSession session({&first, &second});
  TestProgram program(session, parse("graph @g (%x: f32[3]) {\n  %z: f32[3] = neg(%x)\n  %w: f32[3] = tanh(%z)\n  return %w, update %x = %z\n}\n"), {"first"});
  std::vector<float> data{1, 2, 3}, result(3);
  const void* inputs[] = {data.data()};
  void* outputs[] = {result.data(), data.data()};
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs, args.outputs = outputs;
  CHECK(tenon_program_run(program.get(), &args) != TENON_OK);
  CHECK_FALSE(in_place);
  CHECK(data == std::vector<float>{1, 2, 3});
}
