// With plugins.isolate a backend claims and compiles in the helper process: what it does there harms nobody.
#include "host/plugins/isolation/isolation.h"

#include <unistd.h>

#include <array>

#include "catch.h"
#include "host/partition/claims.h"
#include "host/plugins/contact/cancellation.h"
#include "host/plugins/isolation/message_file.h"
#include "host/plugins/registry/registry.h"
#include "host/runtime/artefact.h"
#include "unit/host/plugins/plugin_folder.h"

using namespace tenon;
using namespace tenon::host;
using tenon::test::PluginFolder;

namespace {

/// -x; with a constant, -x + c.
ir::Graph negation(const std::string& name, const float* constant = nullptr) {
  const ir::Type type = ir::Type::tensor(DType::f32, {4});
  ir::Graph graph;
  graph.name = name;
  const ValueId x = graph.add_input(type, "x");
  if (constant) {
    const ConstantId c = graph.add_constant({ir::Type::tensor(DType::f32, {1}), constant, nullptr, "c"});
    graph.add_node("constant", {}, {{"index", ir::Dim(c.value)}}, {ir::Type::tensor(DType::f32, {1})});
  }
  const NodeId node = graph.add_node("neg", {x}, {}, {type});
  graph.add_output({graph.node(node).results[0]});
  return graph;
}

struct Isolated {
  PluginFolder folder, cache;
  Config config = folder.config();
  Events events;
  std::unique_ptr<Registry> registry;
  std::shared_ptr<BackendInstance> backend;
  ConstantStore constants;

  explicit Isolated(double seconds = 60) {
    folder.add("dies_late");
    config.isolate = true;
    config.isolate_seconds = seconds;
    config.cache = true;
    config.cache_directory = cache.path();
    registry = std::make_unique<Registry>(config, events);
    const Plugin* plugin = registry->backend("dies_late");
    INFO(registry->why_no_backend("dies_late"));
    REQUIRE(plugin);
    REQUIRE(plugin->isolation);
    backend = std::make_shared<BackendInstance>(*plugin, "{}", std::make_shared<BackendCounters>());
  }

  Result<std::shared_ptr<Artefact>> compile(const ir::Graph& graph) { return Artefact::compile(backend, graph, constants, "{}", {}); }
};

}  // namespace

TEST_CASE("an isolated backend claims, compiles elsewhere and executes here") {
  Isolated isolated;
  const float added = 10;
  const ir::Graph graph = negation("main", &added);
  const ClaimAnswer claims = ask_claims(*isolated.backend, graph, isolated.constants, isolated.events, "{}");
  REQUIRE(claims.groups.size() == 1);
  CHECK(claims.groups[0].nodes == std::vector<NodeId>{graph.nodes()[1]});
  REQUIRE(claims.refusals.size() == 1);
  CHECK(claims.refusals[0].reason == "op");

  const auto artefact = isolated.compile(graph);
  REQUIRE(artefact.ok());
  CHECK((*artefact)->constants_read() == std::vector<std::uint32_t>{0});
  const std::array<float, 4> x = {1, 2, 3, 4};
  std::array<float, 4> y{};
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  TenonExecuteArgs arguments{};
  arguments.struct_size = sizeof arguments;
  arguments.inputs = inputs;
  arguments.outputs = outputs;
  REQUIRE((*artefact)->execute(arguments) == TENON_OK);  // it refuses what this process compiled
  CHECK(y == std::array<float, 4>{9, 8, 7, 6});
}

TEST_CASE("an isolated backend that dies or fails is an error, not the end") {
  Isolated isolated;
  CHECK(ask_claims(*isolated.backend, negation("dies_claiming"), isolated.constants, isolated.events, "{}").groups.empty());
  const auto died = isolated.compile(negation("dies_compiling"));
  REQUIRE(!died.ok());
  CHECK(died.error().message.find("touched memory that is not there while compiling") != std::string::npos);
  const auto failed = isolated.compile(negation("fails_compiling"));
  REQUIRE(!failed.ok());
  CHECK(failed.error().code == Code::unsupported);
  CHECK(failed.error().message == "not this one");
  CHECK(isolated.compile(negation("main")).ok());
}

namespace {

/// What the artefact gives for 0.
float at_zero(const Artefact& artefact) {
  const std::array<float, 4> x{};
  std::array<float, 4> y{};
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  TenonExecuteArgs arguments{};
  arguments.struct_size = sizeof arguments;
  arguments.inputs = inputs;
  arguments.outputs = outputs;
  REQUIRE(artefact.execute(arguments) == TENON_OK);
  return y[0];
}

}  // namespace

TEST_CASE("an isolated backend has the cache") {
  Isolated isolated;
  CHECK(at_zero(**isolated.compile(negation("remembers"))) == 1);
  CHECK(at_zero(**isolated.compile(negation("remembers"))) == 2);
  CHECK(isolated.events.counts()["cache_hits"] == 1);
  CHECK(isolated.events.counts()["cache_stored"] == 2);
}

TEST_CASE("an isolated backend that hangs is ended, and not asked again") {
  Isolated isolated(0.5);
  const auto hung = isolated.compile(negation("hangs_compiling"));
  REQUIRE(!hung.ok());
  CHECK(hung.error().message == "it did not come back within 0.5 s while compiling");
  const auto again = isolated.compile(negation("main"));
  REQUIRE(!again.ok());
  CHECK(again.error().message.find("is not asked again in this session") != std::string::npos);
}

TEST_CASE("who gives the compile up does not wait for the helper") {
  Isolated isolated;
  int questions = 0;
  CancelScope scope([](void* asked) -> std::int32_t { return ++*static_cast<int*>(asked) > 5; }, &questions);
  const auto given_up = isolated.compile(negation("hangs_compiling"));
  REQUIRE(!given_up.ok());
  CHECK(given_up.error().code == Code::cancelled);
}

TEST_CASE("a backend that stores no artefacts cannot be isolated") {
  const PluginFolder folder;
  folder.add("good");
  Config config = folder.config();
  config.isolate = true;
  CHECK(tenon::test::verdict_on(config, "good").value("reason", "") == "not_isolable");
}

TEST_CASE("what no helper wrote is no message") {
  const Descriptor file = anonymous_file();
  CHECK_THROWS_AS(read_message(file.get()), Exception);
  const std::string_view parts[] = {"four", ""};
  write_message(file.get(), {{"code", 0}}, parts);
  const Message message = read_message(file.get());
  CHECK(message.head["code"] == 0);
  CHECK(message.parts == std::vector<std::string_view>{"four", ""});
  REQUIRE(::ftruncate(file.get(), 66) == 0);
  CHECK_THROWS_AS(read_message(file.get()), Exception);
}
