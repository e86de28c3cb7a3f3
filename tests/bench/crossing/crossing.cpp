// What crossing the contract costs: writes, verifies and reads a synthetic graph, and prints the times as one JSON object.
//
//   bench_crossing [nodes = 5000] [rounds = 200]
//
// The graph: two operands, 1.5 results, 3 or 4 attributes, a name a value, a location for every three nodes, 4-D shapes. Each figure is the median of
// the rounds; `least_ms` has the best one. `read_ms` walks every node, operand, type and attribute through GraphView; `build_ms` makes a Graph.
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "core/abi/buffer_verifier.h"
#include "core/abi/graph_view.h"
#include "core/ir/buffer.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

Graph synthetic_graph(std::size_t nodes) {
  static constexpr const char* kOps[] = {"convolution", "add", "relu", "batch_norm", "mul", "max_pool2d", "sum", "gelu"};
  Graph g;
  std::vector<ValueId> values{g.add_input(Type::tensor(DType::f32, {8, 64, 56, 56}), "x")};
  SharedLocation location;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Type type = Type::tensor(DType::f32, {8, static_cast<std::int64_t>(64 + i % 97), 56, static_cast<std::int64_t>(28 << (i % 2))});
    Attributes attributes{{"stride", std::vector<Dim>{1, static_cast<std::int64_t>(1 + i % 2)}},
                          {"padding", std::vector<Dim>{0, 1}},
                          {"groups", Dim(static_cast<std::int64_t>(i % 4))}};
    if (i % 2) attributes.push_back({"eps", 1e-5});
    std::vector<Type> types(1 + i % 2, type);
    if (i % 3 == 0) location = Location{"model.py", static_cast<int>(10 + i / 3 % 400), "forward", "x = self.layer(x)"};
    const NodeId n = g.add_node(kOps[i % 8], {values[i * 7 % values.size()], values.back()}, std::move(attributes), std::move(types), location);
    for (ValueId r : g.node(n).results) values.push_back(r);
  }
  g.add_output({values.back(), OutputKind::result, {}});
  return g;
}

std::uint64_t sum_of(const DimRange& dims) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < dims.size(); ++i) sum += static_cast<std::uint64_t>(dims[i].constant());
  return sum;
}

/// Reads all there is to read; the sum keeps the compiler from leaving it out.
std::uint64_t walk(const GraphView& graph) {
  std::uint64_t sum = 0;
  for (NodeView node : graph.nodes()) {
    sum += node.op().size();
    for (ValueView v : node.operands()) sum += v.id();
    for (ValueView v : node.results()) {
      const TypeView type = v.type();
      sum += sum_of(type.dims());
      sum += static_cast<std::uint64_t>(type.dtype()) + v.name().size();
    }
    for (AttributeView a : node.attributes()) {
      sum += a.name().size() + a.kind();
      if (a.kind() == TENON_ATTRIBUTE_INTS) sum += sum_of(a.dims());
    }
  }
  return sum;
}

struct Times {
  double median = 0, least = 0;
};

template <class Work>
Times measure(int rounds, Work&& work) {
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[0]};
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t nodes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5000;
  const int rounds = std::max(1, argc > 2 ? std::atoi(argv[2]) : 200);
  const Graph graph = synthetic_graph(nodes);
  std::vector<std::uint8_t> buffer;
  const Times write = measure(rounds, [&] { buffer = write_buffer(graph); });
  const TenonBytes bytes = bytes_of(buffer);
  if (const std::string wrong = verify_buffer(bytes); !wrong.empty()) {
    fmt::print(stderr, "the buffer that was written is wrong: {}\n", wrong);
    return 1;
  }
  volatile std::uint64_t sink = 0;
  const Times verify = measure(rounds, [&] { sink = sink + verify_buffer(bytes).size(); });
  const Times read = measure(rounds, [&] { sink = sink + walk(GraphView(bytes)); });
  const Times build = measure(std::min(rounds, 20), [&] { sink = sink + read_buffer(bytes)->nodes().size(); });
  fmt::print("{{\"nodes\": {}, \"values\": {}, \"bytes\": {}, \"bytes_a_node\": {}, \"write_ms\": {:.3f}, \"verify_ms\": {:.3f}, \"read_ms\": {:.3f}, "
             "\"verify_and_read_ms\": {:.3f}, \"build_ms\": {:.3f}, \"least_ms\": {{\"write\": {:.3f}, \"verify\": {:.3f}, \"read\": {:.3f}, \"build\": {:.3f}}}}}\n",
             nodes, graph.value_capacity(), buffer.size(), buffer.size() / std::max<std::size_t>(nodes, 1), write.median, verify.median, read.median,
             verify.median + read.median, build.median, write.least, verify.least, read.least, build.least);
  return 0;
}
