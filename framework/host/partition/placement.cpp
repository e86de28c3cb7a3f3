#include "host/partition/placement.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "core/ops/catalog.h"
#include "host/plugins/registry/backend_instance.h"

namespace tenon::host {
namespace {

constexpr std::int32_t kAnyIndex = -1;

}  // namespace

bool serves(const TenonBackend& backend, ir::Device device) {
  return std::ranges::any_of(std::span(backend.devices, backend.device_count), [&](const DLDevice& named) {
    return static_cast<std::uint32_t>(named.device_type) == device.kind && (named.device_id == device.index || named.device_id == kAnyIndex || device.is_host());
  });
}

std::string devices_text(const TenonBackend& backend) { return fmt::format("{}", fmt::join(served_devices(backend), ", ")); }

std::int64_t expected_bytes(const ir::Graph& graph, ValueId value, std::span<const std::int64_t> sizes) {
  const ir::Type& type = graph.type(value);
  if (!type.is_tensor() || graph.value(value).kind == ir::ValueKind::literal) return 0;
  auto bytes = static_cast<std::int64_t>(size_of(type.dtype));
  for (const ir::Dim& d : type.shape) bytes *= std::max<std::int64_t>(d.evaluate(sizes), 0);
  return bytes;
}

bool is_on_host(const ir::Graph& graph) {
  for (std::size_t t = 0; t < graph.types().size(); ++t)
    if (!graph.types()[ir::TypeId(t)].device.is_host()) return false;
  for (std::size_t r = 0; r < graph.region_capacity(); ++r)
    if (!is_on_host(graph.region(RegionId(r)))) return false;
  return true;
}

std::optional<ir::Device> find_device(const ir::Graph& graph, const ir::Node& node, const std::function<bool(ir::Device)>& wanted) {
  for (ValueId r : node.results)
    if (const ir::Type& type = graph.type(r); type.is_tensor() && wanted(type.device)) return type.device;
  for (ValueId v : node.operands)
    if (const ir::Type& type = graph.type(v); type.is_tensor() && !type.is_host_scalar() && wanted(type.device)) return type.device;
  for (RegionId r : node.regions)
    for (NodeId n : graph.region(r).nodes())
      if (const auto found = find_device(graph.region(r), graph.region(r).node(n), wanted)) return found;
  return std::nullopt;
}

std::optional<ir::Device> unserved_device(const TenonBackend& backend, const ir::Graph& graph, const ir::Node& node) {
  return find_device(graph, node, [&](ir::Device device) { return !serves(backend, device); });
}

bool copies_between_devices(const ir::Graph& graph, const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  if (!op || !op->traits.copies) return false;
  const ir::Device from = graph.type(node.operands[0]).device, to = graph.type(node.results[0]).device;
  return from != to && !(from.is_host() && to.is_host());
}

}  // namespace tenon::host
