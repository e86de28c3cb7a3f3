// The kernels of a group as one graph of the driver: what orders its nodes, what a call changes of it, and what is left when calls fail.
#include <cstring>
#include <random>

#include "card_session.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// A random graph of f32[16, 24] and reductions of it over two inputs and a number of the host, with several outputs.
std::string random_graph(std::mt19937& random) {
  std::string text = "graph @g (%a: f32[16, 24] on device2:0, %b: f32[16, 24] on device2:0, %n: f32[]) {\n";
  std::vector<std::string> wide = {"%a", "%b"};
  const auto pick = [&] { return wide[random() % wide.size()]; };
  const int nodes = 4 + static_cast<int>(random() % 16);
  for (int i = 0; i < nodes; ++i) {
    const std::string v = "%v" + std::to_string(i), type = ": f32[16, 24] on device2:0 = ";
    switch (random() % 9) {
      case 0: text += v + type + "add(" + pick() + ", " + pick() + ")\n"; break;
      case 1: text += v + type + "mul(" + pick() + ", %n)\n"; break;
      case 2: text += v + type + "exp(" + pick() + ")\n"; break;
      case 3: text += v + type + "softmax(" + pick() + ") {dim = 1}\n"; break;
      case 4: text += v + type + "softmax(" + pick() + ") {dim = 0}\n"; break;
      case 5: {
        const std::string t = "%t" + std::to_string(i);
        text += t + ": f32[24, 16] on device2:0 = permute(" + pick() + ") {dims = [1, 0]}\n" + t + "r: f32[24, 16] on device2:0 = relu(" + t + ")\n";
        text += v + type + "permute(" + t + "r) {dims = [1, 0]}\n";
        break;
      }
      case 6: {
        const std::string r = "%r" + std::to_string(i);
        text += r + ": f32[16, 1] on device2:0 = sum(" + pick() + ") {dim = [1], keepdim = true}\n" + v + type + "sub(" + pick() + ", " + r + ")\n";
        break;
      }
      case 7: {  // an element's neighbours, and what lies around them all
        const std::string n = std::to_string(i), down = std::to_string(random() % 3), right = std::to_string(random() % 3);
        const auto part = [](const std::string& dim, const std::string& start, int size) {
          return " {dim = " + dim + ", end = " + std::to_string(size + std::stoi(start)) + ", start = " + start + ", step = 1}\n";
        };
        text += "%p" + n + ": f32[18, 26] on device2:0 = pad(" + pick() + ") {after = [1, 1], before = [1, 1], mode = \"constant\", value = 0.5}\n";
        text += "%q" + n + ": f32[16, 26] on device2:0 = slice(%p" + n + ")" + part("0", down, 16) + v + type + "slice(%q" + n + ")" + part("1", right, 24);
        break;
      }
      default: text += v + type + "layer_norm(" + pick() + ") {eps = 1e-05, normalized_shape = [24]}\n"; break;
    }
    wide.push_back(v);
  }
  return text + "return " + pick() + ", " + wide.back() + ", " + pick() + "\n}\n";
}

constexpr std::size_t kBytes = 16 * 24 * 4;

constexpr const char* kBranches = R"(graph @g (%x: f32[64, 32] on device2:0) {
  %a: f32[64, 32] on device2:0 = softmax(%x) {dim = 1}
  %b: f32[64, 32] on device2:0 = softmax(%x) {dim = 0}
  %c: f32[64, 32] on device2:0 = softmax(%a) {dim = 0}
  %d: f32[64, 32] on device2:0 = add(%b, %c)
  return %d
}
)";

}  // namespace

TEST_CASE("nodes of random graphs touch no memory that another one writes at the same time", "[graphs]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  CudaSession session;
  const std::size_t hazards = fake_cuda_hazards();
  const int count = std::getenv("TENON_TEST_GRAPHS") ? std::atoi(std::getenv("TENON_TEST_GRAPHS")) : 300;
  for (int i = 0; i < count; ++i) {
    const std::string text = random_graph(random);
    INFO(text);
    const TestProgram program = session.compile(text);
    for (int call = 0; call < 3; ++call) {  // memory that moves, starts anywhere, and is the input's
      const std::size_t at = call == 1 ? 4 : 0;
      const Block a(session, kBytes + at), b(session, kBytes + at), x(session, kBytes), y(session, kBytes), z(session, kBytes);
      const float number = static_cast<float>(call);
      REQUIRE(run(program, {a.at(at), b.at(at), &number}, {x.at(), y.at(), z.at()}) == TENON_OK);
    }
  }
  CHECK(fake_cuda_hazards() == hazards);
}

TEST_CASE("a group is one launch of a graph, and the second call changes what moved", "[graphs]") {
  CudaSession session;
  const TestProgram program = session.compile(kBranches);
  const Block x(session, 64 * 32 * 4), d(session, 64 * 32 * 4), other(session, 64 * 32 * 4);
  const std::size_t before = fake_cuda_graph_launches(), graphs = fake_cuda_graphs();
  REQUIRE(run(program, {x.at()}, {d.at()}) == TENON_OK);
  REQUIRE(run(program, {x.at()}, {d.at()}) == TENON_OK);
  REQUIRE(run(program, {x.at()}, {other.at()}) == TENON_OK);
  CHECK(fake_cuda_graph_launches() == before + 3);
  CHECK(fake_cuda_graphs() == graphs + 2);  // one, and its executable form
}

TEST_CASE("a group of many kernels keeps graphs for memory that takes turns", "[graphs]") {
  std::string text = "graph @g (%x: f32[64, 32] on device2:0) {\n", last = "%x";
  for (int i = 0; i < 30; ++i) {
    const std::string next = "%v" + std::to_string(i);
    text += next + ": f32[64, 32] on device2:0 = softmax(" + last + ") {dim = " + std::to_string(i % 2) + "}\n";
    last = next;
  }
  CudaSession session;
  const TestProgram program = session.compile(text + "return " + last + "\n}\n");
  const Block x(session, 64 * 32 * 4), d(session, 64 * 32 * 4), e(session, 64 * 32 * 4);
  const std::size_t graphs = fake_cuda_graphs(), set = fake_cuda_set_nodes();
  for (int call = 0; call < 6; ++call) REQUIRE(run(program, {x.at()}, {call % 2 ? d.at() : e.at()}) == TENON_OK);
  CHECK(fake_cuda_graphs() == graphs + 4);  // two, and their executable forms
  CHECK(fake_cuda_set_nodes() == set);
  std::vector<std::unique_ptr<Block>> more;
  for (int call = 0; call < 8; ++call) REQUIRE(run(program, {x.at()}, {more.emplace_back(std::make_unique<Block>(session, 64 * 32 * 4))->at()}) == TENON_OK);
  CHECK(fake_cuda_graphs() == graphs + 8);
  CHECK(fake_cuda_set_nodes() > set);
}

TEST_CASE("the gradient of a weight is computed beside that of the layer's input, which may be written over what it reads", "[graphs]") {
  std::string text = "graph @g (%x: f32[64, 64] on device2:0, %w: f32[64, 64] on device2:0, %g: f32[64, 64] on device2:0) {\n", last = "%x", outputs;
  const auto node = [&](const std::string& name, const std::string& made) { text += name + ": f32[64, 64] on device2:0 = " + made + "\n"; };
  constexpr std::size_t kLayers = 40;
  for (std::size_t i = 1; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    node("%a" + n, "mm(" + last + ", %w)");
    last = "%h" + n;
    node(last, "relu(%a" + n + ")");
  }
  last = "%g";
  for (std::size_t i = kLayers; i-- > 0;) {
    const std::string n = std::to_string(i), input = i == 0 ? "%x" : "%h" + n;
    node("%t" + n, "permute(" + input + ") {dims = [1, 0]}");
    node("%w" + n, "mm(%t" + n + ", " + last + ")");
    outputs += (outputs.empty() ? "%w" : ", %w") + n;
    if (i == 0) break;
    node("%o" + n, "mm(" + last + ", %w)");
    text += "%m" + n + ": bool[64, 64] on device2:0 = le(" + input + ", 0.0)\n";
    node("%d" + n, "where(%m" + n + ", 0.0, %o" + n + ")");
    last = "%d" + n;
  }
  CudaSession session;
  const TestProgram program = session.compile(text + "return " + outputs + "\n}\n");
  const Block x(session, 64 * 64 * 4), w(session, 64 * 64 * 4), g(session, 64 * 64 * 4);
  std::vector<std::unique_ptr<Block>> gradients;
  std::vector<void*> places;
  while (places.size() < kLayers) places.push_back(gradients.emplace_back(std::make_unique<Block>(session, 64 * 64 * 4))->at());
  const std::size_t launches = fake_cuda_launches();
  REQUIRE(run(program, {x.at(), w.at(), g.at()}, places) == TENON_OK);
  CHECK(fake_cuda_launches() == launches + 3 * kLayers - 2);
  CHECK(fake_cuda_longest_path() == 2 * kLayers - 1);
}

TEST_CASE("equal small kernels start together, as many in a launch as its parameters have room for", "[graphs]") {
  constexpr std::size_t kMany = 300;
  std::string text = "graph @g (%n: f32[]", body, outputs;
  for (std::size_t i = 0; i < kMany; ++i) {
    const std::string n = std::to_string(i);
    text += ", %x" + n + ": f32[37] on device2:0";
    body += "%s" + n + ": f32[37] on device2:0 = mul(%x" + n + ", %n)\n%y" + n + ": f32[37] on device2:0 = add(%s" + n + ", 1.0)\n";
    outputs += (i ? ", %y" : "%y") + n;
  }
  CudaSession session;
  const TestProgram program = session.compile(text + ") {\n" + body + "return " + outputs + "\n}\n");
  const float number = 2;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<const void*> inputs{&number};
  std::vector<void*> results;
  for (std::size_t i = 0; i < kMany; ++i) {
    inputs.push_back(blocks.emplace_back(std::make_unique<Block>(session, 37 * 4))->at());
    results.push_back(blocks.emplace_back(std::make_unique<Block>(session, 37 * 4))->at());
  }
  const std::size_t launches = fake_cuda_launches(), set = fake_cuda_set_nodes();
  REQUIRE(run(program, inputs, results) == TENON_OK);
  CHECK(fake_cuda_launches() == launches + 2);  // of three entries of 8 bytes each, 4096 bytes hold 170
  std::swap(inputs[1], inputs[2]);
  REQUIRE(run(program, inputs, results) == TENON_OK);
  CHECK(fake_cuda_set_nodes() == set + 1);
}

TEST_CASE("a stream that the user captures is given the kernels one by one", "[graphs]") {
  CudaSession session;
  const TestProgram program = session.compile(kBranches);
  const Block x(session, 64 * 32 * 4), d(session, 64 * 32 * 4);
  const std::size_t graphs = fake_cuda_graph_launches(), launches = fake_cuda_launches();
  fake_cuda_capture(true);
  REQUIRE(run(program, {x.at()}, {d.at()}) == TENON_OK);
  fake_cuda_capture(false);
  CHECK(fake_cuda_graph_launches() == graphs);
  CHECK(fake_cuda_launches() > launches);
}

TEST_CASE("a size of zero launches what there is", "[graphs]") {
  CudaSession session;
  const TestProgram program = session.compile("graph @g [s0: 0..100] (%x: f32[s0, 8] on device2:0) {\n%y: f32[s0, 8] on device2:0 = relu(%x)\n%z: f32[8] on device2:0 = sum(%x) {dim = [0], keepdim = false}\nreturn %y, %z\n}\n");
  const Block x(session, 3 * 8 * 4), y(session, 3 * 8 * 4), z(session, 32);
  for (const std::int64_t rows : {3, 0, 3}) REQUIRE(run(program, {x.at()}, {y.at(), z.at()}, {rows}) == TENON_OK);
}

TEST_CASE("whatever call of the driver fails is told, and the next call is right", "[graphs]") {
  const std::size_t modules = fake_cuda_modules(), blocks = fake_cuda_blocks(), graphs = fake_cuda_graphs();
  {
    CudaSession session;
    const TestProgram loaded = session.compile(kBranches);  // and with it the plugin
    const Block x(session, 64 * 32 * 4), d(session, 64 * 32 * 4), other(session, 64 * 32 * 4);
    int contained = 0;
    for (const int code : {1, 2}) {  // an invalid value, memory that is used up: the card is not lost
      for (int n = 0; n < 60; ++n) {
        fake_cuda_fail(n, code);
        try {
          const TestProgram program = session.compile(kBranches);
          const bool failed = run(program, {x.at()}, {d.at()}) != TENON_OK || run(program, {x.at()}, {other.at()}) != TENON_OK;
          contained += failed;
          fake_cuda_fail(-1, 0);
          REQUIRE(run(program, {x.at()}, {d.at()}) == TENON_OK);
        } catch (const Exception&) {
          ++contained;
        }
      }
      fake_cuda_fail(-1, 0);
    }
    CHECK(contained >= 20);
  }
  CHECK(fake_cuda_modules() == modules);
  CHECK(fake_cuda_blocks() == blocks);
  CHECK(fake_cuda_graphs() == graphs);
}
