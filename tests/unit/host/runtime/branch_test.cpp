// A control op that no backend claims: a branch step of the plan, each region divided among the backends by itself.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "../test_backend.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;
using nlohmann::json;

namespace {

/// Claims everything but control ops, whose meaning the evaluation of a test backend does not know.
std::int32_t all_but_control(const GraphView& graph, const TenonClaims& claims) {
  std::vector<std::uint32_t> nodes;
  for (const NodeView node : graph.nodes())
    if (node.op() != "cond") nodes.push_back(node.id());
  claims.claim(claims.self, nodes.data(), nodes.size());
  return TENON_OK;
}

Behaviour straight() {
  Behaviour behaviour;
  behaviour.claim = all_but_control;
  return behaviour;
}

const char* const kBranch = R"(graph @g [s0: 1..64] (%x: f32[s0, 2], %w: f32[2, s0]{1, 2}, %p: f32[]) {
  const @c: f32[2] = [10.0, 20.0]
  const @unused: f32[3] = [1.0, 2.0, 3.0]
  %d: f32[2] = constant() {index = @c}
  %flag: bool[] = gt(%p, 0.0)
  %y: f32[s0, 2] = mul(%x, %x)
  %r: f32[s0, 2], %q: f32[s0] = cond(%flag, %y, %d, %w, 3.0) graph @then (%a: f32[s0, 2], %b: f32[2], %t: f32[2, s0]{1, 2}, %k: f64[]) {
    %e: f32[2] = constant() {index = @c}
    %f: f32[s0, 2] = add(%a, %e)
    %g: f32[s0, 2] = mul(%f, %b)
    %s: f32[s0] = sum(%g) {dim = [1], dtype = f32, keepdim = false}
    return %g, %s
  } graph @else (%a: f32[s0, 2], %b: f32[2], %t: f32[2, s0]{1, 2}, %k: f64[]) {
    %s: f32[s0] = sum(%t) {dim = [0], dtype = f32, keepdim = false}
    return %a, %s
  }
  %z: f32[s0, 2] = neg(%r)
  return %z, %q
}
)";

struct Fixture {
  Fixture() : program(session, parse(kBranch), {}) {}

  std::vector<ops::HostTensor> call(std::int64_t size, float p) {
    std::vector<ops::HostTensor> inputs;
    inputs.push_back(filled(DType::f32, {size, 2}, 1));
    inputs.push_back(filled(DType::f32, {2, size}, 2));
    inputs.push_back(filled(DType::f32, {}, 3));
    inputs[2].as<float>()[0] = p;
    x = inputs[0].as<float>()[1], w = inputs[1].as<float>()[0] + inputs[1].as<float>()[static_cast<std::size_t>(size)];
    return program.call(inputs);
  }

  TestBackend backend{"backend", straight()};
  TestSession session{{&backend}};
  TestProgram program;
  float x = 0, w = 0;
};

}  // namespace

TEST_CASE("a branch runs the region that its condition names") {
  Fixture f;
  for (const std::int64_t size : {1, 5, 5, 64}) {
    auto taken = f.call(size, 1.0f);
    CHECK(taken[0].as<float>()[1] == -((f.x * f.x + 20.0f) * 20.0f));
    CHECK(taken[1].shape == std::vector<std::int64_t>{size});
    auto other = f.call(size, -1.0f);
    CHECK(other[0].as<float>()[1] == -(f.x * f.x));
    CHECK(other[1].as<float>()[0] == f.w);
  }
}

TEST_CASE("a plan says what is in its branches") {
  Fixture f;
  const json plan = json::parse(f.program.query("plan"));
  std::vector<std::string> kinds;
  for (const json& step : plan["steps"]) kinds.push_back(step["kind"]);
  REQUIRE(std::count(kinds.begin(), kinds.end(), "branch") == 1);
  const json& branches = plan["steps"][std::find(kinds.begin(), kinds.end(), "branch") - kinds.begin()]["branches"];
  REQUIRE(branches.size() == 2);
  CHECK(branches[0][0]["backend"] == "backend");
  CHECK(branches[0][0]["ops"] == json({{"add", 1}, {"mul", 1}, {"sum", 1}}));
  CHECK(f.session.events("fallback").empty());
}

TEST_CASE("a branch in a branch") {
  TestBackend backend{"backend", straight()};
  TestSession session({&backend});
  const char* const text = R"(graph @g (%x: f32[2], %p: bool[], %q: bool[]) {
  %r: f32[2] = cond(%p, %x, %q) graph @a (%x: f32[2], %q: bool[]) {
    %s: f32[2] = cond(%q, %x) graph @c (%x: f32[2]) {
      %y: f32[2] = add(%x, 1.0)
      return %y
    } graph @d (%x: f32[2]) {
      %y: f32[2] = add(%x, 2.0)
      return %y
    }
    return %s
  } graph @b (%x: f32[2], %q: bool[]) {
    return %x
  }
  return %r
}
)";
  TestProgram program(session, parse(text), {});
  for (const bool p : {true, false})
    for (const bool q : {true, false}) {
      std::vector<ops::HostTensor> inputs;
      inputs.push_back(filled(DType::f32, {2}, 1));
      inputs.push_back(filled(DType::b8, {}, 1));
      inputs.push_back(filled(DType::b8, {}, 1));
      *static_cast<bool*>(inputs[1].data()) = p;
      *static_cast<bool*>(inputs[2].data()) = q;
      CHECK(program.call(inputs)[0].as<float>()[0] == inputs[0].as<float>()[0] + (p ? q ? 1.0f : 2.0f : 0.0f));
    }
}

TEST_CASE("a backend that fails in a branch is replaced by the next one") {
  Behaviour failing = straight();
  failing.execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_INTERNAL}; };
  TestBackend first("first", failing), second("second", straight());
  TestSession session({&first, &second});
  TestProgram program(session, parse("graph @g (%x: f32[2], %p: bool[]) {\n  %r: f32[2] = cond(%p, %x) graph @a (%x: f32[2]) {\n    %y: f32[2] = add(%x, 1.0)\n"
                                     "    return %y\n  } graph @b (%x: f32[2]) {\n    return %x\n  }\n  return %r\n}\n"),
                      {"first", "second"});
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {2}, 1));
  inputs.push_back(filled(DType::b8, {}, 1));
  *static_cast<bool*>(inputs[1].data()) = true;
  for (int i = 0; i < 2; ++i) CHECK(program.call(inputs)[0].as<float>()[0] == inputs[0].as<float>()[0] + 1.0f);
  CHECK(first.executes == 1);
}
