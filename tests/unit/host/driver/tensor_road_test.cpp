// tenon_program_call: what it takes, what it refuses, and in which words.
#include <cstring>
#include <thread>

#include "../test_backend.h"
#include "catch.h"
#include "core/abi/dlpack_types.h"

using namespace tenon;
using namespace tenon::test;
using Catch::Contains;
using Sizes = std::vector<std::int64_t>;

namespace {

const char* const kGraph = R"(graph @g [s0: 0..8] (%x: f32[s0, 3], %y: f32[3]) {
  %z: f32[s0, 3] = add(%x, %y)
  return %z
}
)";

/// A program on a well-behaved backend, and raw access to its call.
struct Fixture {
  explicit Fixture(const char* text) : session({&backend}), program(session, parse(text), {}) {}

  void call(std::vector<DLTensor> inputs, std::size_t results = 1) {
    std::vector<const DLTensor*> pointers;
    for (const DLTensor& input : inputs) pointers.push_back(&input);
    std::vector<DLManagedTensorVersioned*> outputs(results, nullptr);
    require_ok(tenon_program_call(program.get(), pointers.data(), pointers.size(), outputs.data(), outputs.size()));
    for (DLManagedTensorVersioned* output : outputs) {
      const DLTensor& t = output->dl_tensor;
      shape.assign(t.shape, t.shape + t.ndim);
      ops::HostTensor copy(*dtype_of(t.dtype), shape);
      if (copy.byte_count()) std::memcpy(copy.data(), t.data, copy.byte_count());
      values.assign(copy.as<float>(), copy.as<float>() + copy.element_count());
      CHECK(reinterpret_cast<std::uintptr_t>(t.data) % 64 == 0);
      output->deleter(output);
    }
  }

  TestBackend backend{"backend"};
  TestSession session;
  TestProgram program;
  Sizes shape;
  std::vector<float> values;
};

struct Input {
  Sizes shape, strides;
  DLTensor tensor{};
  Input(float* data, Sizes sizes, Sizes steps = {}, std::uint64_t byte_offset = 0) : shape(std::move(sizes)), strides(std::move(steps)) {
    tensor = {data, {kDLCPU, 0}, static_cast<std::int32_t>(shape.size()), {kDLFloat, 32, 1}, shape.data(), strides.empty() ? nullptr : strides.data(), byte_offset};
  }
  Input(const Input&) = delete;
};

float kData[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
float kOnes[] = {10, 20, 30};

}  // namespace

TEST_CASE("layouts of every kind are taken", "[tensor_road]") {
  Fixture f(kGraph);
  Input y(kOnes, {3});
  Input row_major(kData, {2, 3}), transposed(kData, {2, 3}, {1, 2}), backwards(kData + 5, {2, 3}, {-3, -1}), repeated(kData, {2, 3}, {0, 1}), offset(kData, {2, 3}, {}, 4);
  f.call({row_major.tensor, y.tensor});
  CHECK(f.values == std::vector<float>{10, 21, 32, 13, 24, 35});
  f.call({transposed.tensor, y.tensor});
  CHECK(f.values == std::vector<float>{10, 22, 34, 11, 23, 35});
  f.call({backwards.tensor, y.tensor});
  CHECK(f.values == std::vector<float>{15, 24, 33, 12, 21, 30});
  f.call({repeated.tensor, y.tensor});
  CHECK(f.values == std::vector<float>{10, 21, 32, 10, 21, 32});
  f.call({offset.tensor, y.tensor});
  CHECK(f.values == std::vector<float>{11, 22, 33, 14, 25, 36});
}

TEST_CASE("empty tensors are taken, with or without memory", "[tensor_road]") {
  Fixture f(kGraph);
  Input empty(nullptr, {0, 3}), y(kOnes, {3});
  f.call({empty.tensor, y.tensor});
  CHECK(f.shape == Sizes{0, 3});
}

TEST_CASE("tensors without dimensions are taken", "[tensor_road]") {
  Fixture f("graph @g (%x: f32[]) {\n  %z: f32[] = add(%x, %x)\n  return %z\n}\n");
  Input x(kData + 7, {});
  f.call({x.tensor});
  CHECK(f.shape.empty());
  CHECK(f.values == std::vector<float>{14});
}

TEST_CASE("what does not fit is refused by name", "[tensor_road]") {
  Fixture f(kGraph);
  Input x(kData, {2, 3}), y(kOnes, {3}), wide(kData, {2, 4}), flat(kData, {6}), many(kData, {9, 3});
  CHECK_THROWS_WITH(f.call({x.tensor}), Contains("takes 2 inputs; given: 1"));
  CHECK_THROWS_WITH(f.call({x.tensor, y.tensor}, 2), Contains("gives 1 results"));
  CHECK_THROWS_WITH(f.call({wide.tensor, y.tensor}), Contains("%x has the shape [2, 4]") && Contains("[2, 3]"));
  CHECK_THROWS_WITH(f.call({flat.tensor, y.tensor}), Contains("%x has 1 dimensions; the program takes 2"));
  CHECK_THROWS_WITH(f.call({many.tensor, y.tensor}), Contains("s0 from 0 to 8"));
  Input doubles(kData, {2, 3}), odd(kData, {2, 3}), far(kData, {2, 3}), none(nullptr, {2, 3});
  doubles.tensor.dtype = {kDLFloat, 64, 1};
  CHECK_THROWS_WITH(f.call({doubles.tensor, y.tensor}), Contains("%x is f64; the program takes f32"));
  odd.tensor.dtype = {kDLUInt, 16, 1};
  CHECK_THROWS_WITH(f.call({odd.tensor, y.tensor}), Contains("%x is uint16, which Tenon does not know"));
  far.tensor.device = {kDLCUDA, 1};
  CHECK_THROWS_WITH(f.call({far.tensor, y.tensor}), Contains("%x is on device2:1; the program takes it on cpu"));
  far.tensor.device = {static_cast<DLDeviceType>(77), 0};
  CHECK_THROWS_WITH(f.call({far.tensor, y.tensor}), Contains("%x is on device77:0"));
  CHECK_THROWS_WITH(f.call({none.tensor, y.tensor}), Contains("%x has no memory"));
  Input crooked(kData, {2, 3}, {}, 2);
  CHECK_THROWS_WITH(f.call({crooked.tensor, y.tensor}), Contains("not aligned"));
}

TEST_CASE("updates are written into their inputs, whatever their layout", "[tensor_road]") {
  Fixture f("graph @g (%x: f32[2, 3], %y: f32[3]) {\n  %z: f32[2, 3] = add(%x, %y)\n  %n: f32[2, 3] = neg(%x)\n  return %n, update %x = %z\n}\n");
  float data[] = {0, 1, 2, 3, 4, 5};
  Input x(data, {2, 3}, {1, 2}), y(kOnes, {3});
  f.call({x.tensor, y.tensor});
  CHECK(f.values == std::vector<float>{0, -2, -4, -1, -3, -5});
  CHECK(std::vector<float>(data, data + 6) == std::vector<float>{10, 11, 22, 23, 34, 35});
  Input shared(data, {2, 3}, {0, 1});
  CHECK_THROWS_WITH(f.call({shared.tensor, y.tensor}), Contains("%x is written to, and its elements share memory"));
}

TEST_CASE("an update may swap two inputs", "[tensor_road]") {
  Fixture f("graph @g (%x: f32[3], %y: f32[3]) {\n  return update %x = %y, update %y = %x\n}\n");
  float a[] = {1, 2, 3}, b[] = {4, 5, 6};
  Input x(a, {3}), y(b, {3});
  f.call({x.tensor, y.tensor}, 0);
  CHECK(std::vector<float>(a, a + 3) == std::vector<float>{4, 5, 6});
  CHECK(std::vector<float>(b, b + 3) == std::vector<float>{1, 2, 3});
}

TEST_CASE("a failed run writes no update", "[tensor_road]") {
  Fixture f("graph @g (%x: f32[3]) {\n  %z: f32[3] = neg(%x)\n  %w: f32[3] = tanh(%z)\n  return %w, update %x = %z\n}\n");
  f.backend.behaviour.execute = [&](const ir::Graph& graph, const TenonExecuteArgs& args) {
    TestBackend::evaluate(graph, args);
    f.backend.report(TENON_INVALID_ARGUMENT, "index 7 is out of range");
    return std::int32_t{TENON_INVALID_ARGUMENT};
  };
  float data[] = {1, 2, 3};
  Input x(data, {3});
  CHECK_THROWS_WITH(f.call({x.tensor}), Contains("index 7 is out of range"));
  CHECK(std::vector<float>(data, data + 3) == std::vector<float>{1, 2, 3});
  const TenonFailure* failure = tenon_last_error();
  CHECK(failure->phase == TENON_PHASE_EXECUTE);
  CHECK(std::string(failure->plugin) == "backend");
}

TEST_CASE("outputs may be inputs, constants, literals, and the same value twice", "[tensor_road]") {
  Fixture f("graph @g (%x: f32[3]) {\n  const @k: f32[3] = [7, 8, 9]\n  %c: f32[3] = constant() {index = @k}\n  %z: f32[3] = add(%x, %c)\n  return %z, %z, %x, %c\n}\n");
  const ops::HostTensor input = filled(DType::f32, {3}, 2);
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {3}, 2));
  const std::vector<ops::HostTensor> got = f.program.call(inputs);
  REQUIRE(got.size() == 4);
  for (int i = 0; i < 3; ++i) {
    const float x = input.as<float>()[i], k = 7.0f + static_cast<float>(i);
    CHECK(got[0].as<float>()[i] == x + k);
    CHECK(got[1].as<float>()[i] == x + k);
    CHECK(got[2].as<float>()[i] == x);
    CHECK(got[3].as<float>()[i] == k);
  }
}

TEST_CASE("layouts that types state are given to those who take them, and made for the others", "[tensor_road]") {
  const char* const text = "graph @g (%x: f32[2, 3]{1, 2}) {\n  %z: f32[2, 3] = neg(%x)\n  return %z\n}\n";
  for (bool strided : {true, false}) {
    TestBackend backend("backend");
    if (!strided) backend.behaviour.flags &= ~TENON_STRIDED_INPUTS;
    TestBackend taker("taker", backend.behaviour);
    TestSession session({&taker});
    TestProgram program(session, parse(text), {});
    std::vector<ops::HostTensor> inputs;
    inputs.push_back(filled(DType::f32, {2, 3}, 2));
    const std::vector<ops::HostTensor> got = program.call(inputs);
    for (int i = 0; i < 6; ++i) CHECK(got[0].as<float>()[i] == -inputs[0].as<float>()[i]);
    CHECK_THAT(program.query("plan"), Contains(strided ? "\"conversions\":0" : "\"conversions\":1"));
    CHECK((session.query("statistics").find("\"conversions\":1") == std::string::npos) == strided);
  }
}

TEST_CASE("many threads call one program", "[tensor_road][threads]") {
  TestBackend odd("odd", {.claim = [](const GraphView& graph, const TenonClaims& claims) {
    for (NodeView node : graph.nodes()) {
      const std::uint32_t id = node.id();
      if (id % 2) claims.claim(claims.self, &id, 1);
    }
    return std::int32_t{TENON_OK};
  }});
  odd.behaviour.flags = TENON_DYNAMIC_SHAPES;  // neither compile nor execute is re-entrant
  TestBackend one_by_one("one_by_one", odd.behaviour), fallback("fallback");
  TestSession session({&one_by_one, &fallback});
  TestProgram program(session, parse(R"(graph @g [s0: 1..100] (%x: f32[s0]) {
  %a: f32[s0] = neg(%x)
  %b: f32[s0] = mul(%a, %x)
  %c: f32[s0] = add(%b, %a)
  %d: f32[s0] = sub(%c, %x)
  return %d
}
)"), {"one_by_one"});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 30; ++i) {
        std::vector<ops::HostTensor> inputs;
        inputs.push_back(filled(DType::f32, {static_cast<std::int64_t>(1 + (t + i) % 40)}, t + i));
        const std::vector<ops::HostTensor> got = program.call(inputs);
        for (std::int64_t k = 0; k < inputs[0].element_count(); ++k) {
          const float x = inputs[0].as<float>()[k];
          if (got[0].as<float>()[k] != -x * x + -x - x) ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(one_by_one.most_running == 1);
}

TEST_CASE("an output that states its layout comes in it") {
  Fixture f("graph @g (%x: f32[2, 3]) {\n  %y: f32[2, 3] = add(%x, 1.0)\n  %t: f32[3, 2]{1, 3} = permute(%y) {dims = [1, 0]}\n  return %t\n}\n");
  const Input x(kData, {2, 3});
  const DLTensor* inputs[] = {&x.tensor};
  DLManagedTensorVersioned* result = nullptr;
  require_ok(tenon_program_call(f.program.get(), inputs, 1, &result, 1));
  const DLTensor& t = result->dl_tensor;
  REQUIRE((t.strides[0] == 1 && t.strides[1] == 3));
  for (int i = 0; i < 6; ++i) CHECK(static_cast<const float*>(t.data)[i] == kData[i] + 1);
  result->deleter(result);
}
