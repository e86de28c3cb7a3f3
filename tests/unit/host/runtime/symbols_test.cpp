// Symbolic sizes through the contract: one compile for all sizes, backends of static shapes, sizes that depend on data.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "../test_backend.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;

namespace {

const char* const kSymbolic = R"(graph @symbolic [s0: 1..64, s1: 1..64] (%x: f32[s0, s1], %w: f32[s1]) {
  %a: f32[s0, s1] = mul(%x, %w)
  %b: f32[s0, s1] = tanh(%a)
  %c: f32[s0] = amax(%b) {dim = [1], keepdim = false}
  %d: f32[s1] = amax(%a) {dim = [0], keepdim = false}
  %e: f32[s0, s1] = add(%b, %d)
  return %e, %c
}
)";

std::vector<ops::HostTensor> inputs_of(std::int64_t s0, std::int64_t s1) {
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {s0, s1}, 3));
  inputs.push_back(filled(DType::f32, {s1}, 5));
  return inputs;
}

void check_sizes(const TestProgram& program, const ir::Graph& graph, std::int64_t s0, std::int64_t s1) {
  const std::vector<ops::HostTensor> inputs = inputs_of(s0, s1);
  std::vector<ops::TensorView> views;
  for (const ops::HostTensor& input : inputs) views.push_back(input.view());
  const std::vector<ops::HostTensor> want = ops::evaluate(graph, views), got = program.call(inputs);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].shape == want[i].shape);
    REQUIRE(std::memcmp(got[i].data(), want[i].data(), want[i].byte_count()) == 0);
  }
}

const char* const kLate = R"(graph @late [s0: 1..64, u0: 0..64] (%x: f32[s0]) {
  %y: f32[s0] = tanh(%x)
  %i: i64[u0, 1] = nonzero(%y)
  %j: i64[u0, 1] = add(%i, %i)
  %k: i64[u0, 1] = mul(%j, %i)
  %z: f32[s0] = neg(%y)
  return %k, %z, %j
}
)";

/// Runs kLate for a size and compares with what nonzero should have found.
void check_late(const TestProgram& program, std::int64_t size) {
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {size}, static_cast<unsigned>(size)));
  for (std::int64_t i = 0; i < size; i += 3) inputs[0].as<float>()[i] = 0;
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < size; ++i)
    if (inputs[0].as<float>()[i] != 0) expected.push_back(2 * i * i);
  const std::vector<ops::HostTensor> got = program.call(inputs);
  REQUIRE(got[0].shape == std::vector<std::int64_t>{static_cast<std::int64_t>(expected.size()), 1});
  CHECK(std::equal(expected.begin(), expected.end(), got[0].as<std::int64_t>()));
  CHECK(got[1].shape == std::vector<std::int64_t>{size});
  CHECK(got[2].shape == got[0].shape);
}

std::int32_t claim_every_second(const GraphView& graph, const TenonClaims& claims) {
  for (NodeView node : graph.nodes()) {
    const std::uint32_t id = node.id();
    if (id % 2 == 0) claims.claim(claims.self, &id, 1);
  }
  return TENON_OK;
}

}  // namespace

TEST_CASE("twenty sizes, one compile each backend", "[symbols]") {
  TestBackend second("second", {.claim = claim_every_second}), fallback("fallback");
  TestSession session({&second, &fallback});
  const ir::Graph graph = parse(kSymbolic);
  TestProgram program(session, graph, {"second"});
  const int compiled = second.compiles + fallback.compiles;
  for (std::int64_t i = 1; i <= 20; ++i) check_sizes(program, graph, i, 3 * i % 17 + 1);
  CHECK(second.compiles + fallback.compiles == compiled);
  CHECK(second.executes > 0);
  CHECK(fallback.executes > 0);
}

TEST_CASE("a backend of static shapes is asked again for each size, and artefacts are bounded", "[symbols]") {
  TestBackend rigid("rigid"), fallback("fallback");
  rigid.behaviour.flags = 0;
  TestBackend plain("plain", {.flags = TENON_COMPILE_REENTRANT, .compile = [](const GraphView& graph, TenonArtefact&) -> std::int32_t {
    for (NodeView node : graph.nodes())
      if (!node.type().is_static()) return TENON_UNSUPPORTED;
    return TENON_OK;
  }});
  TestSession session({&plain, &fallback}, {"compile.artefact_limit=3"});
  const ir::Graph graph = parse(kSymbolic);
  TestProgram program(session, graph, {"plain"});
  CHECK(plain.compiles == 0);
  check_sizes(program, graph, 2, 3);
  check_sizes(program, graph, 2, 3);
  CHECK(plain.compiles == 1);
  CHECK(session.events("compile_by_size").size() == 1);
  for (std::int64_t i = 1; i <= 20; ++i) check_sizes(program, graph, i, i + 1);
  CHECK(plain.compiles == 20);
  CHECK(plain.compiles - plain.released == 3);
  CHECK(fallback.compiles == 0);
}

TEST_CASE("a backend of static shapes that refuses some sizes leaves them to the next", "[symbols]") {
  TestBackend plain("plain", {.flags = 0, .compile = [](const GraphView& graph, TenonArtefact&) -> std::int32_t {
    return graph.inputs()[0].type().dim(0).constant() % 2 ? TENON_UNSUPPORTED : TENON_OK;
  }});
  TestBackend fallback("fallback");
  TestSession session({&plain, &fallback});
  const ir::Graph graph = parse(kSymbolic);
  TestProgram program(session, graph, {"plain"});
  for (std::int64_t i = 1; i <= 6; ++i) check_sizes(program, graph, i, 4);
  CHECK(plain.executes == 3);
  CHECK(fallback.executes == 3);
}

TEST_CASE("an assumption that does not hold compiles for the sizes of the call", "[symbols]") {
  static const TenonAssumption assumption{0, 0, 1000, 4};
  TestBackend fours("fours", {.compile = [](const GraphView& graph, TenonArtefact& artefact) -> std::int32_t {
    if (graph.inputs()[0].type().is_static()) return TENON_OK;
    artefact.assumptions = &assumption;
    artefact.assumption_count = 1;
    return TENON_OK;
  }});
  TestBackend fallback("fallback");
  TestSession session({&fours, &fallback});
  const ir::Graph graph = parse(kSymbolic);
  TestProgram program(session, graph, {"fours"});
  check_sizes(program, graph, 4, 5);
  check_sizes(program, graph, 8, 5);
  CHECK(session.events("compile_by_size").empty());
  check_sizes(program, graph, 6, 5);
  check_sizes(program, graph, 8, 5);
  check_sizes(program, graph, 6, 5);
  CHECK(session.events("compile_by_size").size() == 1);
  CHECK(fours.compiles == 2);
}

TEST_CASE("a size that depends on data is bound while running, and later steps wait", "[symbols]") {
  TestBackend second("second", {.claim = claim_every_second}), fallback("fallback");
  TestSession session({&second, &fallback});
  TestProgram program(session, parse(kLate), {"second"});
  const int compiled = second.compiles + fallback.compiles;
  for (std::int64_t size : {1, 7, 30, 7}) check_late(program, size);
  CHECK(second.compiles + fallback.compiles == compiled);
  CHECK(second.executes > 0);
  CHECK(fallback.executes > 0);
}

TEST_CASE("a backend that fails after it asked for memory leaves its nodes to the next", "[symbols]") {
  TestBackend failing("failing", {.execute = [](const ir::Graph& graph, const TenonExecuteArgs& args) {
    TestBackend::evaluate(graph, args);
    return std::int32_t{TENON_PLUGIN_FAILED};
  }});
  TestBackend fallback("fallback");
  TestSession session({&failing, &fallback});
  TestProgram program(session, parse(kLate), {"failing"});
  for (std::int64_t size : {9, 2, 9}) check_late(program, size);
  CHECK(session.events("execute_failed").size() == 2);  // before the size is known, and after
  CHECK(failing.executes == 2);
}

TEST_CASE("sizes that contradict what is known are a failure of the backend", "[symbols]") {
  TestBackend wrong("wrong", {.execute = [](const ir::Graph& graph, const TenonExecuteArgs& args) {
    if (args.outputs[0]) return TestBackend::evaluate(graph, args);
    const std::int64_t sizes[] = {4, 3};
    args.call->allocate_output(args.call->self, 0, sizes, 2);
    return std::int32_t{TENON_OK};
  }});
  wrong.behaviour.claim = [](const GraphView& graph, const TenonClaims& claims) {
    for (NodeView node : graph.nodes()) {
      const std::uint32_t id = node.id();
      if (node.op() == "nonzero") claims.claim(claims.self, &id, 1);
    }
    return std::int32_t{TENON_OK};
  };
  TestBackend fallback("fallback");
  TestSession session({&wrong, &fallback});
  TestProgram program(session, parse(kLate), {"wrong"});
  check_late(program, 8);
  REQUIRE(session.events("execute_failed").size() == 1);
  CHECK_THAT(session.events("execute_failed")[0], Catch::Contains("dimension 1 of %i the size 3 instead of 1"));
}
