// Where values lie in the workspace, and when what has lain there may be written over.
#include "places/placement.h"

#include <set>
#include <string>
#include <string_view>

#include "catch.h"
#include "decisions/cpu_machine.h"
#include "graph/planning.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

constexpr int kTransposes = 6;

/// Transposes one of the other, and what is kept beside them.
ir::Graph transposes(int kept) {
  std::string text = fmt::format("graph @main (%x: f32[32, 32], %z: f32[{0}, 32]) {{\n  %kept: f32[32, {0}] = permute(%z) {{dims = [1, 0]}}\n", kept), last = "x";
  for (int i = 0; i < kTransposes; ++i) {
    text += fmt::format("  %t{}: f32[32, 32] = permute(%{}) {{dims = [1, 0]}}\n", i, last);
    last = fmt::format("t{}", i);
  }
  return llvm_test::parse(text + fmt::format("  %y: f32[32, 32] = neg(%{})\n  %k: f32[32, {}] = neg(%kept)\n  return %y, %k\n}}", last, kept));
}

struct Layout {
  std::size_t places;  // of the transposes
  std::size_t bytes;
};

Layout layout_of(int kept, std::uint32_t rest) {
  ir::Graph graph = transposes(kept);
  const codegen::Plan plan = codegen::plan_graph(graph, llvm_backend::CpuMachine(16), {.fuse = false});
  const codegen::Placement placement(graph, plan, rest);
  std::set<std::size_t> places;
  for (const ir::NodeId id : graph.nodes())
    if (const ir::ValueId value = graph.node(id).results[0]; graph.value(value).name.starts_with("t")) places.insert(placement.fixed_offsets()[placement[value].index]);
  return {places.size(), placement.workspace_bytes({})};
}

}  // namespace

TEST_CASE("values that are never alive together share bytes", "[places]") { CHECK(layout_of(4096, 0).places == 2); }

TEST_CASE("memory rests for some steps where that takes little more of it", "[places]") {
  const Layout plain = layout_of(4096, 0);
  for (const std::uint32_t rest : {1u, 2u, 4u}) {
    const Layout rested = layout_of(4096, rest);
    CHECK(rested.places == 2 + rest);
    CHECK(rested.bytes == plain.bytes + rest * 32 * 32 * 4);
  }
  CHECK(layout_of(32, 4).places == 2);
  CHECK(layout_of(32, 4).bytes == layout_of(32, 0).bytes);
}
