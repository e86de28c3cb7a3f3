// Where a backend fails in any phase, or answers with what cannot be: the next one takes over, and a warning says who did what.
#include <cfenv>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "../test_backend.h"
#include "catch.h"
#include "core/base/float_control.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char* kNegatedGraph = "graph @g (%x: f32[3]) {\n  %z: f32[3] = neg(%x)\n  return %z\n}\n";
constexpr const char* kFound = "graph @late [u0: 0..64] (%x: f32[5]) {\n  %i: i64[u0, 1] = nonzero(%x)\n  return %i\n}\n";

/// Runs the graph twice for the values 1, 0, 3, … and gives the events of a kind.
struct Takeover {
  TestBackend bad, good{"good"};
  TestSession session;

  explicit Takeover(Behaviour behaviour) : bad("bad", std::move(behaviour)), session({&bad, &good}) {}

  std::vector<std::string> run(const char* text, const std::string& kind) {
    const ir::Graph graph = parse(text);
    TestProgram program(session, graph, {"bad"});
    for (int call = 0; call < 2; ++call) {
      std::vector<ops::HostTensor> inputs;
      inputs.push_back(ops::HostTensor(DType::f32, {graph.type(graph.inputs()[0]).shape[0].constant()}));
      for (std::int64_t i = 0; i < inputs[0].element_count(); ++i) inputs[0].as<float>()[i] = static_cast<float>(i % 2 ? 0 : i + 1 + call);
      const std::vector<ops::TensorView> views = {inputs[0].view()};
      const auto want = ops::evaluate(graph, views), got = program.call(inputs);
      REQUIRE(got[0].shape == want[0].shape);
      CHECK(std::memcmp(got[0].data(), want[0].data(), want[0].byte_count()) == 0);
    }
    return session.events(kind);
  }
};

void check_told(const std::vector<std::string>& events, const std::string& phase, const std::string& words) {
  REQUIRE(events.size() == 1);
  const auto event = nlohmann::json::parse(events.front());
  CHECK(event["backend"] == "bad");
  CHECK(event["phase"] == phase);
  CHECK_THAT(event["text"].get<std::string>(), Catch::Contains("'bad'") && Catch::Contains(words));
}

/// Hands over a tensor as output 0 and says what the host answered.
void give(const TenonExecuteArgs& args, const DLTensor& tensor, std::uint32_t major = 1) {
  static DLManagedTensorVersioned managed;
  managed = {{major, 0}, nullptr, nullptr, 0, tensor};
  CHECK(args.call->give_output(args.call->self, 0, &managed) != TENON_OK);
}

Behaviour giving(const DLTensor& tensor, std::uint32_t major = 1) {
  return {.execute = [=](const ir::Graph&, const TenonExecuteArgs& args) {
    give(args, tensor, major);
    return std::int32_t{TENON_OK};
  }};
}

}  // namespace

TEST_CASE("a backend that cannot be made is left out", "[takeover]") {
  check_told(Takeover({.create = [] { return std::int32_t{TENON_PLUGIN_FAILED}; }}).run(kNegatedGraph, "create_failed"), "create", "could not be set up");
  check_told(Takeover({.create = []() -> std::int32_t { throw std::runtime_error("no such thing"); }}).run(kNegatedGraph, "create_failed"), "create",
             "\"create\" let out an exception: no such thing");
  check_told(Takeover({.create = []() -> std::int32_t { throw 7; }}).run(kNegatedGraph, "create_failed"), "create", "no std::exception");
}

TEST_CASE("wrong options of a backend are an error", "[takeover]") {
  CHECK_THROWS_WITH(Takeover({.create = [] { return std::int32_t{TENON_INVALID_ARGUMENT}; }}).run(kNegatedGraph, ""), Catch::Contains("could not be set up"));
}

TEST_CASE("a claim that throws, or has no sense, leaves the graph to others", "[takeover]") {
  check_told(Takeover({.claim = [](const GraphView&, const TenonClaims&) -> std::int32_t { throw std::runtime_error("no idea"); }}).run(kNegatedGraph, "claim_failed"), "claim",
             "failed to claim: \"claim\" let out an exception: no idea");
  check_told(Takeover({.claim = [](const GraphView&, const TenonClaims& claims) {
               claims.claim(claims.self, nullptr, 3);
               return std::int32_t{TENON_OK};
             }}).run(kNegatedGraph, "claim_invalid"), "claim", "does not name them");
  check_told(Takeover({.claim = [](const GraphView&, const TenonClaims& claims) {
               const std::uint32_t node = 0;
               claims.claim(claims.self, &node, std::numeric_limits<std::size_t>::max());
               return std::int32_t{TENON_OK};
             }}).run(kNegatedGraph, "claim_invalid"), "claim", "of a graph that has 1");
}

TEST_CASE("a compile that throws, gives nothing or announces too much goes on elsewhere", "[takeover]") {
  check_told(Takeover({.compile = [](const GraphView&, TenonArtefact&) -> std::int32_t { throw std::runtime_error("lost"); }}).run(kNegatedGraph, "compile_failed"), "compile", "lost");
  check_told(Takeover({.gives_null = true}).run(kNegatedGraph, "compile_failed"), "compile", "gives no artefact");
  static const TenonAssumption assumption{0, 0, 10, 1};
  check_told(Takeover({.compile = [](const GraphView&, TenonArtefact& artefact) {
               artefact.assumptions = &assumption;
               artefact.assumption_count = std::numeric_limits<std::size_t>::max();
               return std::int32_t{TENON_OK};
             }}).run(kNegatedGraph, "compile_failed"), "compile", "assumptions");
  static const TenonAliasPermit alias{0, 0};
  check_told(Takeover({.compile = [](const GraphView&, TenonArtefact& artefact) {
               artefact.aliases = &alias;
               artefact.alias_count = std::numeric_limits<std::size_t>::max();
               return std::int32_t{TENON_OK};
             }}).run(kNegatedGraph, "compile_failed"), "compile", "aliases");
}

TEST_CASE("a workspace that is not said, or that no machine has, goes on elsewhere", "[takeover]") {
  for (const char* graph : {kNegatedGraph, kFound}) {
    check_told(Takeover({.workspace = [](const std::int64_t*, std::size_t&) { return std::int32_t{TENON_PLUGIN_FAILED}; }}).run(graph, "workspace_failed"), "workspace",
               "it gave no reason");
    for (const std::size_t bytes : {std::numeric_limits<std::size_t>::max(), std::size_t{1} << 62, std::size_t{1} << 45})
      check_told(Takeover({.workspace = [=](const std::int64_t*, std::size_t& wanted) {
                   wanted = bytes;
                   return std::int32_t{TENON_OK};
                 }}).run(graph, "workspace_failed"), "workspace", std::to_string(bytes) + " bytes of workspace");
    check_told(Takeover({.workspace = [](const std::int64_t*, std::size_t&) -> std::int32_t { throw std::runtime_error("cannot count"); }}).run(graph, "workspace_failed"),
               "workspace", "cannot count");
  }
}

TEST_CASE("an execute that throws goes on elsewhere", "[takeover]") {
  for (const char* graph : {kNegatedGraph, kFound})
    check_told(Takeover({.execute = [](const ir::Graph&, const TenonExecuteArgs&) -> std::int32_t { throw std::runtime_error("out of luck"); }}).run(graph, "execute_failed"),
               "execute", "\"execute\" let out an exception: out of luck");
}

TEST_CASE("an output that is no tensor goes on elsewhere", "[takeover]") {
  static std::int64_t sizes[128] = {2, 1};
  static std::int64_t negative[] = {-1, 1}, huge[] = {std::int64_t{1} << 62, 1};
  static std::int64_t data[2] = {};
  const DLDevice cpu{kDLCPU, 0};
  const DLDataType i64{kDLInt, 64, 1};
  const std::pair<DLTensor, const char*> wrong[] = {
      {{nullptr, cpu, 2, i64, sizes, nullptr, 0}, "has no memory"},
      {{data, cpu, 70000, i64, sizes, nullptr, 0}, "has 70000 dimensions"},
      {{data, cpu, std::numeric_limits<std::int32_t>::max(), i64, sizes, nullptr, 0}, "dimensions"},
      {{data, cpu, -1, i64, sizes, nullptr, 0}, "has -1 dimensions"},
      {{data, cpu, 2, i64, nullptr, nullptr, 0}, "has no shape"},
      {{data, cpu, 2, i64, negative, nullptr, 0}, "a size of -1"},
      {{data, cpu, 2, i64, huge, nullptr, 0}, "larger than memory"},
      {{data, cpu, 2, {kDLFloat, 77, 1}, sizes, nullptr, 0}, "no type that there is"},
      {{data, cpu, 2, {kDLInt, 64, 4}, sizes, nullptr, 0}, "no type that there is"},
      {{data, cpu, 2, {kDLFloat, 32, 1}, sizes, nullptr, 0}, "float32 instead of"},
      {{data, {kDLCUDA, 0}, 2, i64, sizes, nullptr, 0}, "on device2:0 instead of cpu"},
      {{data, cpu, 1, i64, sizes, nullptr, 0}, "1 dimensions instead of 2"},
  };
  for (const auto& [tensor, words] : wrong) {
    INFO(words);
    check_told(Takeover(giving(tensor)).run(kFound, "execute_failed"), "execute", words);
  }
  check_told(Takeover(giving({data, cpu, 2, i64, sizes, nullptr, 0}, 2)).run(kFound, "execute_failed"), "execute", "version 2 of DLPack");
  check_told(Takeover({.execute = [](const ir::Graph&, const TenonExecuteArgs& args) {
               CHECK(args.call->give_output(args.call->self, 0, nullptr) != TENON_OK);
               return std::int32_t{TENON_OK};
             }}).run(kFound, "execute_failed"), "execute", "is null");
}

TEST_CASE("an output of unknown size that is left out, or has no sizes, goes on elsewhere", "[takeover]") {
  check_told(Takeover({.execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_OK}; }}).run(kFound, "execute_failed"), "execute", "gave no memory");
  check_told(Takeover({.execute = [](const ir::Graph&, const TenonExecuteArgs& args) {
               CHECK(args.call->allocate_output(args.call->self, 0, nullptr, 2) == nullptr);
               return std::int32_t{TENON_OK};
             }}).run(kFound, "execute_failed"), "execute", "no sizes");
  check_told(Takeover({.execute = [](const ir::Graph&, const TenonExecuteArgs& args) {
               const std::int64_t sizes[] = {2, 1};
               CHECK(args.call->allocate_output(args.call->self, 0, sizes, std::numeric_limits<std::size_t>::max()) == nullptr);
               return std::int32_t{TENON_OK};
             }}).run(kFound, "execute_failed"), "execute", "dimensions instead of 2");
}

TEST_CASE("what a release throws goes nowhere", "[takeover]") {
  CHECK(Takeover({.release = [] { throw std::runtime_error("no way back"); }}).run(kNegatedGraph, "execute_failed").empty());
}

TEST_CASE("arithmetic that a plugin leaves changed is put back and told once", "[takeover]") {
  const auto disturbed = [](Behaviour behaviour, const std::string& phase) {
    Takeover takeover(std::move(behaviour));
    std::fesetround(FE_TONEAREST);
    takeover.run(kNegatedGraph, "");
    CHECK(std::fegetround() == FE_TONEAREST);
    takeover.run(kNegatedGraph, "");
    const auto events = takeover.session.events("plugin_float_control");
    REQUIRE(events.size() == 1);
    const auto event = nlohmann::json::parse(events.front());
    CHECK(event["plugin"] == "bad");
    CHECK(event["phase"] == phase);
    CHECK_THAT(event["text"].get<std::string>(), Catch::Contains("the rounding mode"));
  };
  const auto round_down = [] { std::fesetround(FE_DOWNWARD); };
  disturbed({.create = [=] { return round_down(), std::int32_t{TENON_OK}; }}, "create");
  disturbed({.claim = [=](const GraphView&, const TenonClaims&) { return round_down(), std::int32_t{TENON_OK}; }}, "claim");
  disturbed({.compile = [=](const GraphView&, TenonArtefact&) { return round_down(), std::int32_t{TENON_OK}; }}, "compile");
  disturbed({.workspace = [=](const std::int64_t*, std::size_t&) { return round_down(), std::int32_t{TENON_OK}; }}, "workspace_bytes");
  disturbed({.execute = [=](const ir::Graph& graph, const TenonExecuteArgs& args) { return round_down(), TestBackend::evaluate(graph, args); }}, "execute");
  disturbed({.execute = [=](const ir::Graph&, const TenonExecuteArgs&) { return round_down(), std::int32_t{TENON_PLUGIN_FAILED}; }}, "execute");
}

#if defined(__x86_64__)
TEST_CASE("flushing of subnormal numbers, traps and the precision of the x87 are put back", "[takeover]") {
  const std::pair<void (*)(), const char*> changes[] = {
      {[] { _mm_setcsr(_mm_getcsr() | 0x8040); }, "flushing of subnormal numbers"},
      {[] { feenableexcept(FE_DIVBYZERO | FE_INVALID); }, "which floating-point exceptions trap"},
      {[] {
         const std::uint16_t single = 0x007f;
         __asm__ __volatile__("fldcw %0" : : "m"(single));
       }, "the precision of the x87"},
  };
  for (const auto& [change, words] : changes) {
    const FloatControl before = FloatControl::current();
    Takeover takeover({.execute = [change = change](const ir::Graph& graph, const TenonExecuteArgs& args) {
      const std::int32_t code = TestBackend::evaluate(graph, args);
      change();
      return code;
    }});
    const auto events = takeover.run(kNegatedGraph, "plugin_float_control");
    CHECK(FloatControl::current() == before);
    REQUIRE(events.size() == 1);
    CHECK_THAT(events[0], Catch::Contains(words));
  }
}

TEST_CASE("what has happened to numbers so far is left to whoever asks", "[takeover]") {
  Takeover takeover({.execute = [](const ir::Graph& graph, const TenonExecuteArgs& args) {
    std::feraiseexcept(FE_OVERFLOW);
    return TestBackend::evaluate(graph, args);
  }});
  std::feclearexcept(FE_ALL_EXCEPT);
  CHECK(takeover.run(kNegatedGraph, "plugin_float_control").empty());
  CHECK(std::fetestexcept(FE_OVERFLOW) != 0);
  std::feclearexcept(FE_ALL_EXCEPT);
}
#endif

TEST_CASE("threads that run a plugin's loop compute as before", "[takeover]") {
  Takeover takeover({});
  takeover.bad.behaviour.execute = [&](const ir::Graph& graph, const TenonExecuteArgs& args) {
    const TenonHost* host = takeover.bad.host();
    host->parallel_for(host->self, 0, 64, 1, [](void*, std::int64_t, std::int64_t) { std::fesetround(FE_UPWARD); }, nullptr);
    return TestBackend::evaluate(graph, args);
  };
  CHECK(takeover.run(kNegatedGraph, "plugin_float_control").size() == 1);
  takeover.bad.behaviour.execute = [&](const ir::Graph& graph, const TenonExecuteArgs& args) {
    const TenonHost* host = takeover.bad.host();
    std::atomic<int> changed{0};
    host->parallel_for(host->self, 0, 64, 1, [](void* count, std::int64_t, std::int64_t) { *static_cast<std::atomic<int>*>(count) += std::fegetround() != FE_TONEAREST; }, &changed);
    CHECK(changed == 0);
    return TestBackend::evaluate(graph, args);
  };
  takeover.run(kNegatedGraph, "");
}
