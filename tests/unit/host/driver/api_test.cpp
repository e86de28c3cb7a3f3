// The functions of tenon/host.h with what no caller should give: each answers with a status and a word.
#include <vector>

#include "../test_backend.h"
#include "catch.h"
#include "core/ir/buffer.h"

using namespace tenon;
using namespace tenon::test;
using Catch::Contains;

namespace {

const char* const kScaled = R"(graph @g [s0: 0..8] (%x: f32[s0, 3]) {
  %y: f32[s0, 3] = neg(%x)
  return %y
}
)";

/// What the last call said; empty where it was taken.
std::string words(std::int32_t code) { return code == TENON_OK ? std::string() : tenon_last_error()->text; }

struct ApiProgram {
  TestBackend backend{"backend"};
  TestSession session{{&backend}};
  TestProgram program{session, parse(kScaled), {}};
  std::int64_t symbols[1] = {1}, sizes[2] = {};
  float in[3] = {1, 2, 3}, out[3] = {};
  const void* inputs[1] = {in};
  void* outputs[1] = {out};

  std::string run(const void* const* given, const std::int64_t* values, void* const* results) {
    TenonRunArgs args{};
    args.struct_size = sizeof args;
    args.inputs = given, args.symbols = values, args.outputs = results;
    return words(tenon_program_run(program.get(), &args));
  }

  std::string compile(const TenonGraph& graph, const char* const* backends = nullptr, const char* const* pipeline = nullptr) {
    TenonCompileRequest request{};
    request.struct_size = sizeof request;
    request.graph = graph;
    request.backends = backends, request.backend_count = backends ? 1 : 0;
    request.pipeline = pipeline, request.pipeline_count = pipeline ? 1 : 0;
    TenonProgram* made = nullptr;
    const std::string said = words(tenon_compile(session.get(), &request, &made));
    tenon_program_release(made);
    return said;
  }
};

}  // namespace

TEST_CASE("runs without lists are refused", "[api]") {
  ApiProgram f;
  CHECK(f.run(f.inputs, f.symbols, f.outputs).empty());
  CHECK(f.out[2] == -3);
  CHECK_THAT(f.run(nullptr, f.symbols, f.outputs), Contains("the list of inputs is null"));
  CHECK_THAT(f.run(f.inputs, nullptr, f.outputs), Contains("the values of the symbols are null"));
  CHECK_THAT(f.run(f.inputs, f.symbols, nullptr), Contains("the list of outputs is null"));
  CHECK_THAT(words(tenon_program_run(f.program.get(), nullptr)), Contains("the program or the arguments of the run are null"));
  CHECK_THAT(words(tenon_program_run(nullptr, nullptr)), Contains("the program or the arguments of the run are null"));
  CHECK_THAT(words(tenon_program_bind(f.program.get(), nullptr, f.sizes)), Contains("the values of the symbols are null"));
  CHECK_THAT(words(tenon_program_bind(f.program.get(), f.symbols, nullptr)), Contains("the place for the sizes is null"));
}

TEST_CASE("sizes that the graph does not hold for are refused", "[api]") {
  ApiProgram f;
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{9}, INT64_MIN, INT64_MAX}) {
    f.symbols[0] = size;
    CHECK_THAT(f.run(f.inputs, f.symbols, f.outputs), Contains("the graph holds for s0 from 0 to 8, not for " + std::to_string(size)));
    CHECK_THAT(words(tenon_program_bind(f.program.get(), f.symbols, f.sizes)), Contains("the graph holds for s0 from 0 to 8"));
  }
  f.symbols[0] = 8;
  CHECK(words(tenon_program_bind(f.program.get(), f.symbols, f.sizes)).empty());
  CHECK(f.sizes[0] == 8);
  TestProgram part(f.session, parse("graph @g [s0: 0..8] (%x: f32[s0 - 3]) {\n  %y: f32[s0 - 3] = neg(%x)\n  return %y\n}\n"), {});
  f.symbols[0] = 2;
  CHECK_THAT(words(tenon_program_bind(part.get(), f.symbols, f.sizes)), Contains("s0 - 3 is -1, and must not be negative"));
}

TEST_CASE("structs that are not filled in are refused", "[api]") {
  ApiProgram f;
  TenonRunArgs args{};
  args.inputs = f.inputs, args.symbols = f.symbols, args.outputs = f.outputs;
  CHECK_THAT(words(tenon_program_run(f.program.get(), &args)), Contains("the struct_size of TenonRunArgs is 0"));
  const TenonCompileRequest request{};
  TenonProgram* program = nullptr;
  CHECK_THAT(words(tenon_compile(f.session.get(), &request, &program)), Contains("the struct_size of TenonCompileRequest is 0"));
  const TenonSessionOptions options{};
  TenonSession* session = nullptr;
  CHECK_THAT(words(tenon_session_create(&options, &session)), Contains("the struct_size of TenonSessionOptions is 0"));
}

TEST_CASE("calls without lists or shapes are refused", "[api]") {
  ApiProgram f;
  std::int64_t shape[2] = {1, 3};
  DLTensor tensor{f.in, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0};
  const DLTensor* tensors[] = {&tensor};
  DLManagedTensorVersioned* result = nullptr;
  CHECK_THAT(words(tenon_program_call(f.program.get(), nullptr, 1, &result, 1)), Contains("is null"));
  CHECK_THAT(words(tenon_program_call(f.program.get(), tensors, 1, nullptr, 1)), Contains("is null"));
  tensor.shape = nullptr;
  CHECK_THAT(words(tenon_program_call(f.program.get(), tensors, 1, &result, 1)), Contains("input %x has no shape"));
}

TEST_CASE("null names and graphs are refused", "[api]") {
  ApiProgram f;
  const std::vector<std::uint8_t> buffer = ir::write_buffer(parse(kScaled));
  const TenonGraph graph{sizeof(TenonGraph), ir::bytes_of(buffer), nullptr, 0}, none{sizeof(TenonGraph), {nullptr, 8}, nullptr, 0};
  const char* const names[] = {nullptr};
  CHECK_THAT(f.compile(none), Contains("graph buffer: it is null"));
  CHECK_THAT(f.compile(graph, names), Contains("name 0 of 1 backends is null"));
  CHECK_THAT(f.compile(graph, nullptr, names), Contains("name 0 of 1 passes is null"));
  TenonCapturedGraph* captured = nullptr;
  CHECK_THAT(words(tenon_passes_run(f.session.get(), &graph, names, 1, &captured)), Contains("name 0 of 1 passes is null"));
  const TenonSessionOptions options{sizeof options, nullptr, names, 1};
  TenonSession* session = nullptr;
  CHECK_THAT(words(tenon_session_create(&options, &session)), Contains("name 0 of 1 overrides is null"));
  tenon_parallel_for(0, 4, 1, nullptr, nullptr);
}
