// What lies in the card's memory between groups: products are another backend's, so that what is around them are groups of their own.
#include "card_session.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr std::size_t kMatrix = 512 * 512 * 4;

/// A tensor of the card, of as many bytes as a matrix, as another backend made it.
struct GivenMatrix {
  DLManagedTensorVersioned managed{};
  std::vector<std::int64_t> shape;
  TenonSession* session;

  static GivenMatrix* of(TenonSession* session, const ir::Shape& shape) {
    auto* given = new GivenMatrix{.shape = {}, .session = session};
    for (const ir::Dim& size : shape) given->shape.push_back(size.constant());
    void* memory = nullptr;
    require_ok(tenon_device_allocate(session, kCard, kMatrix, nullptr, &memory));
    given->managed.version = {1, 0};
    given->managed.manager_ctx = given;
    given->managed.deleter = [](DLManagedTensorVersioned* self) {
      tenon_device_release(static_cast<GivenMatrix*>(self->manager_ctx)->session, kCard, self->dl_tensor.data, kMatrix, nullptr);
      delete static_cast<GivenMatrix*>(self->manager_ctx);
    };
    given->managed.dl_tensor = {memory, kCard, static_cast<std::int32_t>(shape.size()), {kDLFloat, 32, 1}, given->shape.data(), nullptr, 0};
    return given;
  }
};

/// A session in which somebody else runs products and convolutions: into the memory that it is given, or, where it `gives`, by handing over what it has made.
class WithProducts {
 public:
  explicit WithProducts(bool gives = false, std::uint64_t flags = 0) {
    products_.behaviour.claim = [](const GraphView& graph, const TenonClaims& claims) {
      const auto readers = [&](std::uint32_t value) {
        std::size_t count = 0;
        for (NodeView node : graph.nodes())
          for (ValueView operand : node.operands()) count += operand.id() == value;
        return count;
      };
      for (NodeView node : graph.nodes()) {
        if (node.op() != "mm" && node.op() != "convolution_channels_last") continue;
        std::vector<std::uint32_t> ids{node.id()};  // and views that nobody else reads
        for (NodeView view : graph.nodes())
          for (ValueView operand : node.operands())
            if (view.op() == "reshape" && view.results()[0].id() == operand.id() && readers(operand.id()) == 1) ids.push_back(view.id());
        claims.claim(claims.self, ids.data(), ids.size());
      }
      return std::int32_t{TENON_OK};
    };
    products_.behaviour.compile = [gives](const GraphView&, TenonArtefact& artefact) {
      artefact.flags = gives ? TENON_GIVES_OUTPUTS : 0;
      return std::int32_t{TENON_OK};
    };
    products_.behaviour.execute = [this, flags](const ir::Graph& graph, const TenonExecuteArgs& args) {
      if (args.outputs[0]) return std::int32_t{TENON_OK};
      GivenMatrix* given = GivenMatrix::of(session_.get(), graph.type(graph.outputs()[0].value).shape);
      given->managed.flags = flags;
      return args.call->give_output(args.call->self, 0, &given->managed);
    };
  }

  /// Runs the graph of matrices once; gives how many lay in memory beside its inputs and outputs.
  std::size_t matrices_of(const std::string& text) {
    const ir::Graph graph = parse(text);
    const TestProgram program(session_, graph, {"cuda", "products"});
    std::vector<void*> memory(graph.inputs().size() + graph.outputs().size());
    for (void*& block : memory) REQUIRE(tenon_device_allocate(session_.get(), kCard, kMatrix, nullptr, &block) == TENON_OK);
    std::vector<const void*> inputs(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(graph.inputs().size()));
    std::vector<void*> outputs(memory.begin() + static_cast<std::ptrdiff_t>(graph.inputs().size()), memory.end());
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (const ir::Output& output = graph.outputs()[k]; output.kind == ir::OutputKind::update) outputs[k] = memory[graph.value(output.target).index];
    fake_cuda_most_bytes();
    const std::size_t blocks = fake_cuda_blocks();
    REQUIRE(run(program, inputs, outputs) == TENON_OK);
    CHECK(fake_cuda_blocks() == blocks);
    const std::size_t bytes = fake_cuda_most_bytes();
    for (void* block : memory) tenon_device_release(session_.get(), kCard, block, kMatrix, nullptr);
    return bytes / kMatrix;
  }

 private:
  TestBackend products_{"products", {.devices = {{kDLCUDA, -1}, {kDLCPU, 0}}}};
  TestBackend rest_{"rest"};  // nobody takes a node apart that another one but the last claims
  TestSession session_{{&products_, &rest_}, {"cuda.tensor_cores=false"}};
};

std::string graph_of(const std::string& parameters, const std::string& nodes) {
  std::string text = "graph @g (" + parameters + ") {\n" + nodes + "}\n";
  const std::pair<std::string, std::string> types[] = {{"MATRIX", "f32[512, 512] on device2:0"}, {"WIDE", "f64[512, 512] on device2:0"},
                                                       {"PICTURE", "f32[4, 64, 32, 32] on device2:0"}, {"ROWS", "f32[4, 32, 32, 64] on device2:0"},
                                                       {"BACK", "{dims = [0, 3, 1, 2]}"}, {"LAST", "{dims = [0, 2, 3, 1]}"}};
  for (const auto& [word, type] : types)
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

TEST_CASE("what several products read in another shape lies in memory once", "[memory]") {
  CHECK(WithProducts(true).matrices_of(graph_of("%x: MATRIX, %w: MATRIX", R"(
  %s: f32[64, 8, 512] on device2:0 = reshape(%x) {shape = [64, 8, 512]}
  %h: f32[64, 8, 512] on device2:0 = exp(%s)
  %f: MATRIX = reshape(%h) {shape = [512, 512]}
  %a: MATRIX = mm(%f, %w)
  %b: MATRIX = mm(%f, %a)
  %r: f32[64, 8, 512] on device2:0 = reshape(%b) {shape = [64, 8, 512]}
  %u: f32[64, 8, 512] on device2:0 = mul(%r, %h)
  %y: MATRIX = reshape(%u) {shape = [512, 512]}
  return %y
)")) == 3);
}

TEST_CASE("the gradient of a weight, which frees what the layer kept, is computed before that of the input") {
  CHECK(WithProducts(true).matrices_of(graph_of("%x: MATRIX, %w: MATRIX, %v: MATRIX", R"(
  %a: MATRIX = mm(%x, %w)
  %h: MATRIX = relu(%a)
  %b: MATRIX = mm(%h, %v)
  %g: MATRIX = exp(%b)
  %of_h: MATRIX = mm(%g, %v)
  %of_v: MATRIX = mm(%h, %g)
  %of_a: MATRIX = neg(%of_h)
  %of_w: MATRIX = mm(%x, %of_a)
  return %of_v, %of_w
)")) == 2);
}

namespace {

/// Layers of a network: what follows each product may be written over it. %s is alive throughout.
constexpr const char* kLayers = R"(
  %s: MATRIX = mm(%x, %w)
  %a: MATRIX = relu(%s)
  %b: MATRIX = mm(%a, %w)
  %c: MATRIX = gelu(%b) {approximate = "none"}
  %d: MATRIX = mm(%c, %w)
  %e: MATRIX = relu(%d)
  %f: MATRIX = mm(%e, %w)
  %y: MATRIX = add(%f, %s)
  return %y
)";

}  // namespace

TEST_CASE("what another backend gives stays where it is: there is what is alive, and no more", "[memory]") {
  CHECK(WithProducts(true).matrices_of(graph_of("%x: MATRIX, %w: MATRIX", kLayers)) == 3);
}

TEST_CASE("what another backend gives is written over where nobody reads it any more, unless it is to be read alone", "[memory]") {
  const std::string text = graph_of("%x: MATRIX, %w: MATRIX", R"(
  %a: MATRIX = mm(%x, %w)
  %b: MATRIX = mm(%w, %x)
  %c: MATRIX = mul(%a, %b)
  %y: MATRIX = mm(%c, %w)
  return %y
)");
  CHECK(WithProducts(true).matrices_of(text) == 2);
  CHECK(WithProducts(true, DLPACK_FLAG_BITMASK_READ_ONLY).matrices_of(text) == 3);
}

TEST_CASE("what is computed between convolutions that have channels last is written over what they give", "[memory]") {
  CHECK(WithProducts(true).matrices_of(graph_of("%x: ROWS, %w: f32[64, 1, 1, 64] on device2:0", R"(
  %a: ROWS = convolution_channels_last(%x, %w)
  %b: PICTURE = permute(%a) BACK
  %c: PICTURE = relu(%b)
  %d: ROWS = permute(%c) LAST
  %e: ROWS = convolution_channels_last(%d, %w)
  %f: PICTURE = permute(%e) BACK
  %g: PICTURE = gelu(%f) {approximate = "none"}
  %h: ROWS = permute(%g) LAST
  %i: ROWS = convolution_channels_last(%h, %w)
  %j: PICTURE = permute(%d) BACK
  %k: PICTURE = permute(%i) BACK
  %l: PICTURE = add(%j, %k)
  %m: ROWS = permute(%l) LAST
  %n: ROWS = convolution_channels_last(%m, %w)
  return %n
)")) == 3);
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

namespace {

/// Bytes that a run takes beside its inputs and outputs: with updates in memory of their own, and over their inputs, which come last, and as many.
std::pair<std::size_t, std::size_t> bytes_beside(const std::string& text, std::size_t updates) {
  constexpr std::size_t kMost = 16384 * 64 * 4;
  const ir::Graph graph = parse(text);
  CudaSession session;
  const TestProgram program = session.compile(text);
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<const void*> inputs;
  std::vector<void*> apart, over;
  const auto block = [&] { return blocks.emplace_back(std::make_unique<Block>(session, kMost))->at(); };
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) inputs.push_back(block());
  for (std::size_t k = 0; k < graph.outputs().size(); ++k) apart.push_back(block());
  over = apart;
  for (std::size_t u = 1; u <= updates; ++u) over[over.size() - u] = const_cast<void*>(inputs[inputs.size() - u]);
  std::size_t bytes[2];
  for (int way = 0; way < 2; ++way) {
    fake_cuda_most_bytes();
    REQUIRE(run(program, inputs, way ? over : apart) == TENON_OK);
    bytes[way] = fake_cuda_most_bytes();
  }
  return {bytes[0], bytes[1]};
}

}  // namespace

TEST_CASE("what a reduction in parts updates is written over, though a later kernel reads it", "[memory]") {
  const auto [apart, over] = bytes_beside(R"(graph @g (%x: f32[16384, 64] on device2:0, %g: f32[16384, 64] on device2:0, %s: f32[64] on device2:0, %m: f32[64] on device2:0) {
  %t: f32[64] on device2:0 = sum(%x) {dim = [0], keepdim = false}
  %a: f32[64] on device2:0 = mul(%m, 0.9)
  %n: f32[64] on device2:0 = add(%a, %t)
  %c: f32[16384, 64] on device2:0 = sub(%x, %t)
  %p: f32[16384, 64] on device2:0 = mul(%g, %c)
  %d: f32[64] on device2:0 = sum(%p) {dim = [0], keepdim = false}
  %e: f32[64] on device2:0 = mul(%d, 0.1)
  %u: f32[64] on device2:0 = sub(%s, %e)
  %w: f32[16384, 64] on device2:0 = mul(%g, %s)
  %h: f32[16384, 64] on device2:0 = add(%w, %d)
  return %h, update %s = %u, update %m = %n
}
)", 2);
  CHECK(apart > 0);
  CHECK(over == apart);
}

TEST_CASE("what a kernel updates before it goes over its rows again is written over", "[memory]") {
  const auto [apart, over] = bytes_beside(R"(graph @g (%x: f32[512, 64] on device2:0, %m: f32[64] on device2:0) {
  %t: f32[64] on device2:0 = sum(%x) {dim = [0], keepdim = false}
  %a: f32[64] on device2:0 = mul(%m, 0.9)
  %n: f32[64] on device2:0 = add(%a, %t)
  %c: f32[512, 64] on device2:0 = sub(%x, %t)
  return %c, update %m = %n
}
)", 1);
  CHECK(over == apart);
}
