// Every second to fifth element of a tensor, up to its last one, in registers of any width.
#include <fmt/format.h>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

TEST_CASE("elements that lie some places apart are those of the judge", "[spaced]") {
  for (const char* dtype : {"u8", "bf16", "f32", "f64", "i64"})
    for (int distance : {2, 3, 4, 5})
      for (int count : {1, 7, 16, 63, 64, 65, 300})
        for (int start : {0, distance - 1})
          for (unsigned width : {16u, 32u, 64u}) {
            INFO(dtype << ", " << count << " elements " << distance << " apart from " << start << " on, registers of " << width << " bytes");
            const ir::Graph graph = llvm_test::parse(fmt::format(R"(graph @main (%x: {0}[{1}]) {{
              %s: {0}[{2}] = slice(%x) {{dim = 0, end = {1}, start = {3}, step = {4}}}
              %y: {0}[{2}] = add(%s, %s)
              return %y
            }})", dtype, (count - 1) * distance + 1 + start, count, start, distance));
            CHECK(llvm_test::difference(graph, llvm_test::random_inputs(graph).views, {.width = width}) == std::nullopt);
          }
}
