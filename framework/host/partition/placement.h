// Which devices a node computes on, and which backends serve them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/abi/plugin.h"
#include "core/ir/graph.h"

namespace tenon::host {

/// Whether a backend takes nodes of a device: it names that one, or, by the index -1, every one of its kind. All indices of the host are
/// one memory.
bool serves(const TenonBackend& backend, ir::Device device);
/// The devices that a backend names, as "cpu:0, device9": a kind alone where it takes every one.
std::string devices_text(const TenonBackend& backend);

/// Bytes of a value at the sizes to expect, by symbol; 0 for what takes no memory of a run.
std::int64_t expected_bytes(const ir::Graph& graph, ValueId value, std::span<const std::int64_t> sizes);

/// True when all values of a graph and its regions are in the host's memory.
bool is_on_host(const ir::Graph& graph);

/// The first device of a node, its regions included, that `wanted` holds for. Operands that are scalars of the host do not count: they may
/// stand beside tensors of any device.
std::optional<ir::Device> find_device(const ir::Graph& graph, const ir::Node& node, const std::function<bool(ir::Device)>& wanted);
/// A device of the node that the backend does not serve; nothing where it serves all.
std::optional<ir::Device> unserved_device(const TenonBackend& backend, const ir::Graph& graph, const ir::Node& node);

/// True for a node that copies from one device to another: no backend is asked, the host does it. Between the host's own it is any backend's.
bool copies_between_devices(const ir::Graph& graph, const ir::Node& node);

}  // namespace tenon::host
