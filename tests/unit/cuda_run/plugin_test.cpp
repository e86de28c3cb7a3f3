// The plugin from claim to launch, over a driver that checks what it is given and runs nothing: this program has it where libcuda.so.1 is
// looked for.
#include <cstring>
#include "card_session.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr const char* kChain = R"(graph @g (%x: f32[64, 32] on device2:0, %y: f32[32] on device2:0) {
  %a: f32[64, 32] on device2:0 = mul(%x, %y)
  %b: f32[64, 32] on device2:0 = relu(%a)
  return %b
}
)";

}  // namespace

TEST_CASE("a chain is one launch") {
  const std::size_t modules = fake_cuda_modules();
  CudaSession session;
  const TestProgram program = session.compile(kChain);
  CHECK(CudaSession::backends(program) == std::vector<std::string>{"cuda"});
  const Block x(session, 64 * 32 * 4), y(session, 32 * 4), b(session, 64 * 32 * 4);
  const std::size_t before = fake_cuda_launches();
  REQUIRE(run(program, {x.at(), y.at()}, {b.at()}) == TENON_OK);
  CHECK(fake_cuda_launches() == before + 1);
  CHECK(fake_cuda_modules() == modules + 1);
}

TEST_CASE("views that are not aligned run the code that expects nothing") {
  const std::size_t modules = fake_cuda_modules();
  CudaSession session;
  const TestProgram program = session.compile(kChain);
  const Block x(session, 64 * 32 * 4 + 4), y(session, 32 * 4), b(session, 64 * 32 * 4);
  REQUIRE(run(program, {x.at(4), y.at()}, {b.at()}) == TENON_OK);
  CHECK(fake_cuda_modules() == modules + 2);
}

TEST_CASE("a row reduction and what follows it are launched over sizes that come with the call") {
  CudaSession session;
  const TestProgram program = session.compile(R"(graph @g [s0: 1..100000] (%x: f32[s0, 32] on device2:0) {
  %m: f32[s0, 1] on device2:0 = amax(%x) {dim = [1], keepdim = true}
  %d: f32[s0, 32] on device2:0 = sub(%x, %m)
  return %d
}
)");
  CHECK(CudaSession::backends(program) == std::vector<std::string>{"cuda"});
  const Block x(session, 7 * 32 * 4), d(session, 7 * 32 * 4);
  REQUIRE(run(program, {x.at()}, {d.at()}, {7}) == TENON_OK);
}

TEST_CASE("numbers of the host are on the card when a kernel reads them") {
  CudaSession session;
  const TestProgram program = session.compile("graph @g (%x: f32[64] on device2:0, %n: f32[]) {\n  %y: f32[64] on device2:0 = mul(%x, %n)\n  return %y\n}\n");
  const Block x(session, 256), y(session, 256);
  const float number = 2;
  const std::size_t before = fake_cuda_launches();
  REQUIRE(run(program, {x.at(), &number}, {y.at()}) == TENON_OK);
  CHECK(fake_cuda_launches() == before + 1);
}

TEST_CASE("an index that is only looked at is a group that gives nothing") {
  CudaSession session;
  const TestProgram program = session.compile(R"(graph @g (%x: f32[4] on device2:0, %k: i64[4] on device2:0) {
  %y: f32[4] on device2:0, %i: i64[4] on device2:0 = sort(%x) {dim = 0, descending = false}
  %j: i64[4] on device2:0 = add(%i, %k)
  %c: f32[4] on device2:0 = index_select(%x, %j) {dim = 0}
  return %y
}
)");
  CHECK(CudaSession::backends(program) == std::vector<std::string>{"host_backend", "cuda"});
  CHECK(session.events("fallbacks").empty());
  const Block x(session, 16), k(session, 32), y(session, 16);
  const std::size_t before = fake_cuda_launches();
  REQUIRE(run(program, {x.at(), k.at()}, {y.at()}) == TENON_OK);
  CHECK(fake_cuda_launches() > before);
}

TEST_CASE("an output that is an input is copied") {
  CudaSession session;
  const TestProgram program = session.compile("graph @g (%x: f32[64] on device2:0) {\n  %y: f32[64] on device2:0 = clone(%x)\n  return %y, %y\n}\n");
  const Block x(session, 256), y(session, 256), z(session, 256);
  REQUIRE(run(program, {x.at()}, {y.at(), z.at()}) == TENON_OK);
}

TEST_CASE("bytes go to the card and back") {
  CudaSession session;
  const TestProgram program = session.compile(kChain);  // loads the plugin
  const Block block(session, 16);
  std::vector<int> sent = {1, 2, 3, 4}, back(4);
  REQUIRE(tenon_device_copy(session.get(), block.at(), kCard, sent.data(), {kDLCPU, 0}, 16) == TENON_OK);
  REQUIRE(tenon_device_copy(session.get(), back.data(), {kDLCPU, 0}, block.at(), kCard, 16) == TENON_OK);
  CHECK(back == sent);
  CHECK(tenon_device_synchronise(session.get(), kCard, nullptr) == TENON_OK);
}

TEST_CASE("what has no code runs in the host's memory") {
  CudaSession session;
  const TestProgram program = session.compile("graph @g (%x: f32[4] on device2:0) {\n  %y: f32[4] on device2:0, %i: i64[4] on device2:0 = sort(%x) {dim = 0, descending = false}\n  return %y\n}\n");
  CHECK(CudaSession::backends(program) == std::vector<std::string>{"host_backend"});
  const Block x(session, 16), y(session, 16);
  const std::vector<float> given = {3, 1, 4, 2};
  std::memcpy(x.at(), given.data(), 16);  // the driver's memory is the host's
  REQUIRE(run(program, {x.at()}, {y.at()}) == TENON_OK);
  CHECK(std::vector<float>(static_cast<float*>(y.at()), static_cast<float*>(y.at()) + 4) == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("a launch that fails and memory that is used up are told") {
  CudaSession session;
  const TestProgram program = session.compile(kChain);
  const Block x(session, 64 * 32 * 4), y(session, 32 * 4), b(session, 64 * 32 * 4);
  fake_cuda_fail(0, 700);
  CHECK(run(program, {x.at(), y.at()}, {b.at()}) != TENON_OK);
  CHECK_THAT(tenon_last_error()->text, Catch::Contains("cuGraphCreate"));
  CudaSession other;
  const TestProgram loaded = other.compile(kChain);
  void* memory = nullptr;
  fake_cuda_fail(0, 2);
  CHECK(tenon_device_allocate(other.get(), kCard, 64, nullptr, &memory) == TENON_OUT_OF_MEMORY);
}

TEST_CASE("code and memory are given back") {
  const std::size_t modules = fake_cuda_modules(), blocks = fake_cuda_blocks();
  {
    CudaSession session;
    const TestProgram program = session.compile(kChain);
    const Block x(session, 64 * 32 * 4), y(session, 32 * 4), b(session, 64 * 32 * 4);
    REQUIRE(run(program, {x.at(), y.at()}, {b.at()}) == TENON_OK);
  }
  CHECK(fake_cuda_modules() == modules);
  CHECK(fake_cuda_blocks() == blocks);
}

namespace {

/// relu(x @ y) of square matrices.
std::string product_of(int side, const std::string& dtype) {
  std::string text = "graph @g (%x: MATRIX, %y: MATRIX) {\n %z: MATRIX = matmul(%x, %y)\n %r: MATRIX = relu(%z)\n return %r\n}\n";
  const std::string type = dtype + "[" + std::to_string(side) + ", " + std::to_string(side) + "] on device2:0", word = "MATRIX";
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos;) text.replace(at, word.size(), type);
  return text;
}

}  // namespace

TEST_CASE("a product with what follows it is one launch, whose blocks share more memory than any kernel may without being set for it") {
  CudaSession session;
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    const TestProgram program = session.compile(product_of(256, dtype));
    CHECK(CudaSession::backends(program) == std::vector<std::string>{"cuda"});
    const Block x(session, 256 * 256 * 4 + 4), y(session, 256 * 256 * 4), r(session, 256 * 256 * 4);
    const std::size_t before = fake_cuda_launches();
    REQUIRE(run(program, {x.at(), y.at()}, {r.at()}) == TENON_OK);
    REQUIRE(run(program, {x.at(4), y.at()}, {r.at()}) == TENON_OK);  // a view that starts anywhere
    CHECK(fake_cuda_launches() == before + 2);
  }
  CHECK(session.events("fallback").empty());
}

TEST_CASE("products that tensor cores have no part in are refused for what they cost, and run as loops where nobody else takes them") {
  CudaSession session;
  CHECK(CudaSession::backends(session.compile(product_of(16, "f64"))) == std::vector<std::string>{"cuda"});
  CHECK(session.events("fallback").empty());
  CHECK(CudaSession::backends(session.compile(product_of(512, "f64"))) == std::vector<std::string>{"cuda", "cuda"});
  REQUIRE(session.events("fallback").size() == 1);
  CHECK_THAT(session.events("fallback")[0], Catch::Contains("1 node of matmul run on 'cuda': cuda: cost, "));
}

TEST_CASE("what is cheap is computed in each window that reads it, and not stored before") {
  CudaSession session;
  const TestProgram program = session.compile(R"(graph @g (%c: f32[2, 4, 16, 16] on device2:0, %m: f32[4] on device2:0, %v: f32[4] on device2:0) {
  %n: f32[2, 4, 16, 16] on device2:0 = batch_norm(%c, %m, %v) {eps = 1e-05}
  %r: f32[2, 4, 16, 16] on device2:0 = relu(%n)
  %p: f32[2, 4, 7, 7] on device2:0 = max_pool(%r) {kernel_size = [3, 3], stride = [2, 2]}
  return %p
}
)");
  const Block c(session, 2 * 4 * 16 * 16 * 4), m(session, 16), v(session, 16), p(session, 2 * 4 * 7 * 7 * 4);
  const std::size_t before = fake_cuda_launches();
  fake_cuda_most_bytes();
  REQUIRE(run(program, {c.at(), m.at(), v.at()}, {p.at()}) == TENON_OK);
  CHECK(fake_cuda_launches() == before + 1);
  CHECK(fake_cuda_most_bytes() == 0);
}

TEST_CASE("operands of float32 are rounded to tf32 as the options of a compile say") {
  CudaSession session;
  const std::string product = "graph @g (%x: f32[128, 256] on device2:0, %w: f32[256, 64] on device2:0) {\n  %y: f32[128, 64] on device2:0 = matmul(%x, %w)\n  return %y\n}\n";
  const std::string convolution = R"(graph @g (%x: f32[2, 32, 16, 16] on device2:0, %w: f32[64, 32, 3, 3] on device2:0) {
  %y: f32[2, 64, 16, 16] on device2:0 = convolution(%x, %w) {padding = [1, 1], stride = [1, 1]}
  return %y
}
)";
  const auto multiplications = [&](const std::string& text, const std::string& options) {
    fake_cuda_texts();
    const TestProgram program = session.compile(text, options);
    const std::string ptx = fake_cuda_texts();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = ptx.find("mma.sync.aligned.m16n8k8.row.col.f32.tf32", at)) != ptx.npos; ++at) ++count;
    return count;
  };
  const std::size_t once = multiplications(product, R"({"tf32_products": true})"), once_over_windows = multiplications(convolution, R"({"tf32_convolutions": true})");
  CHECK(once > 0);
  CHECK(once_over_windows > 0);
  for (const char* options : {"{}", R"({"tf32_convolutions": true})", R"({"tf32_products": false})"}) CHECK(multiplications(product, options) == 3 * once);
  for (const char* options : {"{}", R"({"tf32_products": true})", R"({"tf32_convolutions": false})"}) CHECK(multiplications(convolution, options) == 3 * once_over_windows);
}

TEST_CASE("a product whose operands may be rounded is refused for its cost where a library is faster") {
  const auto is_refused = [&](const char* options) {
    CudaSession session;
    session.compile("graph @g (%x: f32[2048, 768] on device2:0, %w: f32[768, 2304] on device2:0) {\n  %y: f32[2048, 2304] on device2:0 = matmul(%x, %w)\n  return %y\n}\n", options);
    return !session.events("fallback").empty();
  };
  CHECK_FALSE(is_refused("{}"));
  CHECK_FALSE(is_refused(R"({"tf32_convolutions": true})"));
  CHECK(is_refused(R"({"tf32_products": true})"));
}

TEST_CASE("attention is one kernel") {
  CudaSession session;
  const auto compiled = [&](const std::string& type) {
    return session.compile("graph @g (%q: " + type + " on device2:0, %k: " + type + " on device2:0, %v: " + type + " on device2:0) {\n  %y: " + type +
                                                 " on device2:0 = scaled_dot_product_attention(%q, %k, %v) {is_causal = true, scale = 0.125}\n  return %y\n}\n");
  };
  for (const char* type : {"bf16[4, 12, 512, 64]", "f32[4, 12, 512, 64]", "f16[16, 12, 128, 64]"}) {
    INFO(type);
    const std::size_t before = fake_cuda_modules();
    const TestProgram program = compiled(type);
    CHECK(CudaSession::backends(program) == std::vector<std::string>{"cuda"});
    CHECK(fake_cuda_modules() == before + 1);
  }
}
