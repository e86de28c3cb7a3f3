// Plans on devices whose memory the host cannot touch and whose work runs late.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "../devices/mock_session.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;
using nlohmann::json;

namespace {

mock::MockDevices& devices() { return mock::MockDevices::get(); }

/// What the graph gives on the host.
std::vector<ops::HostTensor> expected(std::string text, std::initializer_list<std::reference_wrapper<const ops::HostTensor>> inputs) {
  for (const std::string device : {" on device12:0", " on device12:1"})
    for (std::size_t at; (at = text.find(device)) != std::string::npos;) text.erase(at, device.size());
  for (const std::string device : {"device12:0", "device12:1"})
    for (std::size_t at; (at = text.find('"' + device + '"')) != std::string::npos;) text.replace(at, device.size() + 2, "\"cpu\"");
  const ir::Graph graph = parse(text);
  std::vector<ops::TensorView> views;
  for (const ops::HostTensor& input : inputs) views.push_back(input.view());
  return ops::evaluate(graph, views);
}

constexpr const char* kChain = R"(graph @g (%x: f32[64, 8] on device12:0, %y: f32[8] on device12:0) {
  %a: f32[64, 8] on device12:0 = mul(%x, %y)
  %b: f32[64, 8] on device12:0 = tanh(%a)
  %c: f32[64] on device12:0 = sum(%b) {dim = [1], dtype = f32, keepdim = false}
  return %b, %c
}
)";

}  // namespace

TEST_CASE("a group runs in a device's memory") {
  MockSession session;
  const TestProgram program = session.compile(kChain);
  const ops::HostTensor x = filled(DType::f32, {64, 8}, 1), y = filled(DType::f32, {8}, 2);
  const DeviceTensor on_x(session, x), on_y(session, y), b(session, DType::f32, {64, 8}), c(session, DType::f32, {64});
  const auto wanted = expected(kChain, {x, y});
  for (int i = 0; i < 3; ++i) {
    require_ok(run(program, {on_x.data(), on_y.data()}, {b.data(), c.data()}));
    CHECK(same(b.values(), wanted[0]));
    CHECK(same(c.values(), wanted[1]));
  }
}

TEST_CASE("a run gives a device its work and does not wait for it") {
  MockSession session;
  const TestProgram program = session.compile(kChain);
  const ops::HostTensor x = filled(DType::f32, {64, 8}, 1), y = filled(DType::f32, {8}, 2);
  const DeviceTensor on_x(session, x), on_y(session, y), b(session, DType::f32, {64, 8}), c(session, DType::f32, {64});
  devices().drain();
  const Held held;
  mock::Stream& stream = devices().stream_of({kDLExtDev, 0}, nullptr);
  const std::uint64_t before = stream.given();
  require_ok(run(program, {on_x.data(), on_y.data()}, {b.data(), c.data()}));
  CHECK(stream.given() > before);
  CHECK(*reinterpret_cast<const unsigned*>(devices().memory().reach(b.data())) == 0xcdcdcdcdu);
  CHECK(same(b.values(), expected(kChain, {x, y})[0]));
}

TEST_CASE("the convenient road takes and gives tensors of a device, and waits") {
  MockSession session;
  const TestProgram program = session.compile(kChain);
  const ops::HostTensor x = filled(DType::f32, {64, 8}, 1), y = filled(DType::f32, {8}, 2);
  const DeviceTensor on_x(session, x), on_y(session, y);
  const DLTensor views[] = {on_x.view(), on_y.view()};
  const DLTensor* inputs[] = {&views[0], &views[1]};
  DLManagedTensorVersioned* outputs[2] = {};
  require_ok(tenon_program_call(program.get(), inputs, 2, outputs, 2));
  CHECK(outputs[0]->dl_tensor.device.device_type == kDLExtDev);
  CHECK(std::memcmp(devices().memory().reach(outputs[0]->dl_tensor.data), expected(kChain, {x, y})[0].data(), 64 * 8 * 4) == 0);
  for (DLManagedTensorVersioned* output : outputs) output->deleter(output);
  SECTION("what lies elsewhere is refused") {
    Borrowed of_host(x);
    of_host.tensor.shape = of_host.shape.data();
    inputs[0] = &of_host.tensor;
    CHECK(tenon_program_call(program.get(), inputs, 2, outputs, 2) == TENON_UNSUPPORTED);
    CHECK_THAT(tenon_last_error()->text, Catch::Contains("%x is on cpu; the program takes it on mock:0"));
  }
  SECTION("another layout is brought into the one that the program takes") {
    const std::int64_t strides[] = {1, 64};
    DLTensor transposed = views[0];
    transposed.strides = const_cast<std::int64_t*>(strides);
    inputs[0] = &transposed;
    ops::HostTensor turned(DType::f32, {64, 8});
    for (std::size_t i = 0; i < 64; ++i)
      for (std::size_t j = 0; j < 8; ++j) turned.as<float>()[i * 8 + j] = x.as<float>()[j * 64 + i];
    require_ok(tenon_program_call(program.get(), inputs, 2, outputs, 2));
    CHECK(std::memcmp(devices().memory().reach(outputs[0]->dl_tensor.data), expected(kChain, {turned, y})[0].data(), 64 * 8 * 4) == 0);
    for (DLManagedTensorVersioned* output : outputs) output->deleter(output);
  }
}

TEST_CASE("memory and streams are the driver's where it brings them") {
  struct Driver {
    mock::Memory& memory = devices().memory();
    void* stream = devices().create_stream({kDLExtDev, 0});
    std::multiset<std::size_t> given;
  } driver;
  MockSession session;
  TenonDriverDevice functions{};
  functions.struct_size = sizeof functions;
  functions.device = {kDLExtDev, 0};
  functions.context = &driver;
  functions.allocate = [](void* context, DLDevice, std::size_t bytes, void*) -> void* {
    static_cast<Driver*>(context)->given.insert(bytes);
    return static_cast<Driver*>(context)->memory.allocate(bytes);
  };
  functions.release = [](void* context, DLDevice device, void* memory, std::size_t bytes, void* stream) {
    auto& d = *static_cast<Driver*>(context);
    d.given.erase(d.given.find(bytes));
    devices().stream_of(device, stream).give([&d, memory, bytes] { d.memory.release(memory, bytes); });
  };
  functions.current_stream = [](void* context, DLDevice) { return static_cast<Driver*>(context)->stream; };
  require_ok(tenon_session_set_device(session.get(), &functions));
  const TestProgram program = session.compile(kChain);
  CHECK(tenon_session_set_device(session.get(), &functions) == TENON_INVALID_ARGUMENT);
  const ops::HostTensor x = filled(DType::f32, {64, 8}, 1), y = filled(DType::f32, {8}, 2);
  {
    const DeviceTensor on_x(session, x), on_y(session, y), b(session, DType::f32, {64, 8}), c(session, DType::f32, {64});
    const std::uint64_t before = devices().stream_of({kDLExtDev, 0}, driver.stream).given();
    require_ok(run(program, {on_x.data(), on_y.data()}, {b.data(), c.data()}));
    CHECK(devices().stream_of({kDLExtDev, 0}, driver.stream).given() > before);
    CHECK(driver.given.count(64 * 8 * 4) == 2);
    CHECK(same(b.values(), expected(kChain, {x, y})[0]));
  }
  devices().drain();
  CHECK(driver.given.empty());
}

TEST_CASE("a device is opened before a compile, and takes a driver until it has given memory") {
  MockSession session;
  const char* backends[] = {"mock_device"};
  CHECK(tenon_session_open_device(session.get(), nullptr, 0, {kDLExtDev, 0}) == TENON_NOT_FOUND);
  require_ok(tenon_session_open_device(session.get(), backends, 1, {kDLExtDev, 1}));
  CHECK(tenon_session_open_device(session.get(), backends, 1, {kDLCUDA, 0}) == TENON_NOT_FOUND);
  TenonDriverDevice functions{};
  functions.struct_size = sizeof functions;
  functions.context = &devices();
  functions.allocate = [](void*, DLDevice, std::size_t bytes, void*) { return devices().memory().allocate(bytes); };
  functions.release = [](void*, DLDevice, void* memory, std::size_t bytes, void*) { devices().memory().release(memory, bytes); };
  functions.device = {kDLExtDev, 1};
  require_ok(tenon_session_set_device(session.get(), &functions));
  const DeviceTensor used(session, DType::f32, {4}, 0);
  functions.device = {kDLExtDev, 0};
  CHECK(tenon_session_set_device(session.get(), &functions) == TENON_INVALID_ARGUMENT);
}

TEST_CASE("an update of a tensor of a device is written there") {
  constexpr const char* kUpdate = "graph @g (%x: f32[16] on device12:0) {\n  %z: f32[16] on device12:0 = neg(%x)\n  return %z, update %x = %z\n}\n";
  MockSession session;
  const TestProgram program = session.compile(kUpdate);
  const ops::HostTensor x = filled(DType::f32, {16}, 1);
  const DeviceTensor on_x(session, x), z(session, DType::f32, {16});
  require_ok(run(program, {on_x.data()}, {z.data(), on_x.data()}));
  CHECK(same(on_x.values(), z.values()));
  CHECK(on_x.values().as<float>()[3] == -x.as<float>()[3]);
}

TEST_CASE("sizes that a device finds are bound, and memory for them is the device's") {
  constexpr const char* kFound = R"(graph @g [s0] (%x: f32[32] on device12:0) {
  %n: i64[s0, 1] on device12:0 = nonzero(%x)
  %m: i64[s0, 1] on device12:0 = neg(%n)
  return %m
}
)";
  MockSession session;
  const TestProgram program = session.compile(kFound);
  ops::HostTensor x = filled(DType::f32, {32}, 1);
  for (std::size_t i = 0; i < 32; i += 3) x.as<float>()[i] = 0;
  const DeviceTensor on_x(session, x);
  const DLTensor view = on_x.view();
  const DLTensor* inputs[] = {&view};
  DLManagedTensorVersioned* output = nullptr;
  require_ok(tenon_program_call(program.get(), inputs, 1, &output, 1));
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < 32; ++i)
    if (x.as<float>()[i] != 0) found.push_back(-i);
  REQUIRE(output->dl_tensor.shape[0] == static_cast<std::int64_t>(found.size()));
  CHECK(std::memcmp(devices().memory().reach(output->dl_tensor.data), found.data(), found.size() * 8) == 0);
  output->deleter(output);
}

namespace {

/// Two products of a device between copies, host arithmetic between them, and a second device.
constexpr const char* kThereAndBack = R"(graph @g [s0: 1..64] (%x: f32[s0, 8], %w: f32[8] on device12:0) {
  %a: f32[s0, 8] on device12:0 = to_device(%x) {device = "device12:0"}
  %b: f32[s0, 8] on device12:0 = mul(%a, %w)
  %c: f32[s0, 8] = to_device(%b) {device = "cpu:0"}
  %d: f32[s0, 8] = tanh(%c)
  %e: f32[s0, 8] = add(%d, %x)
  %f: f32[s0, 8] on device12:1 = to_device(%e) {device = "device12:1"}
  %g: f32[s0, 8] on device12:1 = exp(%f)
  %h: f32[s0, 8] on device12:0 = to_device(%g) {device = "device12:0"}
  %i: f32[s0, 8] on device12:0 = add(%h, %b)
  %j: f32[s0] on device12:0 = sum(%i) {dim = [1], dtype = f32, keepdim = false}
  %k: f32[s0] = to_device(%j) {device = "cpu:0"}
  return %k, %i, %d
}
)";

struct ThereAndBack {
  explicit ThereAndBack(MockSession& session, std::int64_t size)
      : x(filled(DType::f32, {size, 8}, 1)), w(filled(DType::f32, {8}, 2)), on_w(session, w), on_i(session, DType::f32, {size, 8}), k(DType::f32, {size}), d(DType::f32, {size, 8}) {}

  std::int32_t run(const TestProgram& program) {
    std::memset(k.data(), 0xee, k.byte_count());
    std::memset(d.data(), 0xee, d.byte_count());
    return test::run(program, {x.data(), on_w.data()}, {k.data(), on_i.data(), d.data()}, {x.shape[0]});
  }
  bool right() const {
    const auto wanted = expected(kThereAndBack, {x, w});
    return same(k, wanted[0]) && same(on_i.values(), wanted[1]) && same(d, wanted[2]);
  }

  ops::HostTensor x, w;
  DeviceTensor on_w, on_i;
  ops::HostTensor k, d;
};

}  // namespace

TEST_CASE("values go to devices, between them and back, and whoever reads one in the host waits for it") {
  MockSession session;
  const TestProgram program = session.compile(kThereAndBack);
  for (const std::int64_t size : {4, 64, 1, 4}) {
    ThereAndBack f(session, size);
    require_ok(f.run(program));
    CHECK(f.right());
    const Held held;
    require_ok(f.run(program));
    CHECK(f.right());
  }
}

TEST_CASE("runs on several threads do not meet") {
  MockSession session;
  const TestProgram program = session.compile(kThereAndBack);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        ThereAndBack f(session, 3 + 7 * t);
        if (f.run(program) == TENON_OK && f.right()) ++right;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 80);
}

TEST_CASE("whichever call of a device fails, a run says so, and the next is right") {
  MockSession session;
  const TestProgram program = session.compile(kThereAndBack);
  std::size_t blocks = 0;
  int failures = 0;
  {
    ThereAndBack f(session, 5);
    require_ok(f.run(program));
    devices().drain();
    blocks = devices().memory().used_blocks();
    const ops::HostTensor before = filled(DType::f32, {5, 8}, 1);
    for (std::int64_t n = 0;; ++n) {
      INFO(n);
      devices().fail_call(n);
      const std::int32_t code = f.run(program);
      const bool has_failed = devices().has_failed();
      devices().fail_call(-1);
      if (!has_failed) break;
      ++failures;
      CHECK((code == TENON_OK || std::string(tenon_last_error()->text).find("told to fail here") != std::string::npos));
      CHECK(same(f.x, before));
      CHECK(same(f.on_w.values(), f.w));
      require_ok(f.run(program));
      CHECK(f.right());
      devices().drain();
      CHECK(devices().memory().used_blocks() <= blocks + 1);  // a release that failed keeps its block
      blocks = devices().memory().used_blocks();
    }
  }
  CHECK(failures >= 20);
}

TEST_CASE("what one backend claims on two devices is a group for each") {
  constexpr const char* kTwo = R"(graph @g (%x: f32[16] on device12:0, %y: f32[16] on device12:1) {
  %a: f32[16] on device12:0 = neg(%x)
  %b: f32[16] on device12:1 = exp(%y)
  %c: f32[16] on device12:0 = mul(%a, %x)
  return %c, %b
}
)";
  MockSession session;
  const TestProgram program = session.compile(kTwo);
  const json plan = json::parse(program.query("plan"));
  CHECK(plan["steps"].size() == 2);
  const ops::HostTensor x = filled(DType::f32, {16}, 1), y = filled(DType::f32, {16}, 2);
  const DeviceTensor on_x(session, x), on_y(session, y, 1), c(session, DType::f32, {16}), b(session, DType::f32, {16}, 1);
  require_ok(run(program, {on_x.data(), on_y.data()}, {c.data(), b.data()}));
  const auto wanted = expected(kTwo, {x, y});
  CHECK(same(c.values(), wanted[0]));
  CHECK(same(b.values(), wanted[1]));
}

TEST_CASE("a condition of a device decides in the host") {
  constexpr const char* kDecides = R"(graph @g (%x: f32[4] on device12:0, %p: f32[] on device12:0) {
  %flag: bool[] on device12:0 = gt(%p, 0.0)
  %r: f32[4] on device12:0 = cond(%flag, %x) graph @then (%a: f32[4] on device12:0) {
    %b: f32[4] on device12:0 = neg(%a)
    return %b
  } graph @else (%a: f32[4] on device12:0) {
    %b: f32[4] on device12:0 = mul(%a, %a)
    return %b
  }
  return %r
}
)";
  MockSession session;
  const TestProgram program = session.compile(kDecides);
  const ops::HostTensor x = filled(DType::f32, {4}, 1);
  const DeviceTensor on_x(session, x), r(session, DType::f32, {4});
  for (const float p : {1.0f, -1.0f}) {
    ops::HostTensor number(DType::f32, {});
    number.as<float>()[0] = p;
    const DeviceTensor on_p(session, number);
    require_ok(run(program, {on_x.data(), on_p.data()}, {r.data()}));
    const float v = x.as<float>()[1];
    CHECK(r.values().as<float>()[1] == (p > 0 ? -v : v * v));
  }
}

TEST_CASE("numbers and scalars of the host stand beside a device's tensors, and may change after the run") {
  constexpr const char* kBeside = R"(graph @g [s0: 1..64] (%x: f32[s0] on device12:0, %p: f32[]) {
  %a: f32[s0] on device12:0 = mul(%x, %p)
  %b: f32[s0] on device12:0 = add(%a, s0)
  return %b
}
)";
  MockSession session;
  const TestProgram program = session.compile(kBeside);
  const ops::HostTensor x = filled(DType::f32, {6}, 1);
  ops::HostTensor p(DType::f32, {});
  p.as<float>()[0] = 3;
  const DeviceTensor on_x(session, x), b(session, DType::f32, {6});
  const Held held;
  require_ok(run(program, {on_x.data(), p.data()}, {b.data()}, {6}));
  p.as<float>()[0] = 100;
  CHECK(b.values().as<float>()[2] == x.as<float>()[2] * 3 + 6);
}

TEST_CASE("outputs of another layout are made in a device's memory") {
  constexpr const char* kTurned = R"(graph @g (%x: f32[3, 5]{1, 3} on device12:0) {
  %a: f32[3, 5]{1, 3} on device12:0 = neg(%x)
  return %a
}
)";
  MockSession session;
  const TestProgram program = session.compile(kTurned);
  const ops::HostTensor x = filled(DType::f32, {5, 3}, 1);  // the bytes, column by column
  const DeviceTensor on_x(session, x), a(session, DType::f32, {5, 3});
  require_ok(run(program, {on_x.data()}, {a.data()}));
  const ops::HostTensor got = a.values();
  for (std::size_t i = 0; i < 15; ++i) CHECK(got.as<float>()[i] == -x.as<float>()[i]);
}

TEST_CASE("a copy to a device that nobody serves is refused by name") {
  MockSession session;
  CHECK_THROWS_WITH(session.compile("graph @g (%x: f32[4]) {\n  %a: f32[4] on device13:0 = to_device(%x) {device = \"device13:0\"}\n  return %a\n}\n"),
                    Catch::Contains("no backend serves device13:0, the device of the op to_device (node %a)"));
}

TEST_CASE("a device that is lost is told once, and nothing else is tried on it") {
  // The last test of a session: a lost device stays lost in it.
  MockSession session;
  const TestProgram program = session.compile(kChain);
  const ops::HostTensor x = filled(DType::f32, {64, 8}, 1), y = filled(DType::f32, {8}, 2);
  const DeviceTensor on_x(session, x), on_y(session, y), b(session, DType::f32, {64, 8}), c(session, DType::f32, {64});
  devices().fail_call(1, TENON_DEVICE_LOST);
  REQUIRE(run(program, {on_x.data(), on_y.data()}, {b.data(), c.data()}) == TENON_DEVICE_LOST);
  CHECK_THAT(tenon_last_error()->text, Catch::Contains("told to fail here: execute"));
  CHECK(tenon_last_error()->plugin == std::string("mock_device"));
  CHECK(session.reference.executes == 0);
  REQUIRE(run(program, {on_x.data(), on_y.data()}, {b.data(), c.data()}) == TENON_DEVICE_LOST);
  CHECK_THAT(tenon_last_error()->text, Catch::Contains("told to fail here: execute"));
}
