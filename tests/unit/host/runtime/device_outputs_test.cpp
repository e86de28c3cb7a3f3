// Outputs of devices for which the caller gives memory when the run comes to them.
#include <algorithm>
#include <cstring>

#include "../devices/mock_session.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// Gives memory of a device for one output, and notes what the run had found in the host when it asked.
struct Asked {
  DeviceTensor* gives;  // null: there is none
  const ops::HostTensor* found = nullptr;
  std::vector<std::uint32_t> outputs = {};
  std::vector<std::vector<std::int64_t>> sizes = {};
  std::vector<std::vector<float>> seen = {};

  std::int32_t run(const TestProgram& program, std::vector<const void*> inputs, std::vector<void*> into, std::vector<std::int64_t> symbols = {}) {
    TenonRunArgs args{};
    args.struct_size = sizeof args;
    args.inputs = inputs.data();
    args.outputs = into.data();
    args.symbols = symbols.data();
    args.context = this;
    args.allocate_output = [](void* context, std::uint32_t output, const std::int64_t* sizes, std::size_t rank) -> void* {
      auto& asked = *static_cast<Asked*>(context);
      asked.outputs.push_back(output);
      asked.sizes.emplace_back(sizes, sizes + rank);
      if (asked.found) asked.seen.emplace_back(asked.found->as<float>(), asked.found->as<float>() + asked.found->element_count());
      return asked.gives ? asked.gives->data() : nullptr;
    };
    return tenon_program_run(program.get(), &args);
  }
};

}  // namespace

TEST_CASE("memory for what a device gives is asked for when it is first written, where there is none", "[devices]") {
  constexpr const char* kThereAndBack = R"(graph @g [s0: 1..64] (%x: f32[s0, 8] on device12:0) {
  %a: f32[s0, 8] on device12:0 = neg(%x)
  %b: f32[s0, 8] = to_device(%a) {device = "cpu:0"}
  %c: f32[s0, 8] = neg(%b)
  %d: f32[s0, 8] on device12:0 = to_device(%c) {device = "device12:0"}
  %e: f32[s0, 8] on device12:0 = add(%d, %x)
  return %c, %e
}
)";
  MockSession session;
  const TestProgram program = session.compile(kThereAndBack);
  const ops::HostTensor x = filled(DType::f32, {5, 8}, 1);
  ops::HostTensor c(DType::f32, {5, 8}), twice(DType::f32, {5, 8});
  for (std::size_t i = 0; i < 40; ++i) twice.as<float>()[i] = 2 * x.as<float>()[i];
  const DeviceTensor on_x(session, x);
  DeviceTensor e(session, DType::f32, {5, 8});
  Asked asked{&e, &c};
  for (int i = 1; i <= 2; ++i) {
    std::memset(c.data(), 0xee, c.byte_count());
    require_ok(asked.run(program, {on_x.data()}, {c.data(), nullptr}, {5}));
    CHECK(same(c, x));
    CHECK(same(e.values(), twice));
    REQUIRE(asked.outputs == std::vector<std::uint32_t>(i, 1));
    CHECK(asked.sizes.back() == std::vector<std::int64_t>{5, 8});
    CHECK(std::equal(asked.seen.back().begin(), asked.seen.back().end(), c.as<float>()));
  }
  asked.gives = nullptr;
  CHECK(asked.run(program, {on_x.data()}, {c.data(), nullptr}, {5}) == TENON_OUT_OF_MEMORY);
  CHECK_THAT(tenon_last_error()->text, Catch::Contains("the caller gave no memory for output 1 (160 bytes)"));
  CHECK(run(program, {on_x.data()}, {c.data(), nullptr}, {5}) == TENON_INVALID_ARGUMENT);
  CHECK_THAT(tenon_last_error()->text, Catch::Contains("output 1 is without memory: run needs allocate_output"));
}

TEST_CASE("memory for all outputs is there before a step writes over the inputs", "[devices]") {
  constexpr const char* kUpdate = R"(graph @g (%x: f32[16] on device12:0) {
  %y: f32[16] on device12:0 = neg(%x)
  %t: f32[16] on device12:1 = to_device(%y) {device = "device12:1"}
  return update %x = %y, %t
}
)";
  MockSession session;
  const TestProgram program = session.compile(kUpdate);
  const ops::HostTensor x = filled(DType::f32, {16}, 1);
  const DeviceTensor on_x(session, x);
  DeviceTensor t(session, DType::f32, {16}, 1);
  Asked asked{nullptr};
  CHECK(asked.run(program, {on_x.data()}, {on_x.data(), nullptr}) == TENON_OUT_OF_MEMORY);
  CHECK(same(on_x.values(), x));
  asked.gives = &t;
  require_ok(asked.run(program, {on_x.data()}, {on_x.data(), nullptr}));
  CHECK(same(on_x.values(), t.values()));
  CHECK(t.values().as<float>()[3] == -x.as<float>()[3]);
}
