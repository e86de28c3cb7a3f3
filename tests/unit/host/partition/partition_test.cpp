#include <atomic>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "../test_backend.h"
#include "catch.h"
#include "core/ir/buffer.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// A random graph of f32[4, 5] arithmetic with reductions and a constant.
ir::Graph random_graph(std::mt19937& random, int nodes) {
  std::string text = "graph @random (%a: f32[4, 5], %b: f32[4, 5]) {\n  const @k: f32[5] = [1, 2, -1, 0.5, 3]\n  %v0: f32[5] = constant() {index = @k}\n";
  std::vector<std::string> wide = {"a", "b"};
  std::vector<std::string> narrow = {"v0"};
  const auto pick = [&](const std::vector<std::string>& from) { return "%" + from[random() % from.size()]; };
  for (int i = 1; i <= nodes; ++i) {
    const std::string name = "v" + std::to_string(i);
    switch (random() % 6) {
      case 0:
      case 1: text += "  %" + name + ": f32[4, 5] = add(" + pick(wide) + ", " + pick(wide) + ")\n"; break;
      case 2: text += "  %" + name + ": f32[4, 5] = maximum(" + pick(wide) + ", " + pick(wide) + ")\n"; break;
      case 3: text += "  %" + name + ": f32[4, 5] = mul(" + pick(wide) + ", " + pick(narrow) + ")\n"; break;
      case 4: text += "  %" + name + ": f32[4, 5] = tanh(" + pick(wide) + ")\n"; break;
      default: text += "  %" + name + ": f32[5] = amax(" + pick(wide) + ") {dim = [0], keepdim = false}\n"; narrow.push_back(name); continue;
    }
    wide.push_back(name);
  }
  return parse(text + "  return " + pick(wide) + ", " + pick(narrow) + ", %" + wide.back() + "\n}\n");
}

/// Claims a random part of the nodes in random groups: overlapping, not convex, in any order.
std::function<std::int32_t(const GraphView&, const TenonClaims&)> random_claims(unsigned seed) {
  return [random = std::mt19937(seed)](const GraphView& graph, const TenonClaims& claims) mutable {
    for (int group = 0; group < 3; ++group) {
      std::vector<std::uint32_t> nodes;
      for (NodeView node : graph.nodes())
        if (random() % 3 == 0) nodes.push_back(node.id());
      std::shuffle(nodes.begin(), nodes.end(), random);
      claims.claim(claims.self, nodes.data(), nodes.size());
    }
    return std::int32_t{TENON_OK};
  };
}

std::vector<ops::HostTensor> reference(const ir::Graph& graph, const std::vector<ops::HostTensor>& inputs) {
  std::vector<ops::TensorView> views;
  for (const ops::HostTensor& input : inputs) views.push_back(input.view());
  return ops::evaluate(graph, views);
}

void check_equal(const std::vector<ops::HostTensor>& got, const std::vector<ops::HostTensor>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].shape == want[i].shape);
    REQUIRE(std::memcmp(got[i].data(), want[i].data(), want[i].byte_count()) == 0);
  }
}

const char* const kChain = R"(graph @chain (%x: f32[3]) {
  %a: f32[3] = neg(%x)
  %b: f32[3] = tanh(%a)
  %c: f32[3] = add(%a, %b)
  return %c
}
)";

std::vector<ops::HostTensor> chain_inputs() {
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {3}, 1));
  return inputs;
}

/// Runs the chain on `bad` before the fallback and gives the texts of the events of a kind.
std::vector<std::string> run_chain(Behaviour behaviour, const std::string& kind) {
  TestBackend bad("bad", std::move(behaviour)), good("good");
  TestSession session({&bad, &good});
  const ir::Graph graph = parse(kChain);
  TestProgram program(session, graph, {"bad"});
  check_equal(program.call(chain_inputs()), reference(graph, chain_inputs()));
  check_equal(program.call(chain_inputs()), reference(graph, chain_inputs()));
  return session.events(kind);
}

/// The backends of a program's steps, each with the one that it replaces.
std::vector<std::string> backends_of(const TestProgram& program) {
  std::vector<std::string> backends;
  const auto plan = nlohmann::json::parse(program.query("plan"));
  for (const auto& step : plan["steps"])
    if (step["kind"] == "group") backends.push_back(step["backend"].get<std::string>() + (step.contains("instead_of") ? " instead of " + step["instead_of"].get<std::string>() : ""));
  return backends;
}

void check_named(const std::vector<std::string>& events, const std::string& words) {
  REQUIRE(!events.empty());
  const auto event = nlohmann::json::parse(events.front());
  CHECK(event["backend"] == "bad");
  CHECK_THAT(event["text"].get<std::string>(), Catch::Contains(words));
}

}  // namespace

TEST_CASE("random claims of three backends give what the reference gives", "[partition]") {
  const unsigned seed = 4711;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    TestBackend a("a", {.claim = random_claims(random())}), b("b", {.claim = random_claims(random())}), c("c", {.claim = random_claims(random())});
    b.behaviour.flags &= ~TENON_STRIDED_INPUTS;
    TestBackend fallback("fallback");
    TestSession session({&a, &b, &c, &fallback});
    const ir::Graph graph = random_graph(random, 2 + static_cast<int>(random() % 40));
    std::vector<ops::HostTensor> inputs;
    inputs.push_back(filled(DType::f32, {4, 5}, random()));
    inputs.push_back(filled(DType::f32, {4, 5}, random()));
    TestProgram program(session, graph, {"a", "b", "c"});
    check_equal(program.call(inputs), reference(graph, inputs));
  }
}

TEST_CASE("nodes go to the first backend that claims them", "[partition]") {
  const auto only = [](std::string op) {
    return [op](const GraphView& graph, const TenonClaims& claims) {
      for (NodeView node : graph.nodes()) {
        const std::uint32_t id = node.id();
        if (node.op() == op) claims.claim(claims.self, &id, 1);
      }
      return std::int32_t{TENON_OK};
    };
  };
  TestBackend first("first", {.claim = only("tanh")}), second("second"), fallback("fallback");
  TestSession session({&first, &second, &fallback});
  const ir::Graph graph = parse(kChain);
  TestProgram program(session, graph, {"first", "second"});
  check_equal(program.call(chain_inputs()), reference(graph, chain_inputs()));
  CHECK(first.executes == 1);
  CHECK(second.executes == 2);  // before and after tanh
  CHECK(fallback.claims == 0);
  const auto plan = nlohmann::json::parse(program.query("plan"));
  CHECK(plan["steps"].size() == 3);
  CHECK(plan["steps"][1]["backend"] == "first");
}

TEST_CASE("a claim of an unknown node is named and dropped", "[partition]") {
  check_named(run_chain({.claim = [](const GraphView&, const TenonClaims& claims) {
                const std::uint32_t nodes[] = {0, 99};
                claims.claim(claims.self, nodes, 2);
                return std::int32_t{TENON_OK};
              }}, "claim_invalid"), "node 99, which the graph does not have");
}

TEST_CASE("a node claimed twice is named and kept once", "[partition]") {
  check_named(run_chain({.claim = [](const GraphView&, const TenonClaims& claims) {
                const std::uint32_t nodes[] = {1, 1};
                claims.claim(claims.self, nodes, 2);
                return std::int32_t{TENON_OK};
              }}, "claim_invalid"), "twice in one group");
  check_named(run_chain({.claim = [](const GraphView&, const TenonClaims& claims) {
                const std::uint32_t nodes[] = {0, 1};
                claims.claim(claims.self, nodes, 2);
                claims.claim(claims.self, nodes + 1, 1);
                return std::int32_t{TENON_OK};
              }}, "claim_invalid"), "in two groups");
}

TEST_CASE("a group that is not convex is named and split", "[partition]") {
  check_named(run_chain({.claim = [](const GraphView&, const TenonClaims& claims) {
                const std::uint32_t nodes[] = {0, 2};
                claims.claim(claims.self, nodes, 2);
                return std::int32_t{TENON_OK};
              }}, "claim_split"), "it was split");
}

TEST_CASE("a claim that fails claims nothing", "[partition]") {
  check_named(run_chain({.claim = [](const GraphView&, const TenonClaims& claims) {
                const std::uint32_t node = 0;
                claims.claim(claims.self, &node, 1);
                return std::int32_t{TENON_PLUGIN_FAILED};
              }}, "claim_failed"), "failed to claim");
}

TEST_CASE("a backend that claims and then cannot compile is named", "[partition]") {
  check_named(run_chain({.compile = [](const GraphView&, TenonArtefact&) { return std::int32_t{TENON_UNSUPPORTED}; }}, "compile_split"), "cannot compile 3 nodes");
}

TEST_CASE("one node that cannot be compiled costs only itself", "[partition]") {
  TestBackend bad("bad", {.compile = [](const GraphView& graph, TenonArtefact&) {
    const bool fails = std::ranges::any_of(graph.nodes(), [](NodeView node) { return node.op() == "tanh"; });
    return std::int32_t{fails ? TENON_UNSUPPORTED : TENON_OK};
  }});
  TestBackend good("good");
  TestSession session({&bad, &good});
  const ir::Graph graph = parse(kChain);
  TestProgram program(session, graph, {"bad"});
  check_equal(program.call(chain_inputs()), reference(graph, chain_inputs()));
  CHECK(bad.executes == 2);
  CHECK(good.executes == 1);
  check_named(session.events("compile_split"), "cannot compile 3 nodes");
  REQUIRE(session.events("compile_failed").size() == 1);
  check_named(session.events("compile_failed"), "cannot compile 1 node (tanh)");
  CHECK(backends_of(program) == std::vector<std::string>{"bad", "good instead of bad", "bad"});
}

TEST_CASE("the plan names who runs a group, not who failed to", "[partition]") {
  Behaviour fails_to_compile{.compile = [](const GraphView&, TenonArtefact&) { return std::int32_t{TENON_UNSUPPORTED}; }};
  Behaviour fails_to_run{.execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_PLUGIN_FAILED}; }};
  for (const Behaviour& behaviour : {fails_to_compile, fails_to_run}) {
    TestBackend first("first", behaviour), second("second", behaviour), third("third");
    TestSession session({&first, &second, &third});
    TestProgram program(session, parse(kChain), {"first", "second"});
    program.call(chain_inputs());
    CHECK(backends_of(program) == std::vector<std::string>{"third instead of second"});
  }
}

TEST_CASE("the plan names who runs a group for the sizes of the last call", "[partition]") {
  Behaviour behaviour{.claim = [](const GraphView& graph, const TenonClaims& claims) {
                      const std::uint32_t node = 0;
                      if (graph.nodes()[0].type().is_static() && graph.nodes()[0].type().element_count() != 4) claims.claim(claims.self, &node, 1);
                      return std::int32_t{TENON_OK};
                    }};
  behaviour.flags &= ~TENON_DYNAMIC_SHAPES;
  TestBackend picky("picky", behaviour), fallback("fallback");
  TestSession session({&picky, &fallback});
  TestProgram program(session, parse("graph @g [n: 1..64] (%x: f32[n]) {\n  %y: f32[n] = neg(%x)\n  return %y\n}\n"), {"picky"});
  for (const std::int64_t size : {3, 4}) {
    std::vector<ops::HostTensor> inputs;
    inputs.push_back(filled(DType::f32, {size}, 1));
    program.call(inputs);
    CHECK(backends_of(program) == std::vector<std::string>{size == 4 ? "fallback" : "picky"});
  }
}

TEST_CASE("a backend that compiles nothing is not asked without end", "[partition]") {
  TestBackend bad("bad", {.compile = [](const GraphView&, TenonArtefact&) { return std::int32_t{TENON_UNSUPPORTED}; }}), good("good");
  TestSession session({&bad, &good});
  std::mt19937 random(11);
  const ir::Graph graph = random_graph(random, 200);
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {4, 5}, 1));
  inputs.push_back(filled(DType::f32, {4, 5}, 2));
  TestProgram program(session, graph, {"bad"});
  check_equal(program.call(inputs), reference(graph, inputs));
  CHECK(bad.compiles < 100);
  CHECK(bad.executes == 0);
}

TEST_CASE("a compile that is given up asks no other backend", "[partition]") {
  std::atomic<bool> given_up{false};
  TestBackend first("first", {.compile = [&](const GraphView&, TenonArtefact&) {
                      given_up = true;
                      return std::int32_t{TENON_CANCELLED};
                    }});
  TestBackend second("second");
  TestSession session({&first, &second});
  const std::vector<std::uint8_t> buffer = ir::write_buffer(parse(kChain));
  TenonCompileRequest request{};
  request.struct_size = sizeof request;
  request.graph = {sizeof(TenonGraph), {buffer.data(), buffer.size()}, nullptr, 0};
  const char* backends[] = {"first", "second"};
  request.backends = backends;
  request.backend_count = 2;
  request.cancelled = [](void* context) -> std::int32_t { return *static_cast<std::atomic<bool>*>(context); };
  request.cancel_context = &given_up;
  TenonProgram* program = nullptr;
  CHECK(tenon_compile(session.get(), &request, &program) == TENON_CANCELLED);
  CHECK(program == nullptr);
  CHECK(first.compiles == 1);
  CHECK(second.compiles == 0);
  CHECK(session.events("compile_failed").empty());
}

TEST_CASE("an artefact that makes no sense is a failure to compile", "[partition]") {
  static const TenonAssumption assumption{7, 0, 10, 1};
  check_named(run_chain({.compile = [](const GraphView&, TenonArtefact& artefact) {
                artefact.assumptions = &assumption;
                artefact.assumption_count = 1;
                return std::int32_t{TENON_OK};
              }}, "compile_failed"), "symbol 7");
  static const TenonAliasPermit alias{5, 0};
  check_named(run_chain({.compile = [](const GraphView&, TenonArtefact& artefact) {
                artefact.aliases = &alias;
                artefact.alias_count = 1;
                return std::int32_t{TENON_OK};
              }}, "compile_failed"), "output 5");
}

TEST_CASE("a backend that fails while running is named and not asked again", "[partition]") {
  int calls = 0;
  check_named(run_chain({.execute = [&](const ir::Graph&, const TenonExecuteArgs& args) {
                ++calls;
                static_cast<float*>(args.outputs[0])[0] = 1e30f;  // half a result
                return std::int32_t{TENON_PLUGIN_FAILED};
              }}, "execute_failed"), "failed to run 3 nodes");
  CHECK(calls == 1);
  check_named(run_chain({.execute = [&](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{4242}; }}, "execute_failed"), "unknown code 4242");
}

TEST_CASE("asking for memory that is given, or handing over nonsense, is a failure", "[partition]") {
  check_named(run_chain({.execute = [](const ir::Graph&, const TenonExecuteArgs& args) {
                const std::int64_t sizes[] = {3};
                args.call->allocate_output(args.call->self, 0, sizes, 1);
                return std::int32_t{TENON_OK};
              }}, "execute_failed"), "whose size is known");
  check_named(run_chain({.execute = [](const ir::Graph&, const TenonExecuteArgs& args) {
                const std::int64_t sizes[] = {3};
                args.call->allocate_output(args.call->self, 9, sizes, 1);
                return std::int32_t{TENON_OK};
              }}, "execute_failed"), "output 9 of 1");
  check_named(run_chain({.execute = [](const ir::Graph&, const TenonExecuteArgs& args) {
                static std::int64_t shape[] = {2};
                static float data[] = {1, 2};
                static DLManagedTensorVersioned tensor{{1, 0}, nullptr, nullptr, 0, {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0}};
                args.call->give_output(args.call->self, 0, &tensor);
                return std::int32_t{TENON_OK};
              }}, "execute_failed"), "the size 2 instead of 3");
  check_named(run_chain({.execute = [](const ir::Graph&, const TenonExecuteArgs& args) {
                static std::int64_t shape[] = {3};
                static double data[] = {1, 2, 3};
                static DLManagedTensorVersioned tensor{{1, 0}, nullptr, nullptr, 0, {data, {kDLCPU, 0}, 1, {kDLFloat, 64, 1}, shape, nullptr, 0}};
                args.call->give_output(args.call->self, 0, &tensor);
                return std::int32_t{TENON_OK};
              }}, "execute_failed"), "float64 instead of");
}

TEST_CASE("a node that nobody takes is an error that names it", "[partition]") {
  TestBackend picky("picky", {.claim = [](const GraphView& graph, const TenonClaims& claims) {
    for (NodeView node : graph.nodes()) claims.refuse(claims.self, node.id(), "op", "not today");
    return std::int32_t{TENON_OK};
  }});
  TestSession session({&picky});
  CHECK_THROWS_WITH(TestProgram(session, parse(kChain), {}), Catch::Contains("picky: op, not today") && Catch::Contains("neg"));
}

TEST_CASE("a backend that claims sees the options of the compile", "[partition]") {
  std::string seen;
  TestBackend curious("curious", {.claim = [&](const GraphView&, const TenonClaims& claims) {
    seen = claims.options;
    return std::int32_t{TENON_OK};
  }}), fallback("fallback");
  TestSession session({&curious, &fallback});
  const TestProgram program(session, parse(kChain), {"curious", "fallback"}, R"({"depth": 3})");
  CHECK(nlohmann::json::parse(seen) == nlohmann::json{{"depth", 3}});
}

TEST_CASE("an unknown backend is an error", "[partition]") {
  TestBackend good("good");
  TestSession session({&good});
  CHECK_THROWS_WITH(TestProgram(session, parse(kChain), {"goood"}), Catch::Contains("good"));
}

namespace {

constexpr const char* kConstants = R"(graph @constants (%x: f32[3]) {
  const @k: f32[3] = [1, -2, 0.5]
  const @m: f32[3] = [4, 5, 6]
  %c: f32[3] = constant() {index = @k}
  %d: f32[3] = constant() {index = @m}
  %a: f32[3] = mul(%x, %c)
  %b: f32[3] = add(%c, %d)
  %e: f32[3] = sub(%a, %b)
  %f: f32[3] = neg(%d)
  return %e, %f, %c
}
)";

/// Claims the nodes for which `wants` holds, in one group.
std::function<std::int32_t(const GraphView&, const TenonClaims&)> claiming(std::function<bool(NodeView)> wants) {
  return [wants](const GraphView& graph, const TenonClaims& claims) {
    std::vector<std::uint32_t> nodes;
    for (NodeView node : graph.nodes())
      if (wants(node)) nodes.push_back(node.id());
    claims.claim(claims.self, nodes.data(), nodes.size());
    return std::int32_t{TENON_OK};
  };
}

/// Runs kConstants, checks the results, and gives how many inputs and constants each group had that was compiled.
std::vector<std::pair<std::size_t, std::size_t>> groups_of(Behaviour behaviour) {
  std::vector<std::pair<std::size_t, std::size_t>> groups;
  behaviour.compile = [&](const GraphView& graph, TenonArtefact&) {
    const auto constants = std::ranges::count_if(graph.nodes(), [](NodeView node) { return node.op() == "constant"; });
    groups.emplace_back(graph.inputs().size(), static_cast<std::size_t>(constants));
    return std::int32_t{TENON_OK};
  };
  TestBackend backend("backend", std::move(behaviour)), other("other");
  TestSession session({&backend, &other});
  const ir::Graph graph = parse(kConstants);
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {3}, 1));
  TestProgram program(session, graph, {"backend"});
  for (int call = 0; call < 2; ++call) check_equal(program.call(inputs), reference(graph, inputs));
  return groups;
}

using Groups = std::vector<std::pair<std::size_t, std::size_t>>;

}  // namespace

TEST_CASE("constants that a backend does not claim are inputs of its groups", "[partition]") {
  CHECK(groups_of({.claim = claiming([](NodeView node) { return node.op() != "constant"; })}) == Groups{{3, 0}});
  CHECK(groups_of({.claim = claiming([](NodeView node) { return node.op() == "neg"; })}) == Groups{{1, 0}});
  CHECK(groups_of({.claim = claiming([](NodeView node) { return node.op() == "mul" || node.op() == "add"; })}) == Groups{{3, 0}});
}

TEST_CASE("constants that a backend claims with a group stay in it", "[partition]") {
  CHECK(groups_of({}) == Groups{{1, 2}});
  CHECK(groups_of({.claim = claiming([](NodeView node) { return node.op() == "neg" || (node.op() == "constant" && node.integer("index") == 1); })}) == Groups{{0, 1}});
  CHECK(groups_of({.claim = claiming([](NodeView node) { return node.op() == "neg" || (node.op() == "constant" && node.integer("index") == 0); })}) == Groups{{1, 0}});
  CHECK(groups_of({.claim = [](const GraphView& graph, const TenonClaims& claims) {  // each node by itself, and each constant too
          for (NodeView node : graph.nodes()) {
            const std::uint32_t id = node.id();
            claims.claim(claims.self, &id, 1);
          }
          return std::int32_t{TENON_OK};
        }}) == Groups{{2, 0}, {2, 0}, {2, 0}, {1, 0}});
}

TEST_CASE("a backend may say that it wants its constants baked in", "[partition]") {
  Behaviour behaviour{.claim = claiming([](NodeView node) { return node.op() != "constant"; })};
  behaviour.flags |= TENON_BAKED_CONSTANTS;
  CHECK(groups_of(behaviour) == Groups{{1, 2}});
}

TEST_CASE("a constant may stay in several groups", "[partition]") {
  CHECK(groups_of({.claim = [](const GraphView& graph, const TenonClaims& claims) {
          for (const char* op : {"mul", "add"}) claiming([op](NodeView node) { return node.op() == op || node.op() == "constant"; })(graph, claims);
          return std::int32_t{TENON_OK};
        }}) == Groups{{1, 1}, {0, 2}});
}

TEST_CASE("constants reach the backend that takes over", "[partition]") {
  for (const std::uint32_t flag : {0u, std::uint32_t{TENON_BAKED_CONSTANTS}}) {
    Behaviour failing{.claim = claiming([](NodeView node) { return node.op() != "constant"; }), .execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_PLUGIN_FAILED}; }};
    failing.flags |= flag;
    groups_of(failing);
  }
}
