// The middle of what is padded, rolled or written in part is computed without bounds; its values are those of the judge at any size.
#include "loops/interior.h"

#include <fmt/format.h>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;
using llvm_test::kernel_of;

namespace {

/// The sum of what lies left above, here, and right below of each element of a padded picture.
std::string stencil(const std::string& dtype, int rows, int columns, const std::string& padding) {
  std::string text = fmt::format("graph @main (%x: {0}[{1}, {2}]) {{\n  %p: {0}[{3}, {4}] = pad(%x) {{after = [1, 1], before = [1, 1], {5}}}\n", dtype, rows, columns, rows + 2, columns + 2, padding);
  for (int k = 0; k < 3; ++k)
    text += fmt::format("  %r{0}: {1}[{2}, {4}] = slice(%p) {{dim = 0, end = {5}, start = {0}, step = 1}}\n  %c{0}: {1}[{2}, {3}] = slice(%r{0}) {{dim = 1, end = {6}, start = {0}, step = 1}}\n", k, dtype, rows, columns,
                        columns + 2, rows + k, columns + k);
  return text + fmt::format("  %s: {0}[{1}, {2}] = add(%c0, %c1)\n  %y: {0}[{1}, {2}] = add(%s, %c2)\n  return %y\n}}", dtype, rows, columns);
}

const std::string kPaddings[] = {"mode = \"constant\", value = 3", "mode = \"replicate\"", "mode = \"reflect\"", "mode = \"circular\""};

}  // namespace

TEST_CASE("stencils of padded pictures are the judge's, however few vectors lie inside", "[interior]") {
  for (const std::string dtype : {"f64", "f32", "u8", "i64"})
    for (const std::string& padding : kPaddings)
      for (int columns : {2, 3, 15, 16, 17, 63, 66, 131, 4099})
        for (unsigned width : {16u, 32u, 64u}) {
          INFO(dtype << ", " << padding << ", " << columns << " columns, registers of " << width << " bytes");
          const ir::Graph graph = llvm_test::parse(stencil(dtype, 5, columns, padding));
          CHECK(llvm_test::difference(graph, llvm_test::random_inputs(graph).views, {.width = width}) == std::nullopt);
        }
}

TEST_CASE("inside of a padded picture nothing is read under a mask or at a clamped place", "[interior]") {
  for (const std::string& padding : {kPaddings[0], kPaddings[1]}) {
    codegen::Kernel kernel = kernel_of(stencil("f64", 200, 200, padding));
    const auto interior = codegen::add_interior(kernel);
    REQUIRE(interior);
    for (const auto& range : interior->ranges) {
      CHECK(range.low == ir::Dim(1));
      CHECK(range.high == ir::Dim(199));
    }
    const std::vector<bool> needed = codegen::needed_by(kernel, interior->stages);
    for (codegen::OpId id = 0; id < needed.size(); ++id) {
      const codegen::Operation& op = kernel.operations[id];
      if (!needed[id] || op.kind != codegen::OperationKind::load) continue;
      CHECK_FALSE(op.masked);
      CHECK(codegen::is_contiguous_or_fixed(op.offset, kernel.outer.back().variable));
    }
  }
}

TEST_CASE("inside of a padded picture of three colours rows are runs", "[interior]") {
  codegen::Kernel kernel = kernel_of(R"(graph @main (%x: u8[90, 80, 3]) {
    %p: u8[98, 88, 3] = pad(%x) {after = [4, 4, 0], before = [4, 4, 0], mode = "replicate"}
    %y: f64[98, 88, 3] = _to_copy(%p) {dtype = f64}
    return %y
  })");
  const auto interior = codegen::add_interior(kernel);
  REQUIRE(interior);
  const codegen::Operation* load = nullptr;
  const std::vector<bool> needed = codegen::needed_by(kernel, interior->stages);
  for (codegen::OpId id = 0; id < needed.size(); ++id)
    if (needed[id] && kernel.operations[id].kind == codegen::OperationKind::load) load = &kernel.operations[id];
  REQUIRE(load);
  CHECK(codegen::is_contiguous_or_fixed(load->offset, kernel.outer.back().variable));
}

TEST_CASE("a kernel without bounds has no interior, nor one whose parts are all small", "[interior]") {
  codegen::Kernel plain = kernel_of("graph @main (%x: f32[90, 90]) {\n  %y: f32[90, 90] = exp(%x)\n  return %y\n}");
  CHECK_FALSE(codegen::add_interior(plain));
  codegen::Kernel three = kernel_of(R"(graph @main (%x: f32[90, 30]) {
    %p: f32[90, 90] = pad(%x) {after = [0, 30], before = [0, 30], mode = "constant", value = 0}
    %e: f32[90, 90] = exp(%p)
    return %e
  })");
  const std::size_t operations = three.operations.size();
  CHECK_FALSE(codegen::add_interior(three));
  CHECK(three.operations.size() == operations);
}

TEST_CASE("an index is checked inside where it is checked at all points", "[interior]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[500], %i: i64[200]) {
    %g: f32[200] = index_select(%x, %i) {dim = 0}
    %p: f32[300] = pad(%g) {after = [100], before = [0], mode = "constant", value = 0}
    %n: f32[300] = exp(%p)
    return %n
  })");
  llvm_test::Inputs inputs = llvm_test::random_inputs(graph);
  for (std::int64_t k = 0; k < 200; ++k) inputs.tensors[1].as<std::int64_t>()[k] = k;
  CHECK(llvm_test::difference(graph, inputs.views) == std::nullopt);
  inputs.tensors[1].as<std::int64_t>()[130] = 500;
  CHECK_THROWS_WITH(llvm_test::run(graph, inputs.views), Catch::Contains("index 500 is out of bounds"));
}
