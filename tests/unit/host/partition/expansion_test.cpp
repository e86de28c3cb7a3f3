#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "../test_backend.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// Claims, one by one, the nodes whose op is wanted, and refuses the others.
auto claiming(bool (*wanted)(std::string_view op)) {
  return [wanted](const GraphView& graph, const TenonClaims& claims) {
    for (NodeView node : graph.nodes()) {
      const std::uint32_t id = node.id();
      if (wanted(node.op())) claims.claim(claims.self, &id, 1);
      else claims.refuse(claims.self, id, "op", "composite");
    }
    return std::int32_t{TENON_OK};
  };
}

std::vector<ops::HostTensor> three_numbers() {
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {3}, 1));
  return inputs;
}

}  // namespace

TEST_CASE("a composite that everybody refuses is expanded to what somebody takes", "[partition]") {
  TestBackend narrow("narrow", {.claim = claiming([](std::string_view op) { return op != "silu" && op != "softmax"; })}), fallback("fallback");
  TestSession session({&narrow, &fallback});
  const ir::Graph graph = parse("graph @g (%x: f32[3]) {\n  %y: f32[3] = silu(%x)\n  return %y\n}\n");
  TestProgram program(session, graph, {"narrow"});
  const auto inputs = three_numbers(), got = program.call(inputs), want = ops::evaluate(graph, std::vector{inputs[0].view()});
  for (int i = 0; i < 3; ++i) CHECK(std::abs(got[0].as<float>()[i] - want[0].as<float>()[i]) < 1e-6f);
  CHECK(fallback.executes == 0);
  CHECK(narrow.executes > 1);
}

TEST_CASE("expansion ends where an op has a body of its own for numbers alone", "[partition]") {
  TestBackend narrow("narrow", {.claim = claiming([](std::string_view op) { return op == "add"; })}), fallback("fallback");
  TestSession session({&narrow, &fallback});
  const ir::Graph graph = parse("graph @g (%x: f32[3]) {\n  %a: f32[3] = add(%x, 1.5)\n  %b: f32[3] = neg(%a)\n  %c: f64[] = neg(1.5)\n  %d: f64[] = relu(-2.5)\n  return %b, %c, %d\n}\n");
  TestProgram program(session, graph, {"narrow"});
  const auto got = program.call(three_numbers());
  CHECK(narrow.executes == 1);
  CHECK(got[0].as<float>()[0] == -(three_numbers()[0].as<float>()[0] + 1.5f));
  CHECK(got[1].as<double>()[0] == -1.5);
  CHECK(got[2].as<double>()[0] == 0.0);
}

TEST_CASE("a composite is left whole when its parts help nobody", "[partition]") {
  TestBackend idle("idle", {.claim = [](const GraphView&, const TenonClaims&) { return std::int32_t{TENON_OK}; }}), fallback("fallback");
  TestSession session({&idle, &fallback});
  const ir::Graph graph = parse("graph @g (%x: f32[3]) {\n  %y: f32[3] = silu(%x)\n  return %y\n}\n");
  TestProgram program(session, graph, {"idle"});
  const auto plan = nlohmann::json::parse(program.query("plan"));
  CHECK(plan["steps"][0]["ops"] == nlohmann::json({{"silu", 1}}));
  REQUIRE(session.events("fallback").size() == 1);
  CHECK(nlohmann::json::parse(session.events("fallback")[0])["op"] == "silu");
}
