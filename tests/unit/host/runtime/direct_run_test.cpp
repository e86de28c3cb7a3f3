// Plans of one step run on the caller's own pointers from their second run on; what fails there goes on as it does elsewhere.
#include <optional>
#include <thread>

#include "../test_backend.h"
#include "catch.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char* kNegation = "graph @g (%x: f32[3]) {\n  %z: f32[3] = neg(%x)\n  return %z\n}\n";

/// A program of two backends, of which the second one takes over.
struct Negation {
  TestBackend backend{"backend"}, other{"other"};
  std::optional<TestSession> session;
  std::optional<TestProgram> program;

  Negation() {
    session.emplace(std::vector<TestBackend*>{&backend, &other});
    program.emplace(*session, parse(kNegation), std::vector<std::string>{"backend"});
  }

  std::vector<float> run(const std::vector<float>& given) {
    std::vector<float> result(given.size());
    const void* inputs[] = {given.data()};
    void* outputs[] = {result.data()};
    TenonRunArgs args{};
    args.struct_size = sizeof args;
    args.inputs = inputs, args.outputs = outputs;
    require_ok(tenon_program_run(program->get(), &args));
    return result;
  }
};

}  // namespace

TEST_CASE("runs on the caller's pointers give what the first run gives", "[direct]") {
  Negation negation;
  for (float n : {1.f, 2.f, 3.f}) CHECK(negation.run({n, 0, 5}) == std::vector<float>{-n, 0, -5});
  CHECK(negation.backend.executes == 3);
}

TEST_CASE("a step that fails later is taken over, and ran once", "[direct]") {
  Negation negation;
  negation.run({1, 2, 3});
  negation.run({1, 2, 3});
  negation.backend.behaviour.execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_PLUGIN_FAILED}; };
  CHECK(negation.run({4, 5, 6}) == std::vector<float>{-4, -5, -6});
  CHECK(negation.backend.executes == 3);
  CHECK(negation.session->events("execute_failed").size() == 1);
  negation.run({4, 5, 6});
  CHECK(negation.backend.executes == 3);  // it is not asked again
}

TEST_CASE("memory that a step may not ask for is refused in every run", "[direct]") {
  Negation negation;
  negation.run({1, 2, 3});
  negation.backend.behaviour.execute = [](const ir::Graph& group, const TenonExecuteArgs& args) {
    const std::int64_t sizes[] = {3};
    CHECK(args.call->allocate_output(args.call->self, 0, sizes, 1) == nullptr);
    return TestBackend::evaluate(group, args);
  };
  CHECK(negation.run({4, 5, 6}) == std::vector<float>{-4, -5, -6});
  const auto events = negation.session->events("execute_failed");
  REQUIRE(events.size() == 1);
  CHECK(events[0].find("whose memory it was given") != std::string::npos);
}

TEST_CASE("runs on several threads are counted one by one", "[direct]") {
  Negation negation;
  negation.run({1, 2, 3});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) negation.run({1, 2, 3});
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(negation.session->query("statistics").find("\"runs\":2001") != std::string::npos);
}
