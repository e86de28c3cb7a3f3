// Two backends of one device: what the first cannot do goes on with the second, in the same memory and order.
#include <cmath>

#include "../devices/mock_session.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// Computes at once, after what the device was given before.
std::int32_t evaluate_there(const ir::Graph& graph, const TenonExecuteArgs& args) {
  mock::MockDevices& devices = mock::MockDevices::get();
  devices.drain();
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) inputs.push_back(devices.memory().reach(args.inputs[i]));
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) outputs.push_back(devices.memory().reach(args.outputs[i]));
  TenonExecuteArgs reached = args;
  reached.inputs = inputs.data(), reached.outputs = outputs.data();
  return TestBackend::evaluate(graph, reached);
}

/// A backend of the mock device's memory, asked before it.
Behaviour beside() {
  Behaviour behaviour;
  behaviour.devices = {{kDLExtDev, -1}};
  behaviour.execute = evaluate_there;
  return behaviour;
}

struct TwoOnADevice {
  explicit TwoOnADevice(Behaviour behaviour = beside()) : first("first", std::move(behaviour)) { require_ok(tenon_session_register(session.get(), first.plugin())); }

  TestProgram compile(const std::string& text) { return {session.session(), parse(text), {"first", "mock_device"}}; }

  MockSession session;
  TestBackend first;
};

/// A tensor in memory of the device that the host does not know.
struct Given {
  DLManagedTensorVersioned managed{};
  std::vector<std::int64_t> shape;
  std::size_t bytes;
  void* memory;
  static inline int alive = 0;

  static Given* of(DLDataType type, std::vector<std::int64_t> shape) {
    std::size_t bytes = type.bits / 8;
    for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
    auto* given = new Given{{}, std::move(shape), bytes, mock::MockDevices::get().memory().allocate(bytes)};
    given->managed.version = {1, 0};
    given->managed.manager_ctx = given;
    given->managed.deleter = &drop;
    given->managed.dl_tensor = {given->memory, {kDLExtDev, 0}, static_cast<std::int32_t>(given->shape.size()), type, given->shape.data(), nullptr, 0};
    ++alive;
    return given;
  }
  void* reached() const { return mock::MockDevices::get().memory().reach(memory); }

 private:
  static void drop(DLManagedTensorVersioned* self) {
    auto* given = static_cast<Given*>(self->manager_ctx);
    mock::MockDevices::get().release({kDLExtDev, 0}, given->memory, given->bytes, nullptr);
    delete given;
    --alive;
  }
};

constexpr const char* kNegateThere = "graph @g (%x: f32[16] on device12:0) {\n  %z: f32[16] on device12:0 = neg(%x)\n  return update %x = %z\n}\n";

}  // namespace

TEST_CASE("a backend of a device that fails to run is replaced by the next one there") {
  TwoOnADevice f;
  f.first.behaviour.execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_PLUGIN_FAILED}; };
  const TestProgram program = f.compile("graph @g (%x: f32[16] on device12:0) {\n  %z: f32[16] on device12:0 = neg(%x)\n  return %z\n}\n");
  const ops::HostTensor x = filled(DType::f32, {16}, 1);
  const DeviceTensor on_x(f.session, x), z(f.session, DType::f32, {16});
  for (int i = 0; i < 2; ++i) {
    require_ok(run(program, {on_x.data()}, {z.data()}));
    CHECK(z.values().as<float>()[5] == -x.as<float>()[5]);
  }
  CHECK(f.first.executes == 1);
  CHECK(f.session.reference.executes == 0);
  CHECK(f.session.session().events("execute_failed").size() == 1);
}

TEST_CASE("a backend of a device that cannot compile is replaced by the next one there") {
  TwoOnADevice f;
  f.first.behaviour.compile = [](const GraphView&, TenonArtefact&) { return std::int32_t{TENON_UNSUPPORTED}; };
  const TestProgram program = f.compile("graph @g (%x: f32[16] on device12:0) {\n  %z: f32[16] on device12:0 = neg(%x)\n  return %z\n}\n");
  const ops::HostTensor x = filled(DType::f32, {16}, 1);
  const DeviceTensor on_x(f.session, x), z(f.session, DType::f32, {16});
  require_ok(run(program, {on_x.data()}, {z.data()}));
  CHECK(z.values().as<float>()[5] == -x.as<float>()[5]);
  CHECK(f.session.reference.compiles == 0);
}

TEST_CASE("an update on a device is written over its target where the artefact permits it, and beside it where who takes over does") {
  static constexpr TenonAliasPermit kPermit{0, 0};
  TwoOnADevice f;
  bool in_place = false, fails = false;
  f.first.behaviour.compile = [](const GraphView&, TenonArtefact& artefact) {
    artefact.aliases = &kPermit;
    artefact.alias_count = 1;
    return std::int32_t{TENON_OK};
  };
  f.first.behaviour.execute = [&](const ir::Graph& graph, const TenonExecuteArgs& args) {
    in_place = args.outputs[0] == args.inputs[0];
    return fails ? std::int32_t{TENON_PLUGIN_FAILED} : evaluate_there(graph, args);
  };
  const TestProgram program = f.compile(kNegateThere);
  const ops::HostTensor x = filled(DType::f32, {16}, 1);
  const DeviceTensor on_x(f.session, x);
  require_ok(run(program, {on_x.data()}, {on_x.data()}));
  CHECK(in_place);
  CHECK(on_x.values().as<float>()[3] == -x.as<float>()[3]);
  fails = true;
  require_ok(run(program, {on_x.data()}, {on_x.data()}));
  CHECK(same(on_x.values(), x));
}

TEST_CASE("a backend of static shapes is asked for each size on a device, too") {
  Behaviour behaviour = beside();
  behaviour.flags = TENON_STRIDED_INPUTS;
  TwoOnADevice f(behaviour);
  const TestProgram program = f.compile("graph @g [s0: 1..64] (%x: f32[s0] on device12:0) {\n  %z: f32[s0] on device12:0 = neg(%x)\n  return %z\n}\n");
  for (const std::int64_t size : {3, 9, 3}) {
    const ops::HostTensor x = filled(DType::f32, {size}, 1);
    const DeviceTensor on_x(f.session, x), z(f.session, DType::f32, {size});
    require_ok(run(program, {on_x.data()}, {z.data()}, {size}));
    CHECK(z.values().as<float>()[2] == -x.as<float>()[2]);
  }
  CHECK(f.first.executes == 3);
  CHECK(f.first.compiles == 2);
}

TEST_CASE("a workspace that no device has goes on elsewhere on the device") {
  TwoOnADevice f;
  f.first.behaviour.workspace = [](const std::int64_t*, std::size_t& bytes) {
    bytes = mock::MockDevices::get().memory().bytes() + 1;
    return std::int32_t{TENON_OK};
  };
  const TestProgram program = f.compile("graph @g (%x: f32[16] on device12:0) {\n  %z: f32[16] on device12:0 = neg(%x)\n  return %z\n}\n");
  const ops::HostTensor x = filled(DType::f32, {16}, 1);
  const DeviceTensor on_x(f.session, x), z(f.session, DType::f32, {16});
  require_ok(run(program, {on_x.data()}, {z.data()}));
  CHECK(z.values().as<float>()[5] == -x.as<float>()[5]);
  CHECK(f.first.executes == 0);
}

TEST_CASE("a tensor that a backend of a device hands over is that device's, and goes when its last reader has been given") {
  TwoOnADevice f;
  DLDevice of = {kDLExtDev, 0};
  f.first.behaviour.claim = [](const GraphView& graph, const TenonClaims& claims) {
    for (const NodeView node : graph.nodes())
      if (const std::uint32_t id = node.id(); node.op() == "nonzero") claims.claim(claims.self, &id, 1);
    return std::int32_t{TENON_OK};
  };
  f.first.behaviour.execute = [&](const ir::Graph&, const TenonExecuteArgs& args) {
    Given* given = Given::of(DLDataType{kDLInt, 64, 1}, {8, 1});
    auto* values = static_cast<std::int64_t*>(given->reached());
    for (std::int64_t i = 0; i < 8; ++i) values[i] = 10 + i;
    given->managed.dl_tensor.device = of;
    return args.call->give_output(args.call->self, 0, &given->managed);
  };
  const TestProgram program = f.compile(R"(graph @g [s0] (%x: f32[32] on device12:0) {
  %n: i64[s0, 1] on device12:0 = nonzero(%x)
  %m: i64[s0, 1] on device12:0 = neg(%n)
  return %m
}
)");
  const DeviceTensor on_x(f.session, filled(DType::f32, {32}, 1));
  const DLTensor view = on_x.view();
  const DLTensor* inputs[] = {&view};
  DLManagedTensorVersioned* output = nullptr;
  SECTION("of the right device") {
    require_ok(tenon_program_call(program.get(), inputs, 1, &output, 1));
    REQUIRE(output->dl_tensor.shape[0] == 8);
    CHECK(reinterpret_cast<const std::int64_t*>(mock::MockDevices::get().memory().reach(output->dl_tensor.data))[2] == -12);
    output->deleter(output);
  }
  SECTION("of another") {
    of = {kDLExtDev, 1};
    require_ok(tenon_program_call(program.get(), inputs, 1, &output, 1));
    CHECK(output->dl_tensor.shape[0] > 8);
    output->deleter(output);
    const auto failed = f.session.session().events("execute_failed");
    REQUIRE(failed.size() == 1);
    CHECK_THAT(failed[0], Catch::Contains("it hands over %n on mock:1 instead of mock:0"));
  }
}

namespace {

/// %a and %c are the first backend's, which hands them over; what follows of each is written over it where the mock device lets it.
constexpr const char* kInTurn = R"(graph @g (%x: f32[16] on device12:0) {
  %a: f32[16] on device12:0 = exp(%x)
  %b: f32[16] on device12:0 = neg(%a)
  %c: f32[16] on device12:0 = exp(%b)
  %d: f32[16] on device12:0 = add(%c, %a)
  return %d
}
)";

struct Giving {
  Giving() {
    f.first.behaviour.claim = [](const GraphView& graph, const TenonClaims& claims) {
      for (const NodeView node : graph.nodes())
        if (const std::uint32_t id = node.id(); node.op() == "exp") claims.claim(claims.self, &id, 1);
      return std::int32_t{TENON_OK};
    };
    f.first.behaviour.compile = [](const GraphView&, TenonArtefact& artefact) {
      artefact.flags = TENON_GIVES_OUTPUTS;
      return std::int32_t{TENON_OK};
    };
    f.first.behaviour.execute = [this](const ir::Graph& graph, const TenonExecuteArgs& args) { return executes(graph, args); };
  }

  /// Computes into memory of its own, and hands that over.
  std::int32_t give(const ir::Graph& graph, const TenonExecuteArgs& args) {
    had_memory = had_memory || args.outputs[0];
    most_alive = std::max(most_alive, Given::alive + 1);
    Given* given = Given::of({kDLFloat, 32, 1}, {16});
    void* outputs[] = {given->memory};
    TenonExecuteArgs into = args;
    into.outputs = outputs;
    evaluate_there(graph, into);
    return args.call->give_output(args.call->self, 0, &given->managed);
  }

  /// Runs twice, and compares with the host's results.
  void check() {
    const TestProgram program = f.compile(kInTurn);
    const ops::HostTensor x = filled(DType::f32, {16}, 1);
    const DeviceTensor on_x(f.session, x), d(f.session, DType::f32, {16});
    for (int i = 0; i < 2; ++i) {
      require_ok(run(program, {on_x.data()}, {d.data()}));
      const float a = std::exp(x.as<float>()[5]);
      CHECK(d.values().as<float>()[5] == std::exp(-a) + a);
    }
    mock::MockDevices::get().drain();
    CHECK(Given::alive == 0);
  }

  TwoOnADevice f;
  std::function<std::int32_t(const ir::Graph&, const TenonExecuteArgs&)> executes = [this](const ir::Graph& graph, const TenonExecuteArgs& args) { return give(graph, args); };
  bool had_memory = false;
  int most_alive = 0;
};

}  // namespace

TEST_CASE("what an artefact of a device gives stays where it is") {
  Giving giving;
  giving.check();
  CHECK_FALSE(giving.had_memory);
  CHECK(giving.most_alive == 2);
  CHECK(giving.f.session.session().events("execute_failed").empty());
}

TEST_CASE("an artefact that gives may ask for memory instead") {
  Giving giving;
  giving.executes = [](const ir::Graph& graph, const TenonExecuteArgs& args) {
    const std::int64_t sizes[] = {16};
    void* outputs[] = {args.call->allocate_output(args.call->self, 0, sizes, 1)};
    TenonExecuteArgs into = args;
    into.outputs = outputs;
    return evaluate_there(graph, into);
  };
  giving.check();
  CHECK(giving.f.session.session().events("execute_failed").empty());
}

TEST_CASE("what an artefact was to give and did not is computed by the next backend") {
  Giving giving;
  std::string why;
  SECTION("it gives nothing") {
    giving.executes = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_OK}; };
    why = "it gave no memory for %a, which it was to hand over";
  }
  SECTION("it fails when it has given") {
    giving.executes = [&](const ir::Graph& graph, const TenonExecuteArgs& args) {
      giving.give(graph, args);
      return std::int32_t{TENON_PLUGIN_FAILED};
    };
    why = "execute";
  }
  SECTION("it gives twice") {
    giving.executes = [&](const ir::Graph& graph, const TenonExecuteArgs& args) {
      giving.give(graph, args);
      return giving.give(graph, args);
    };
    giving.check();
    return;
  }
  giving.check();
  const auto failed = giving.f.session.session().events("execute_failed");
  REQUIRE(failed.size() == 2);
  CHECK_THAT(failed[0], Catch::Contains(why));
}
