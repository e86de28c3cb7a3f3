// Parts of complex numbers: which points one iteration computes, and that the results are those of the judge.
#include "catch.h"
#include "decisions/cpu_schedule.h"
#include "unit/llvm/running.h"

using namespace tenon;
using llvm_test::kernel_of;

namespace {

std::string rotary(const std::string& storage, int positions, int pairs) {
  return fmt::format(R"(graph @main (%x: {0}[{1}, {3}], %t: c64[{1}, {2}]) {{
    %f: f32[{1}, {3}] = _to_copy(%x) {{dtype = f32}}
    %s: f32[{1}, {2}, 2] = reshape(%f) {{shape = [{1}, {2}, 2]}}
    %z: c64[{1}, {2}] = view_as_complex(%s)
    %a: f32[{1}, {2}] = real(%z)
    %b: f32[{1}, {2}] = imag(%z)
    %c: f32[{1}, {2}] = real(%t)
    %d: f32[{1}, {2}] = imag(%t)
    %ac: f32[{1}, {2}] = mul(%a, %c)
    %bd: f32[{1}, {2}] = mul(%b, %d)
    %ad: f32[{1}, {2}] = mul(%a, %d)
    %bc: f32[{1}, {2}] = mul(%b, %c)
    %r: f32[{1}, {2}] = sub(%ac, %bd)
    %i: f32[{1}, {2}] = add(%ad, %bc)
    %p: c64[{1}, {2}] = complex(%r, %i)
    %v: f32[{1}, {2}, 2] = view_as_real(%p)
    %w: f32[{1}, {3}] = reshape(%v) {{shape = [{1}, {3}]}}
    %y: {0}[{1}, {3}] = _to_copy(%w) {{dtype = {0}}}
    return %y
  }})", storage, positions, pairs, 2 * pairs);
}

}  // namespace

TEST_CASE("an iteration computes both parts of what was a complex number", "[pairs]") {
  for (const char* storage : {"bf16", "f16", "f32"})
    for (unsigned width : {16u, 32u, 64u}) {
      const codegen::Kernel kernel = kernel_of(rotary(storage, 5, 37), {.width = width});
      REQUIRE(kernel.stages.size() == 1);
      CHECK(kernel.stages[0].stores.size() == 2);
      CHECK(kernel.outer.back().extent.constant() == 5 * 37);
    }
}

TEST_CASE("an iteration computes both rows that were stacked along a last dimension of two", "[pairs]") {
  const codegen::Kernel kernel = kernel_of(R"(graph @main (%x: f32[6, 40], %y: f32[6, 40]) {
    %n: f32[6, 40] = neg(%y)
    %s: f32[6, 40, 2] = stack(%n, %x) {dim = 2}
    %r: f32[6, 80] = reshape(%s) {shape = [6, 80]}
    %z: f32[6, 80] = mul(%r, 3)
    return %z
  })");
  CHECK(kernel.stages[0].stores.size() == 2);
  CHECK(kernel.outer.back().extent.constant() == 6 * 40);
}

TEST_CASE("complex elements are read and written as pairs", "[pairs]") {
  for (const char* type : {"c64", "c128"})
    for (unsigned width : {16u, 32u, 64u})
      for (int count : {1, 7, 64, 131}) {
        const std::string real = type == std::string("c64") ? "f32" : "f64";
        const codegen::Kernel kernel = kernel_of(fmt::format(R"(graph @main (%x: {0}[3, {2}], %y: {0}[{2}]) {{
          %a: {1}[3, {2}] = real(%x)
          %b: {1}[{2}] = imag(%y)
          %s: {1}[3, {2}] = mul(%a, %b)
          %i: {1}[3, {2}] = imag(%x)
          %z: {0}[3, {2}] = complex(%i, %s)
          return %z
        }})", type, real, count), {.width = width});
        CHECK(kernel.stages[0].stores.size() == 2);
        for (const codegen::Buffer& b : kernel.buffers) CHECK_FALSE(is_complex(b.dtype));
      }
}

TEST_CASE("complex elements are moved: turned round, joined, chosen and reversed", "[pairs]") {
  kernel_of(R"(graph @main (%x: c64[9, 21]) {
    %t: c64[21, 9] = permute(%x) {dims = [1, 0]}
    %f: c64[21, 9] = flip(%t) {dims = [1]}
    return %f
  })");
  kernel_of(R"(graph @main (%x: c64[4, 21], %y: c64[4, 12], %m: bool[4, 33]) {
    %c: c64[4, 33] = cat(%x, %y) {dim = 1}
    %p: c64[4, 33] = flip(%c) {dims = [0]}
    %w: c64[4, 33] = where(%m, %p, %c)
    return %w
  })");
}
