#include "host/autodiff/kept_choice.h"

#include <algorithm>
// GCC takes the iterators of a graph without edges for not initialised.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#pragma GCC diagnostic pop

namespace tenon::host {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Flow = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS,
    boost::property<boost::vertex_index_t, std::size_t,
                    boost::property<boost::vertex_color_t, boost::default_color_type,
                                    boost::property<boost::vertex_distance_t, long, boost::property<boost::vertex_predecessor_t, Traits::edge_descriptor>>>>,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t, boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
using Vertex = Traits::vertex_descriptor;

void add_edge(Flow& flow, Vertex from, Vertex to, std::int64_t capacity) {
  const auto edge = boost::add_edge(from, to, flow).first, back = boost::add_edge(to, from, flow).first;
  boost::put(boost::edge_capacity, flow, edge, capacity);
  boost::put(boost::edge_capacity, flow, back, std::int64_t{0});
  boost::put(boost::edge_reverse, flow, edge, back);
  boost::put(boost::edge_reverse, flow, back, edge);
}

}  // namespace

std::vector<bool> choose_kept(const rewrite::KeepNetwork& network) {
  constexpr std::int64_t kNever = rewrite::KeepNetwork::kNever;
  // Two vertices a value, on the source's side of the cut where the value is needed, and where it is computed again. A value that is needed and not
  // computed is kept, one that is computed needs its operands.
  const std::size_t count = network.values.size();
  Flow flow(2 * count + 2);
  const Vertex source = 2 * count, sink = 2 * count + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const rewrite::KeepNetwork::Value& value = network.values[i];
    const Vertex needed = 2 * i, computed = 2 * i + 1;
    if (value.needed) add_edge(flow, source, needed, kNever);
    add_edge(flow, needed, computed, std::min(value.keep, kNever));
    if (value.compute == kNever) {
      add_edge(flow, computed, sink, kNever);
      continue;
    }
    add_edge(flow, computed, sink, value.compute);
    for (std::uint32_t operand : value.operands) add_edge(flow, computed, 2 * operand, kNever);
  }
  boost::boykov_kolmogorov_max_flow(flow, source, sink);
  const auto color = boost::get(boost::vertex_color, flow);
  const auto is_reached = [&](Vertex v) { return boost::get(color, v) == boost::black_color; };  // from the source
  std::vector<bool> kept(count);
  for (std::size_t i = 0; i < count; ++i) kept[i] = is_reached(2 * i) && !is_reached(2 * i + 1);
  return kept;
}

}  // namespace tenon::host
