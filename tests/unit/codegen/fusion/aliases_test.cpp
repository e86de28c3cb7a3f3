// Outputs that are written over an input: which ones a program permits, and that the results are the same.
#include <algorithm>
#include <cstring>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// Runs a program, each permitted output over its input (an input takes one), and compares with a run beside them; gives the permits.
Pairs run_in_place(const std::string& text) {
  const ir::Graph graph = llvm_test::parse(text);
  auto [tensors, views] = llvm_test::random_inputs(graph);
  const auto program = llvm_test::compile(graph);
  std::vector<ops::HostTensor> expected = llvm_test::run(*program, graph, views);
  Pairs permits;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (auto& t : tensors) inputs.push_back(t.data());
  std::vector<ops::HostTensor> results = llvm_test::run(*program, graph, views);
  for (auto& r : results) outputs.push_back(r.data());
  std::vector<bool> taken(inputs.size(), false);
  for (const TenonAliasPermit& permit : program->aliases()) {
    permits.emplace_back(permit.output, permit.input);
    if (outputs[permit.output] == results[permit.output].data() && !taken[permit.input]) outputs[permit.output] = tensors[permit.input].data(), taken[permit.input] = true;
  }
  std::vector<std::byte> workspace(program->workspace_bytes({}) + 64);
  TenonExecuteArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs.data(), args.outputs = outputs.data();
  args.workspace = workspace.data() + (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64);
  program->execute(args);
  INFO(text);
  for (std::size_t i = 0; i < outputs.size(); ++i) CHECK(std::memcmp(outputs[i], expected[i].data(), expected[i].byte_count()) == 0);
  std::ranges::sort(permits);
  return permits;
}

}  // namespace

TEST_CASE("steps of an optimizer are written over their parameters", "[aliases]") {
  CHECK(run_in_place(R"(graph @main (%p: f32[40, 30], %g: f32[40, 30], %q: f32[1200], %h: f32[1200]) {
    %a: f32[40, 30] = mul(%g, 0.5)
    %b: f32[40, 30] = sub(%p, %a)
    %c: f32[1200] = mul(%h, 0.5)
    %d: f32[1200] = sub(%q, %c)
    return update %p = %b, update %q = %d
  })") == Pairs{{0, 0}, {0, 1}, {1, 2}, {1, 3}});
}

TEST_CASE("a parameter and what its step remembers are written over at once", "[aliases]") {
  const Pairs permits = run_in_place(R"(graph @main (%p: f32[1000], %m: f32[1000], %g: f32[1000]) {
    %s: f32[1000] = mul(%m, 0.9)
    %n: f32[1000] = add(%s, %g)
    %k: f32[1000] = tanh(%p)
    %r: f32[1000] = sub(%k, %n)
    return update %m = %n, update %p = %r
  })");
  CHECK(std::ranges::find(permits, std::pair<std::uint32_t, std::uint32_t>{0, 1}) != permits.end());
  CHECK(std::ranges::find(permits, std::pair<std::uint32_t, std::uint32_t>{1, 0}) != permits.end());
}

TEST_CASE("what follows a product is written over a parameter, also in front of other products", "[aliases]") {
  const Pairs permits = run_in_place(R"(graph @main (%w: f32[64, 48], %x: f32[20, 64], %g: f32[20, 48], %u: f32[48, 32]) {
    %t: f32[64, 20] = permute(%x) {dims = [1, 0]}
    %d: f32[64, 48] = mm(%t, %g)
    %s: f32[64, 48] = mul(%d, 0.1)
    %n: f32[64, 48] = sub(%w, %s)
    %y: f32[20, 32] = mm(%g, %u)
    return update %w = %n, %y
  })");
  CHECK(std::ranges::find(permits, std::pair<std::uint32_t, std::uint32_t>{0, 0}) != permits.end());
}

TEST_CASE("what a reduction in parts gives is written over what it updates", "[aliases]") {
  CHECK(run_in_place(R"(graph @main (%x: f32[700, 700], %m: f32[], %v: f32[]) {
    %s: f32[] = sum(%x) {dim = [0, 1], keepdim = false}
    %a: f32[] = mul(%m, 0.9)
    %n: f32[] = add(%a, %s)
    %b: f32[] = mul(%v, 0.5)
    %w: f32[] = add(%b, %s)
    return update %m = %n, update %v = %w
  })") == Pairs{{0, 1}, {0, 2}, {1, 1}, {1, 2}});
}

TEST_CASE("what a kernel gives before it goes over its rows again is written over what that does not read", "[aliases]") {
  const Pairs permits = run_in_place(R"(graph @main (%x: f32[40, 30], %m: f32[40, 1], %s: f32[40, 1]) {
    %t: f32[40, 1] = sum(%x) {dim = [1], keepdim = true}
    %a: f32[40, 1] = mul(%m, 0.9)
    %n: f32[40, 1] = add(%a, %t)
    %u: f32[40, 1] = sub(%s, %t)
    %c: f32[40, 30] = sub(%x, %t)
    %y: f32[40, 30] = mul(%c, %s)
    return %y, update %m = %n, update %s = %u
  })");
  CHECK(std::ranges::find(permits, std::pair<std::uint32_t, std::uint32_t>{1, 1}) != permits.end());
  CHECK(std::ranges::none_of(permits, [](const auto& permit) { return permit.second == 2; }));
}

TEST_CASE("numbers that are checked come before what is written over parameters", "[aliases]") {
  const Pairs permits = run_in_place(R"(graph @main (%p: f32[40, 30], %g: f32[40, 30], %n: f32[], %q: f32[1200], %h: f32[1200], %m: f32[]) {
    %i: f32[] = exp(%n)
    %t: bool[] = gt(%i, 0.0)
    %k: f32[] = checked(%i, %t)
    %a: f32[40, 30] = mul(%g, %k)
    %b: f32[40, 30] = sub(%p, %a)
    %j: f32[] = exp(%m)
    %u: bool[] = gt(%j, 0.0)
    %l: f32[] = checked(%j, %u)
    %c: f32[1200] = mul(%h, %l)
    %d: f32[1200] = sub(%q, %c)
    return update %p = %b, update %q = %d
  })");
  CHECK(permits == Pairs{{0, 0}, {0, 1}, {1, 3}, {1, 4}});
}

TEST_CASE("two inputs change places over each other", "[aliases]") {
  run_in_place(R"(graph @main (%x: f32[500], %y: f32[500]) {
    %a: f32[500] = mul(%y, 2)
    %b: f32[500] = mul(%x, 3)
    return update %x = %a, update %y = %b
  })");
}

TEST_CASE("what is read again, elsewhere or by others is not written over", "[aliases]") {
  CHECK(run_in_place(R"(graph @main (%x: f32[20, 20]) {
    %t: f32[20, 20] = permute(%x) {dims = [1, 0]}
    %y: f32[20, 20] = add(%x, %t)
    return update %x = %y
  })").empty());
  CHECK(run_in_place(R"(graph @main (%x: f32[20, 20]) {
    %y: f32[20, 20] = neg(%x)
    return %x, update %x = %y
  })").empty());
  CHECK(run_in_place(R"(graph @main (%x: f32[20, 64], %z: f32[64, 64]) {
    %y: f32[20, 64] = neg(%x)
    %m: f32[20, 64] = mm(%x, %z)
    return update %x = %y, %m
  })").empty());
}

TEST_CASE("nothing is written over in front of an index that may be out of range", "[aliases]") {
  CHECK(run_in_place(R"(graph @main (%x: f32[20], %i: i64[4], %w: f32[9, 5]) {
    %y: f32[20] = neg(%x)
    %j: i64[4] = remainder(%i, 9)
    %r: f32[4, 5] = index_select(%w, %j) {dim = 0}
    return update %x = %y, %r
  })").empty());
}
