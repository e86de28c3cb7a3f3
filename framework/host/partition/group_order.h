// The order of groups of devices that need nothing of each other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/partition/partition.h"

namespace tenon::host {

/// Of two neighbours the one that leaves less in the memory of a device runs first, where less lies there at a time then: a gradient of a weight frees what
/// one of an input is computed beside. No order that this gives needs more than the one it is given. Groups of the host, those that draw numbers or may fail
/// for what they read, and those that write over inputs stay where they are, and all of them where a size is known late. `sizes`: by symbol, those to expect.
void order_by_memory(const ir::Graph& graph, std::span<const std::int64_t> sizes, std::vector<PlannedGroup>& groups);

}  // namespace tenon::host
