// Prints what checking the types of a node takes, by op, in microseconds of processor time; the worst last.
//
//   type_costs [COUNT] [OP]
//
// Each sample of each op stands in a graph of COUNT nodes of that kind (default 100), as layers of large models do; with 1, and less
// clearly, what the first one takes, with all that a composite op is made of. What is printed of an op is its dearest sample, at the best
// of five runs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <tuple>

#include "core/ops/catalog.h"
#include "core/ops/check/type_checker.h"
#include "core/ops/reference/sample.h"

namespace {

using namespace tenon;

constexpr double kAsked = 10;  // microseconds a node

double processor_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

/// The one node of a graph, `count` times. Sizes that depend on data get symbols of their own.
ir::Graph repeated(ir::Graph graph, std::size_t count) {
  const ir::Node node = graph.node(*graph.nodes().begin());
  std::vector<ir::Type> types;
  for (ValueId r : node.results) types.push_back(graph.type(r));
  for (std::size_t i = 1; i < count; ++i) {
    for (ir::Type& type : types)
      for (ir::Dim& d : type.shape)
        if (!d.is_constant()) d = ir::Dim::symbol(graph.add_symbol({.name = fmt::format("u{}", graph.symbols().size())}));
    graph.add_node(node.op, node.operands, node.attributes, types);
  }
  return graph;
}

/// Microseconds a node; negative where the types of the sample are not accepted.
double cost(const ops::Op& op, const ops::Sample& sample, std::size_t count) {
  const ir::Graph graph = repeated(ops::sample_graph(op, sample), count);
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const double start = processor_microseconds();
    if (!ops::check_types(graph).violations.empty()) return -1;
    best = std::min(best, processor_microseconds() - start);
  }
  return best / static_cast<double>(count);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100;
  std::vector<std::tuple<double, std::string, std::string>> costs;
  for (const ops::Op& op : ops::all_ops()) {
    if (argc > 2 && op.name != argv[2]) continue;
    std::tuple worst(-1.0, op.name, std::string());
    for (const ops::Sample& sample : ops::samples_of(op)) worst = std::max(worst, std::tuple(cost(op, sample, count), op.name, sample.name));
    costs.push_back(worst);
  }
  std::ranges::sort(costs);
  for (const auto& [microseconds, op, sample] : costs) fmt::print("{:8.2f}  {} ({})\n", microseconds, op, sample);
  if (costs.empty()) return 1;
  const auto dear = std::ranges::count_if(costs, [](const auto& cost) { return std::get<0>(cost) > kAsked; });
  fmt::print("{} ops: median {:.2f}, 90 % {:.2f}, most {:.2f}; {} over {} us\n", costs.size(), std::get<0>(costs[costs.size() / 2]), std::get<0>(costs[costs.size() * 9 / 10]), std::get<0>(costs.back()), dear, kAsked);
  return 0;
}
