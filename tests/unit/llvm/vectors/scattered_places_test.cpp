// Places that a scatter writes to are checked wherever they come from: from memory, or computed in the kernel itself.
#include <exception>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// What the runs of one node at places made by another say: nothing where it gives what the judge gives.
std::string answer(const std::string& places, const std::string& node, std::int64_t size) {
  const ir::Graph graph = llvm_test::parse("graph @main [s0: -99..99] (%x: f32[4], %v: f32[2], %n: f32[s0]) {\n  %i: i64[2] = " + places + "\n  %y: f32[4] = " + node + "\n  return %y\n}\n");
  const llvm_test::Inputs inputs = llvm_test::random_inputs(graph, {{4}, {2}, {size}});
  try {
    return llvm_test::difference(graph, inputs.views).value_or("");
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("a scatter writes to no place outside its tensor") {
  const auto outside = Catch::Contains("is out of bounds for dimension 0 with size 4");
  for (const std::string node : {"scatter(%x, %i, %v) {dim = 0}", "scatter(%x, %i, %v) {dim = 0, reduce = \"amax\"}", "index_add(%x, %i, %v) {dim = 0}", "index_copy(%x, %i, %v) {dim = 0}",
                                 "index_put(%x, %v, %i) {accumulate = true, dims = [0]}"}) {
    INFO(node);
    CHECK(answer("arange() {dtype = i64, end = 4, start = 2, step = 1}", node, 1).empty());
    CHECK(answer("full(3) {dtype = i64, size = [2]}", node, 1).empty());
    CHECK(answer("full(s0) {dtype = i64, size = [2]}", node, 3).empty());
    CHECK_THAT(answer("arange() {dtype = i64, end = 5, start = 3, step = 1}", node, 1), outside);
    CHECK_THAT(answer("arange() {dtype = i64, end = 93, start = 99, step = -3}", node, 1), outside);
    CHECK_THAT(answer("full(4) {dtype = i64, size = [2]}", node, 1), outside);
    CHECK_THAT(answer("full(-9) {dtype = i64, size = [2]}", node, 1), outside);
    CHECK_THAT(answer("full(s0) {dtype = i64, size = [2]}", node, 90), outside);
  }
}
