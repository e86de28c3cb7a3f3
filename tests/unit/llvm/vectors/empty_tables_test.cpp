// An index into an empty tensor is out of range whatever it is: there is nothing to read or write in its place.
#include <algorithm>
#include <exception>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// What a node of a table without rows says. Tables have no memory at all.
std::string refusal(const std::string& node, const std::string& rows, unsigned width, const std::string& before) {
  const std::string table = "f32[" + rows + ", 500000]";
  const ir::Graph graph = llvm_test::parse("graph @main " + std::string(rows == "0" ? "" : "[s0: 0..9] ") + "(%x: " + table + ", %i: i64[2], %j: i64[2, 500000], %v: f32[2, 500000]) {\n  %t: " + table + " = " +
                                           before + "(%x)\n  %y: " + node + "\n  return %y\n}\n");
  llvm_test::Inputs inputs = llvm_test::random_inputs(graph, {{0, 500000}, {2}, {2, 500000}, {2, 500000}});
  inputs.views[0].data = nullptr;
  for (std::size_t k : {1, 2}) std::fill_n(inputs.tensors[k].as<std::int64_t>(), inputs.tensors[k].element_count(), 0);
  try {
    llvm_test::run(graph, inputs.views, {.width = width});
  } catch (const std::exception& e) {
    return e.what();
  }
  return "ran";
}

}  // namespace

TEST_CASE("nothing is read of a table without rows, and nothing written to it") {
  for (const std::string rows : {"0", "s0"}) {
    const std::string table = "f32[" + rows + ", 500000] = ", read = "f32[2, 500000] = ";
    for (const std::string& node : {read + "embedding(%t, %i)", read + "index(%t, %i) {dims = [0]}", read + "index_select(%t, %i) {dim = 0}", read + "gather(%t, %j) {dim = 0}",
                                    table + "index_add(%t, %i, %v) {dim = 0}", table + "index_copy(%t, %i, %v) {dim = 0}", table + "scatter(%t, %j, %v) {dim = 0}",
                                    table + "scatter(%t, %j, %v) {dim = 0, reduce = \"add\"}", table + "index_put(%t, %v, %i) {dims = [0]}"})
      for (unsigned width : {0u, 16u})
        for (const std::string before : {"neg", "erf"}) {
          INFO(node << " with registers of " << width << " bytes, after " << before);
          CHECK(refusal(node, rows, width, before) == "index 0 is out of bounds for dimension 0 with size 0");
        }
  }
}

TEST_CASE("nothing is stored of a tensor without elements, whose strides are 0") {
  const ir::Graph graph = llvm_test::parse("graph @main (%x: f32[2, 24, 9, 0], %g: f32[2, 16, 5, 4]) {\n"
                                           "%y: f32[16, 24, 3, 3] = conv_weight_sum(%x, %g) {before = [1, 1], dilation = [1, 1], groups = 1, kernel = [3, 3], stride = [2, 2]}\n"
                                           "return %y\n}");
  const llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
  CHECK(llvm_test::difference(graph, inputs.views) == std::nullopt);
}
