#include "host/passes/graph_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace tenon::host {
namespace {

std::size_t mixed(std::size_t seed, std::size_t value) { return seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2)); }

std::size_t hash_of(const std::vector<ir::Dim>& dims) {
  std::size_t h = dims.size();
  for (const ir::Dim& dim : dims) h = mixed(h, dim.hash());
  return h;
}

struct AttributeHash {
  std::size_t operator()(std::monostate) const { return 1; }
  std::size_t operator()(const ir::Dim& dim) const { return dim.hash(); }
  std::size_t operator()(const std::vector<ir::Dim>& dims) const { return hash_of(dims); }
  std::size_t operator()(const std::vector<double>& numbers) const {
    std::size_t h = numbers.size();
    for (double number : numbers) h = mixed(h, std::hash<double>()(number));
    return h;
  }
  template <class T>
  std::size_t operator()(const T& value) const {
    return std::hash<T>()(value);
  }
};

std::size_t hash_of(const ir::Graph& graph, ValueId v) {
  const ir::Value& value = graph.value(v);
  return value.kind == ir::ValueKind::literal ? std::visit(AttributeHash(), value.literal) : std::hash<std::string>()(value.name);
}

std::size_t hash_of(const ir::Graph& graph, const ir::Node& node) {
  std::size_t h = node.op.number();
  for (ValueId v : node.operands) h = mixed(h, hash_of(graph, v));
  for (ValueId r : node.results) h = mixed(mixed(h, hash_of(graph, r)), hash_of(graph.type(r).shape));
  for (const ir::NamedAttribute& a : node.attributes) h = mixed(mixed(h, a.name.number()), std::visit(AttributeHash(), a.value));
  for (RegionId r : node.regions)
    for (NodeId n : graph.region(r).nodes()) h = mixed(h, hash_of(graph.region(r), graph.region(r).node(n)));
  return h;
}

std::vector<std::size_t> hashes_of(const ir::Graph& graph) {
  std::vector<std::size_t> hashes;
  for (NodeId n : graph.nodes()) hashes.push_back(hash_of(graph, graph.node(n)));
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

}  // namespace

std::size_t count_changes(const ir::Graph& before, const ir::Graph& after) {
  const std::vector<std::size_t> a = hashes_of(before), b = hashes_of(after);
  std::vector<std::size_t> different;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(different));
  return different.size();
}

std::string broken_promise(const ir::Graph& before, const ir::Graph& after) {
  if (after.inputs().size() != before.inputs().size()) return fmt::format("it changed the number of inputs from {} to {}", before.inputs().size(), after.inputs().size());
  if (after.outputs().size() != before.outputs().size()) return fmt::format("it changed the number of outputs from {} to {}", before.outputs().size(), after.outputs().size());
  if (after.symbols().size() < before.symbols().size()) return fmt::format("it left {} of {} symbols", after.symbols().size(), before.symbols().size());
  for (std::size_t s = 0; s < before.symbols().size(); ++s)
    if (after.symbols()[s].name != before.symbols()[s].name) return fmt::format("it renamed symbol {} to {}", before.symbols()[s].name, after.symbols()[s].name);
  for (std::size_t i = 0; i < before.inputs().size(); ++i)
    if (after.type(after.inputs()[i]) != before.type(before.inputs()[i])) return fmt::format("it changed the type of input %{}", before.value(before.inputs()[i]).name);
  for (std::size_t o = 0; o < before.outputs().size(); ++o) {
    const ir::Output &was = before.outputs()[o], &is = after.outputs()[o];
    const bool same_target = !was.target || !is.target ? !was.target && !is.target : before.value(was.target).index == after.value(is.target).index;
    if (is.kind != was.kind || !same_target) return fmt::format("it changed what output {} is", o);
    if (after.type(is.value) != before.type(was.value)) return fmt::format("it changed the type of output {}", o);
  }
  return {};
}

}  // namespace tenon::host
