// What lies in the card's memory between groups: products are another backend's, so that what is around them are groups of their own.
#include "card_session.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr std::size_t kMatrix = 512 * 512 * 4;

/// A session in which somebody else runs products, and gives nothing.
class WithProducts {
 public:
  WithProducts() {
    products_.behaviour.claim = [](const GraphView& graph, const TenonClaims& claims) {
      for (NodeView node : graph.nodes())
        if (const std::uint32_t id = node.id(); node.op() == "mm") claims.claim(claims.self, &id, 1);
      return std::int32_t{TENON_OK};
    };
    products_.behaviour.execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_OK}; };
  }

  /// Runs the graph of matrices once; gives how many lay in memory beside its inputs and outputs.
  std::size_t matrices_of(const std::string& text) {
    const ir::Graph graph = parse(text);
    const TestProgram program(session_, graph, {"cuda"});
    std::vector<void*> memory(graph.inputs().size() + graph.outputs().size());
    for (void*& block : memory) REQUIRE(tenon_device_allocate(session_.get(), kCard, kMatrix, nullptr, &block) == TENON_OK);
    std::vector<const void*> inputs(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(graph.inputs().size()));
    std::vector<void*> outputs(memory.begin() + static_cast<std::ptrdiff_t>(graph.inputs().size()), memory.end());
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (const ir::Output& output = graph.outputs()[k]; output.kind == ir::OutputKind::update) outputs[k] = memory[graph.value(output.target).index];
    fake_cuda_most_bytes();
    REQUIRE(run(program, inputs, outputs) == TENON_OK);
    const std::size_t bytes = fake_cuda_most_bytes();
    for (void* block : memory) tenon_device_release(session_.get(), kCard, block, kMatrix, nullptr);
    return bytes / kMatrix;
  }

 private:
  TestBackend products_{"products", {.devices = {{kDLCUDA, -1}, {kDLCPU, 0}}}};
  TestSession session_{{&products_}};
};

std::string graph_of(const std::string& parameters, const std::string& nodes) {
  std::string text = "graph @g (" + parameters + ") {\n" + nodes + "}\n";
  for (const auto& [word, type] : {std::pair<std::string, std::string>{"MATRIX", "f32[512, 512] on device2:0"}, {"WIDE", "f64[512, 512] on device2:0"}})
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;) text.replace(at, word.size(), type);
  return text;
}

}  // namespace

TEST_CASE("what is computed element by element from what is kept anyway is computed again behind products") {
  // %h lies there for the last product; its copy in f64 and what follows of it would take three matrices more.
  CHECK(WithProducts().matrices_of(graph_of("%x: MATRIX, %w: MATRIX", R"(
  %h: MATRIX = mm(%x, %w)
  %d: WIDE = _to_copy(%h) {dtype = f64}
  %s: f64[512, 1] on device2:0 = sum(%d) {dim = [1], dtype = f64, keepdim = true}
  %t: f32[512, 1] on device2:0 = _to_copy(%s) {dtype = f32}
  %c: MATRIX = sub(%h, %t)
  %a: MATRIX = mm(%c, %w)
  %b: MATRIX = mm(%a, %w)
  %e: WIDE = _to_copy(%b) {dtype = f64}
  %f: WIDE = mul(%e, %d)
  %g: MATRIX = _to_copy(%f) {dtype = f32}
  %i: MATRIX = mul(%g, %c)
  %y: MATRIX = mm(%h, %i)
  return %y
)")) == 3);
}

TEST_CASE("what is read behind products alone is computed there") {
  CHECK(WithProducts().matrices_of(graph_of("%x: MATRIX, %w: MATRIX, %m: MATRIX", R"(
  %late: MATRIX = mul(%m, 0.9)
  %later: MATRIX = exp(%late)
  %a: MATRIX = mm(%x, %w)
  %b: MATRIX = mm(%a, %w)
  %c: MATRIX = mm(%b, %w)
  %y: MATRIX = add(%c, %later)
  return %y
)")) == 2);
}

TEST_CASE("updates are written over their inputs by the last step, though they could be computed before") {
  CHECK(WithProducts().matrices_of(graph_of("%x: MATRIX, %w: MATRIX, %m: MATRIX", R"(
  %a: MATRIX = mm(%x, %w)
  %n: MATRIX = add(%a, %m)
  %b: MATRIX = mm(%a, %w)
  %c: MATRIX = mm(%b, %w)
  %y: MATRIX = neg(%c)
  return %y, %a, update %m = %n
)")) == 2);
}

TEST_CASE("what is given twice is copied where it is computed: updates are written over their inputs by the step behind it") {
  CHECK(WithProducts().matrices_of(graph_of("%x: MATRIX, %w: MATRIX, %m: MATRIX", R"(
  %g: MATRIX = exp(%x)
  %a: MATRIX = mm(%g, %w)
  %n: MATRIX = add(%a, %m)
  return %g, %g, update %m = %n
)")) == 1);
}

TEST_CASE("updates of a card's tensors take no memory beside them where the host updates others", "[memory]") {
  constexpr const char* kUpdates = R"(graph @g (%c: f32[4], %x: f32[64, 32] on device2:0) {
  %y: f32[64, 32] on device2:0 = exp(%x)
  %d: f32[4] = neg(%c)
  return update %x = %y, update %c = %d
}
)";
  CudaSession session;
  const TestProgram program = session.compile(kUpdates);
  CHECK(CudaSession::backends(program) == std::vector<std::string>{"host_backend", "cuda"});
  const Block x(session, 64 * 32 * 4);
  float c[] = {1, 2, 3, 4};
  fake_cuda_most_bytes();
  REQUIRE(run(program, {c, x.at()}, {x.at(), c}) == TENON_OK);
  CHECK(fake_cuda_most_bytes() == 0);
  CHECK(c[3] == -4);
}

TEST_CASE("updates of a card's tensors take no memory beside them where the host is given what was there before", "[memory]") {
  CudaSession session;
  const TestProgram program = session.compile(R"(graph @g (%x: f32[64, 32] on device2:0) {
  %h: f32[64, 32] = to_device(%x) {device = "cpu:0"}
  %y: f32[64, 32] on device2:0 = exp(%x)
  return %h, update %x = %y
}
)");
  const Block x(session, 64 * 32 * 4);
  std::vector<float> h(64 * 32, -1);
  fake_cuda_most_bytes();
  REQUIRE(run(program, {x.at()}, {h.data(), x.at()}) == TENON_OK);
  CHECK(fake_cuda_most_bytes() == 0);
}
