// Backends are asked about nodes on their devices only; copies between devices are the host's; what nobody serves is refused in words.
#include "host/partition/placement.h"

#include <nlohmann/json.hpp>

#include "../test_backend.h"
#include "catch.h"
#include "core/ops/check/type_checker.h"
#include "host/partition/partition.h"

using namespace tenon;
using namespace tenon::host;
using namespace tenon::test;
using Catch::Contains;

namespace {

constexpr DLDevice kHostMemory{kDLCPU, 0};
constexpr DLDevice kNine{static_cast<DLDeviceType>(9), 0};
constexpr DLDevice kAnyNine{static_cast<DLDeviceType>(9), -1};

/// A backend of some devices that notes the ops that it is asked about.
class Served {
 public:
  Served(std::string name, std::vector<DLDevice> devices, std::uint32_t flags = TENON_DYNAMIC_SHAPES)
      : backend_(std::move(name), {.flags = flags, .devices = std::move(devices), .claim = [this](const GraphView& graph, const TenonClaims& claims) { return claim(graph, claims); }}),
        plugin_(plugin_of(backend_)), instance_(plugin_, "{}", std::make_shared<BackendCounters>()) {}

  BackendInstance* instance() { return &instance_; }

  std::vector<std::string> asked;
  std::string refused;          // an op that it does not take
  const char* reason = "op";    // and why

 private:
  static Plugin plugin_of(const TestBackend& backend) {
    Plugin plugin;
    plugin.name = backend.plugin()->name;
    plugin.descriptor = backend.plugin();
    plugin.own = true;
    return plugin;
  }

  std::int32_t claim(const GraphView& graph, const TenonClaims& claims) {
    std::vector<std::uint32_t> all;
    for (NodeView node : graph.nodes()) {
      if (node.op() != "constant") asked.emplace_back(node.op());
      if (node.op() == refused) claims.refuse(claims.self, node.id(), reason, "not this one");
      else all.push_back(node.id());
    }
    claims.claim(claims.self, all.data(), all.size());
    return TENON_OK;
  }

  TestBackend backend_;
  Plugin plugin_;
  BackendInstance instance_;
};

/// The groups as "backend: op op", in order.
std::vector<std::string> groups_of(const std::string& text, std::vector<Served*> backends) {
  ir::Graph graph = parse(text);
  REQUIRE(ops::check_graph(graph).violations.empty());
  std::vector<BackendInstance*> instances;
  for (Served* backend : backends) instances.push_back(backend->instance());
  ConstantStore constants;
  Events events;
  const DeviceList devices(events);
  const std::vector<std::int64_t> sizes(graph.symbols().size(), 5);
  const std::string options = "{}";
  const Partition result = partition(std::move(graph), {instances, constants, events, sizes, devices, options});
  CHECK(ops::check_graph(result.graph).violations.empty());
  std::vector<std::string> groups;
  for (const PlannedGroup& group : result.groups) {
    std::string& words = groups.emplace_back(group.backend == kByHost ? "control:" : group.backend == kCopiedByHost ? "copy:" : instances[group.backend]->name() + ":");
    for (NodeId n : group.nodes) words += " " + result.graph.node(n).op.text();
  }
  return groups;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a backend serves the devices that it names, or every one of a kind", "[placement]") {
  const auto serves_of = [&](std::vector<DLDevice> devices, ir::Device device) {
    TenonBackend backend{};
    backend.devices = devices.data();
    backend.device_count = devices.size();
    return serves(backend, device);
  };
  CHECK(serves_of({kHostMemory}, {}));
  CHECK(serves_of({kHostMemory}, {ir::Device::kHost, 3}));
  CHECK_FALSE(serves_of({kHostMemory}, {9, 0}));
  CHECK(serves_of({kNine}, {9, 0}));
  CHECK_FALSE(serves_of({kNine}, {9, 1}));
  CHECK_FALSE(serves_of({kNine}, {}));
  CHECK(serves_of({kAnyNine}, {9, 7}));
  CHECK_FALSE(serves_of({kAnyNine}, {8, 0}));
  CHECK(serves_of({kAnyNine, kHostMemory}, {}));
}

TEST_CASE("each of two backends is asked about its own device alone, and the host copies", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kNine});
  CHECK(groups_of(R"(graph @g (%x: f32[4], %s: f32[]) {
    %a: f32[4] = relu(%x)
    %b: f32[4] on device9:0 = to_device(%a) {device = "device9:0"}
    %c: f32[4] on device9:0 = mul(%b, %s)
    %d: f32[4] on device9:0 = tanh(%c)
    %e: f32[4] = to_device(%d) {device = "cpu:0"}
    %f: f32[4] = neg(%e)
    return %f
  })", {&nine, &host}) == Words{"host: relu", "copy: to_device", "nine: mul tanh", "copy: to_device", "host: neg"});
  CHECK(nine.asked == Words{"mul", "tanh"});
  CHECK(host.asked == Words{"relu", "neg"});
}

TEST_CASE("what is on the host is no matter of a device's backend", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kAnyNine});
  CHECK(groups_of("graph @g (%x: f32[4]) {\n %y: f32[4] = relu(%x)\n return %y\n}", {&nine, &host}) == Words{"host: relu"});
  CHECK(nine.asked.empty());
}

TEST_CASE("what a host scalar alone gives is the host's", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kAnyNine});
  CHECK(groups_of(R"(graph @g (%x: f32[4] on device9:3, %s: f32[]) {
    %t: f32[] = exp(%s)
    %y: f32[4] on device9:3 = add(%x, %t)
    return %y
  })", {&nine, &host}) == Words{"host: exp", "nine: add"});
}

TEST_CASE("a copy to where a tensor is belongs to whoever takes it", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kNine});
  CHECK(groups_of(R"(graph @g (%x: f32[4] on device9:0) {
    %y: f32[4] on device9:0 = to_device(%x) {device = "device9:0"}
    return %y
  })", {&nine, &host}) == Words{"nine: to_device"});
}

TEST_CASE("a copy within the host's memory is a backend's", "[placement]") {
  Served host("host", {kHostMemory});
  CHECK(groups_of("graph @g (%x: f32[4]) {\n %y: f32[4] on cpu:1 = to_device(%x) {device = \"cpu:1\"}\n return %y\n}", {&host}) == Words{"host: to_device"});
}

TEST_CASE("constants and what is created are on their device", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kNine});
  CHECK(groups_of(R"(graph @g (%x: f32[2] on device9:0) {
    const @c: f32[2] on device9:0
    const @h: f32[2] = [1, 2]
    %c: f32[2] on device9:0 = constant() {index = @c}
    %h: f32[2] = constant() {index = @h}
    %z: f32[2] on device9:0 = full(1.0) {device = "device9:0", dtype = f32, size = [2]}
    %y: f32[2] on device9:0 = add(%x, %c)
    %w: f32[2] on device9:0 = add(%y, %z)
    %v: f32[2] = neg(%h)
    return %w, %v
  })", {&nine, &host}) == Words{"nine: full add add", "host: neg"});
}

TEST_CASE("a branch is the host's, and a backend takes it whole only where it serves all of it", "[placement]") {
  const std::string text = R"(graph @g (%p: bool[] on device9:0, %x: f32[4] on device9:0) {
    %y: f32[4] = cond(%p, %x) graph @a (%i: f32[4] on device9:0) {
      %j: f32[4] = to_device(%i) {device = "cpu:0"}
      return %j
    } graph @b (%i: f32[4] on device9:0) {
      %j: f32[4] = to_device(%i) {device = "cpu:0"}
      %k: f32[4] = neg(%j)
      return %k
    }
    return %y
  })";
  Served host("host", {kHostMemory}), nine("nine", {kNine}), both("both", {kNine, kHostMemory});
  CHECK(groups_of(text, {&nine, &host}) == Words{"control: cond"});
  CHECK(nine.asked.empty());
  CHECK(host.asked.empty());
  CHECK(groups_of(text, {&both, &host}) == Words{"both: cond"});
}

namespace {

constexpr const char* kOnNine = R"(graph @g (%x: f32[4] on device9:0, %y: f32[4] on device9:0) {
    %a: f32[4] on device9:0 = neg(%x)
    %b: f32[4] on device9:0 = atan2(%a, %a)
    %c: f32[4] on device9:0 = mul(%b, %y)
    return %b, %c
  })";

}  // namespace

TEST_CASE("what a backend has slow code for is its own where nobody else takes it", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kNine}), other("other", {kNine});
  nine.refused = other.refused = "atan2", nine.reason = "cost";
  CHECK(groups_of(kOnNine, {&nine, &other, &host}) == Words{"nine: neg", "nine: atan2", "nine: mul"});
  other.refused = "";
  CHECK(groups_of(kOnNine, {&nine, &other, &host}) == Words{"nine: neg", "other: atan2", "nine: mul"});
}

TEST_CASE("what nobody takes on its device runs in the host's memory, between copies", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kNine});
  nine.refused = "atan2";
  CHECK(groups_of(kOnNine, {&nine, &host}) == Words{"nine: neg", "copy: to_device", "host: atan2", "copy: to_device", "nine: mul"});
  nine.refused = "full";
  CHECK(groups_of(R"(graph @g (%x: f32[2] on device9:0) {
    %z: f32[2] on device9:0 = full(1.0) {device = "device9:0", dtype = f32, size = [2]}
    %y: f32[2] on device9:0 = add(%x, %z)
    return %y
  })", {&nine, &host}) == Words{"host: full", "copy: to_device", "nine: add"});
}

TEST_CASE("a device that no backend serves is named with op, line and what there is", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kNine, kAnyNine});
  const auto refusal = [&](const std::string& body) {
    try {
      groups_of("graph @g (%x: f32[4] on device2:1, %h: f32[4]) {\n" + body + "\n return %y\n}", {&nine, &host});
    } catch (const Exception& e) {
      CHECK(e.code() == Code::unsupported);
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refusal("%y: f32[4] on device2:1 = relu(%x) @ \"model.py\":7") ==
        "model.py:7: no backend serves device2:1, the device of the op relu (node %y); loaded: 'nine' for device9:0, device9, 'host' for cpu:0");
  CHECK_THAT(refusal("%y: f32[4] = to_device(%x) {device = \"cpu:0\"}"), Contains("no backend serves device2:1, the device of the op to_device"));
  CHECK_THAT(refusal("%y: f32[4] on device8:0 = to_device(%h) {device = \"device8:0\"}"), Contains("no backend serves device8:0"));
  CHECK_THAT(refusal("%y: f32[4] on device2:1 = full(0.0) {device = \"device2:1\", dtype = f32, size = [4]}"), Contains("the device of the op full"));
  CHECK(nine.asked.empty());
  CHECK(host.asked.empty());
}

TEST_CASE("an input that is handed on is on a device that somebody serves", "[placement]") {
  Served host("host", {kHostMemory});
  CHECK_THROWS_WITH(groups_of("graph @g (%x: f32[4] on device2:1) {\n return %x\n}", {&host}), "no backend serves device2:1, the device of the output %x; loaded: 'host' for cpu:0");
  CHECK(groups_of("graph @g (%x: f32[4] on device2:1, %h: f32[4]) {\n %y: f32[4] = relu(%h)\n return %y\n}", {&host}) == Words{"host: relu"});
}

TEST_CASE("a node that the backend of its device refuses falls to none of another", "[placement]") {
  Served other("other", {{static_cast<DLDeviceType>(9), 1}}), nine("nine", {kNine});
  nine.refused = "erf";
  const auto run = [&] { groups_of("graph @g (%x: f32[4] on device9:0) {\n %y: f32[4] on device9:0 = erf(%x) @ \"model.py\":3\n return %y\n}", {&nine, &other}); };
  CHECK_THROWS_WITH(run(), "model.py:3: no backend takes the op erf (node %y): nine: op, not this one; other: device, it serves device9:1");
  CHECK(other.asked.empty());
}

TEST_CASE("composite nodes are expanded on their device", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kNine});
  nine.refused = "softmax";
  const auto groups = groups_of("graph @g (%x: f32[4, 5] on device9:0) {\n %y: f32[4, 5] on device9:0 = softmax(%x) {dim = 1}\n return %y\n}", {&nine, &host});
  REQUIRE(groups.size() == 1);
  CHECK_THAT(groups[0], Contains("nine: ") && Contains("exp"));
  CHECK(host.asked.empty());
}

TEST_CASE("a backend of static shapes is asked about its device alone, too", "[placement]") {
  Served host("host", {kHostMemory}), nine("nine", {kNine}, 0);
  CHECK(groups_of(R"(graph @g [n: 1..9] (%x: f32[n]) {
    %a: f32[n] on device9:0 = to_device(%x) {device = "device9:0"}
    %b: f32[n] on device9:0 = relu(%a)
    %c: f32[n] = to_device(%b) {device = "cpu:0"}
    return %c
  })", {&nine, &host}) == Words{"copy: to_device", "nine: relu", "copy: to_device"});
}

TEST_CASE("a graph on a device is not handed to the fallback of the host", "[placement]") {
  TestBackend fallback("fallback");
  TestSession session({&fallback});
  const ir::Graph graph = parse("graph @g (%x: f32[4] on device2:0) {\n %y: f32[4] on device2:0 = relu(%x)\n return %y\n}");
  CHECK_THROWS_WITH(TestProgram(session, graph, {"fallback"}), Contains("no backend serves device2:0, the device of the op relu (node %y); loaded: 'fallback' for cpu:0"));
  CHECK(fallback.claims == 0);
}
