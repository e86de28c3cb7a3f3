// Divides a graph among backends: who claims what, in groups that can run one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "host/devices/device_list.h"
#include "host/diagnostics/events.h"
#include "host/plugins/contact/crossing.h"
#include "host/plugins/registry/backend_instance.h"

namespace tenon::host {

/// In the place of a backend: the host itself runs the group, which is one node of control.
inline constexpr std::size_t kByHost = static_cast<std::size_t>(-1);
/// Likewise, one node that copies a tensor from one device to another.
inline constexpr std::size_t kCopiedByHost = static_cast<std::size_t>(-2);

/// A group of nodes for one backend.
struct PlannedGroup {
  std::vector<NodeId> nodes;   // in the order of the graph; readers of constants left out
  std::size_t backend = 0;     // position in the order of preference, kByHost, or kCopiedByHost
  std::vector<NodeId> constants = {};  // the readers of constants that the backend claimed with it, sorted
};

struct Partition {
  ir::Graph graph;  // the graph given, with composite nodes expanded where only their parts found a backend
  std::vector<PlannedGroup> groups;  // in an order in which they can run; they hold every node that computes
};

struct PartitionRequest {
  std::span<BackendInstance* const> backends;  // in order of preference; the last one takes what the others leave
  ConstantStore& constants;
  Events& events;
  std::span<const std::int64_t> expected_sizes;  // by SymbolId, for backends without dynamic shapes
  const DeviceList& devices;                     // for their names
  const std::string& options;                    // of the compile
};

/// Partitions. A backend is asked only about nodes on devices that it serves. A node of control that no backend claims whole is left to the
/// host, and so is a copy between devices. Throws (unsupported) when no backend serves a node's device, naming the device, the op, the user's
/// line and what is there; and when a node is wanted by no backend, with each backend's reason.
Partition partition(ir::Graph graph, const PartitionRequest& request);

}  // namespace tenon::host
