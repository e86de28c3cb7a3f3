// Two backends of one device: what the first cannot do goes on with the second, in the same memory and order.
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
  struct Given {
    DLManagedTensorVersioned managed{};
    std::int64_t shape[1];
    void* memory;
    static void drop(DLManagedTensorVersioned* self) {
      auto* given = static_cast<Given*>(self->manager_ctx);
      mock::MockDevices::get().release({kDLExtDev, 0}, given->memory, 64, nullptr);
      delete given;
    }
  };
  TwoOnADevice f;
  DLDevice of = {kDLExtDev, 0};
  f.first.behaviour.claim = [](const GraphView& graph, const TenonClaims& claims) {
    for (const NodeView node : graph.nodes())
      if (const std::uint32_t id = node.id(); node.op() == "nonzero") claims.claim(claims.self, &id, 1);
    return std::int32_t{TENON_OK};
  };
  f.first.behaviour.execute = [&](const ir::Graph&, const TenonExecuteArgs& args) {
    auto* given = new Given{{}, {8}, mock::MockDevices::get().memory().allocate(64)};
    auto* values = reinterpret_cast<std::int64_t*>(mock::MockDevices::get().memory().reach(given->memory));
    for (std::int64_t i = 0; i < 8; ++i) values[i] = 10 + i;
    static std::int64_t shape[2] = {8, 1};
    given->managed.version = {1, 0};
    given->managed.manager_ctx = given;
    given->managed.deleter = &Given::drop;
    given->managed.dl_tensor = {given->memory, of, 2, {kDLInt, 64, 1}, shape, nullptr, 0};
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
