// With plugins.check a backend runs on copies and on marked memory: what it does to them is told, and harms nobody.
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "../test_backend.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// The text of a graph of one negation of that dtype.
std::string negation(DType dtype, std::int64_t elements) {
  const std::string type = std::string(name_of(dtype)) + "[" + std::to_string(elements) + "]";
  return "graph @g (%x: " + type + ") {\n  %z: " + type + " = neg(%x)\n  return %z\n}\n";
}

struct Checked {
  TestBackend bad, good{"good"};
  TestSession session;

  explicit Checked(Behaviour behaviour, const char* setting = "plugins.check=true") : bad("bad", std::move(behaviour)), session({&bad, &good}, {setting}) {}

  /// Runs twice and checks that results are right, and inputs as they were; gives what was told of the backend.
  std::string run(DType dtype = DType::f32, std::int64_t elements = 5) {
    const ir::Graph graph = parse(negation(dtype, elements));
    TestProgram program(session, graph, {"bad"});
    std::vector<ops::HostTensor> inputs, kept;
    for (auto* made : {&inputs, &kept}) made->push_back(filled(dtype, {elements}, 3));
    const std::vector<ops::TensorView> views = {kept[0].view()};
    const auto want = ops::evaluate(graph, views);
    for (int call = 0; call < 2; ++call) {
      const auto got = program.call(inputs);
      CHECK(std::memcmp(got[0].data(), want[0].data(), want[0].byte_count()) == 0);
      CHECK(std::memcmp(inputs[0].data(), kept[0].data(), kept[0].byte_count()) == 0);
    }
    const auto events = session.events("execute_failed");
    return events.empty() ? std::string() : nlohmann::json::parse(events.front())["text"].get<std::string>();
  }
};

using Touch = std::function<void(const TenonExecuteArgs&)>;

/// Computes, then does something else.
Behaviour then(Touch touch) {
  return {.execute = [touch](const ir::Graph& graph, const TenonExecuteArgs& args) {
    const std::int32_t code = TestBackend::evaluate(graph, args);
    touch(args);
    return code;
  }};
}

std::byte* bytes_of(const void* memory) { return static_cast<std::byte*>(const_cast<void*>(memory)); }

}  // namespace

TEST_CASE("a right backend passes every check", "[check]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64}) {
    Checked checked({});
    CHECK(checked.run(dtype, 100).empty());
    CHECK(checked.bad.executes == 2);
  }
}

TEST_CASE("inputs are copied with their strides", "[check]") {
  const auto told = [](Behaviour behaviour, std::vector<std::int64_t> strides, std::size_t first) {
    Checked checked(std::move(behaviour));
    const ir::Graph graph = parse(fmt::format("graph @g (%x: f32[2, 3]{{{}, {}}}) {{\n  %z: f32[2, 3] = neg(%x)\n  return %z\n}}\n", strides[0], strides[1]));
    TestProgram program(checked.session, graph, {"bad"});
    std::vector<float> memory(24), results(6);
    std::iota(memory.begin(), memory.end(), 1.0F);
    const std::vector<float> kept = memory;
    const void* inputs[] = {memory.data() + first};
    void* outputs[] = {results.data()};
    TenonRunArgs args{};
    args.struct_size = sizeof args, args.inputs = inputs, args.outputs = outputs;
    require_ok(tenon_program_run(program.get(), &args));
    for (std::int64_t i = 0; i < 6; ++i) CHECK(results[static_cast<std::size_t>(i)] == -kept[static_cast<std::size_t>(static_cast<std::int64_t>(first) + i / 3 * strides[0] + i % 3 * strides[1])]);
    CHECK(memory == kept);
    const auto events = checked.session.events("execute_failed");
    return events.empty() ? std::string() : nlohmann::json::parse(events.front())["text"].get<std::string>();
  };
  using Layout = std::pair<std::vector<std::int64_t>, std::size_t>;
  for (const auto& [strides, first] : {Layout{{-4, -1}, 12}, {{8, -2}, 5}, {{1, 7}, 2}, {{0, 1}, 3}}) {
    CHECK(told({}, strides, first).empty());
    CHECK_THAT(told(then([](const TenonExecuteArgs& args) { bytes_of(args.inputs[0])[1] ^= std::byte{1}; }), strides, first), Catch::Contains("it wrote into its input %x"));
  }
}

TEST_CASE("a write into an input is told and undone", "[check]") {
  Checked checked(then([](const TenonExecuteArgs& args) { bytes_of(args.inputs[0])[6] ^= std::byte{1}; }));
  CHECK_THAT(checked.run(), Catch::Contains("'bad'") && Catch::Contains("it wrote into its input %x"));
  CHECK(checked.bad.executes == 1);
}

TEST_CASE("writes around inputs, outputs and workspace are told", "[check]") {
  CHECK_THAT(Checked(then([](const TenonExecuteArgs& args) { bytes_of(args.inputs[0])[20] = std::byte{0}; })).run(), Catch::Contains("outside of its input %x"));
  CHECK_THAT(Checked(then([](const TenonExecuteArgs& args) { bytes_of(args.outputs[0])[20] = std::byte{0}; })).run(), Catch::Contains("outside of its output %z"));
  CHECK_THAT(Checked(then([](const TenonExecuteArgs& args) { bytes_of(args.outputs[0])[-1] = std::byte{0}; })).run(), Catch::Contains("outside of its output %z"));
  Behaviour behaviour = then([](const TenonExecuteArgs& args) { bytes_of(args.workspace)[100] = std::byte{0}; });
  behaviour.workspace = [](const std::int64_t*, std::size_t& bytes) { return bytes = 100, std::int32_t{TENON_OK}; };
  CHECK_THAT(Checked(behaviour).run(), Catch::Contains("outside of its workspace"));
}

TEST_CASE("an element that is not written is told, of any dtype", "[check]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64}) {
    Checked checked({.execute = [](const ir::Graph& graph, const TenonExecuteArgs& args) {
      std::vector<std::byte> last(size_of(graph.type(graph.outputs()[0].value).dtype));
      std::byte* end = bytes_of(args.outputs[0]) + 4 * last.size();
      std::memcpy(last.data(), end, last.size());
      const std::int32_t code = TestBackend::evaluate(graph, args);
      std::memcpy(end, last.data(), last.size());
      return code;
    }});
    CHECK_THAT(checked.run(dtype), Catch::Contains("did not write element 4 of its output %z"));
  }
}

TEST_CASE("bytes that happen to be the marks are no fault", "[check]") {
  const ir::Graph graph = parse("graph @g (%x: u8[4096]) {\n  %z: u8[4096] = add(%x, %x)\n  return %z\n}\n");
  Checked checked({});
  TestProgram program(checked.session, graph, {"bad"});
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(ops::HostTensor(DType::u8, {4096}));
  std::iota(inputs[0].as<std::uint8_t>(), inputs[0].as<std::uint8_t>() + 4096, std::uint8_t{0});
  const auto got = program.call(inputs);
  for (int i = 0; i < 4096; ++i) REQUIRE(got[0].as<std::uint8_t>()[i] == static_cast<std::uint8_t>(2 * i));
  CHECK(checked.session.events("execute_failed").empty());
}

TEST_CASE("without the setting nothing is copied", "[check]") {
  const void* seen = nullptr;
  Checked checked(then([&](const TenonExecuteArgs& args) { seen = args.inputs[0]; }), "plugins.check=false");
  const ir::Graph graph = parse(negation(DType::f32, 5));
  TestProgram program(checked.session, graph, {"bad"});
  std::vector<ops::HostTensor> inputs;
  inputs.push_back(filled(DType::f32, {5}, 3));
  program.call(inputs);
  CHECK(seen == inputs[0].data());
}
