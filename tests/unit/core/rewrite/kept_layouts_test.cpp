#include "core/rewrite/kept_layouts.h"

#include "catch.h"
#include "core/ir/parser.h"

using namespace tenon;

namespace {

/// The strides that the last value of a graph gets where it is kept.
std::optional<ir::Shape> kept(const char* text) {
  ir::Graph graph = ir::parse_graph(text).value();
  const ir::ValueId v = graph.outputs()[0].value;
  rewrite::lay_out_kept(graph, std::array{v});
  return graph.type(v).strides;
}

}  // namespace

TEST_CASE("pictures around convolutions over many channels are kept with channels last") {
  CHECK(kept(R"(graph @main (%x: f32[2, 32, 9, 8], %w: f32[24, 32, 3, 3]) {
    %y: f32[2, 24, 7, 6] = conv_sum(%x, %w) {after = [0, 0], before = [0, 0], dilation = [1, 1], groups = 1, stride = [1, 1]}
    %r: f32[2, 24, 7, 6] = relu(%y)
    return %r
  })") == ir::Shape{24 * 42, 1, 24 * 6, 24});
}

TEST_CASE("other values are kept as they are") {
  CHECK_FALSE(kept(R"(graph @main (%x: f32[2, 3, 9, 8], %w: f32[24, 3, 3, 3]) {
    %y: f32[2, 24, 7, 6] = conv_sum(%x, %w) {after = [0, 0], before = [0, 0], dilation = [1, 1], groups = 1, stride = [1, 1]}
    return %y
  })"));
  CHECK_FALSE(kept(R"(graph @main (%x: f32[2, 32, 9, 8], %w: f32[32, 32, 3, 3], %d: f32[32, 1, 3, 3]) {
    %y: f32[2, 32, 7, 6] = conv_sum(%x, %w) {after = [0, 0], before = [0, 0], dilation = [1, 1], groups = 1, stride = [1, 1]}
    %z: f32[2, 32, 5, 4] = conv_sum(%y, %d) {after = [0, 0], before = [0, 0], dilation = [1, 1], groups = 32, stride = [1, 1]}
    return %z
  })"));
  CHECK_FALSE(kept(R"(graph @main (%x: f32[2, 32, 9, 8], %w: f32[24, 32, 3, 3], %s: f32[2, 4, 5, 6]) {
    %y: f32[2, 24, 7, 6] = conv_sum(%x, %w) {after = [0, 0], before = [0, 0], dilation = [1, 1], groups = 1, stride = [1, 1]}
    %e: f32[2, 4, 5, 6] = exp(%s)
    return %e, %y
  })"));
}
