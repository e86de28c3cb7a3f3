// Where values lie in the workspace, and when what has lain there may be written over.
#include "places/placement.h"

#include <set>
#include <stdexcept>
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

/// Whether what is computed from a value element by element is written over it, so many steps after a sum has read it.
bool is_written_over(int between, std::uint32_t rest) {
  std::string text = "graph @main (%x: f32[32, 32], %z: f32[4096, 32]) {\n  %kept: f32[32, 4096] = permute(%z) {dims = [1, 0]}\n  %h: f32[32, 32] = permute(%x) {dims = [1, 0]}\n"
                     "  %s: f32[32] = sum(%h) {dim = [1], keepdim = false}\n", outputs = "%s, %y, %k";
  for (int i = 0; i < between; ++i) {
    text += fmt::format("  %b{}: f32[32, 32] = neg(%x)\n", i);
    outputs += fmt::format(", %b{}", i);
  }
  ir::Graph graph = llvm_test::parse(text + "  %d: f32[32, 32] = exp(%h)\n  %y: f32[32, 32] = permute(%d) {dims = [1, 0]}\n  %k: f32[32, 4096] = neg(%kept)\n  return " + outputs + "\n}");
  const codegen::Placement placement(graph, codegen::plan_graph(graph, llvm_backend::CpuMachine(16), {.fuse = false}), rest);
  const auto offset = [&](std::string_view name) {
    for (const ir::NodeId id : graph.nodes())
      if (const ir::ValueId value = graph.node(id).results[0]; graph.value(value).name == name) return placement.fixed_offsets()[placement[value].index];
    throw std::invalid_argument(std::string(name));
  };
  return offset("h") == offset("d");
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

TEST_CASE("what another step has read within the rest is not written over where it lies", "[places]") {
  for (const int between : {0, 1, 3})
    for (const std::uint32_t rest : {0u, 1u, 2u, 4u}) {
      CAPTURE(between, rest);
      CHECK(is_written_over(between, rest) == (static_cast<int>(rest) <= between));
    }
}
