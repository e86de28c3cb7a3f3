// Launches of kernels as one graph of the driver, which later calls launch again with other arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "driver/driver.h"

namespace tenon::cuda {

/// One launch of a kernel: its function, its blocks, the shared memory of each, and the 8 bytes of each parameter. The first parameter may be a table of
/// several of them.
struct KernelLaunch {
  CUfunction function = nullptr;
  unsigned blocks = 1;
  unsigned shared_bytes = 0;
  std::vector<std::uint64_t> values;
  std::size_t in_first = 1;  // values

  friend bool operator==(const KernelLaunch&, const KernelLaunch&) = default;
};

/// Launches now, on a stream.
void launch_kernel(const KernelLaunch& launch, CUstream stream);

/// Launches one after the other, on a stream, waits for the last one, and gives the microseconds of each by events between them. What the card takes from one
/// to the next is part of it, about one microsecond; what the host takes is not: all are one graph of the driver.
std::vector<double> timed_launches(std::span<const KernelLaunch> launches, CUstream stream);

/// A graph of the driver.
class DriverGraph {
 public:
  DriverGraph() { Driver::get().graph_create(&graph_, 0); }
  ~DriverGraph();
  DriverGraph(const DriverGraph&) = delete;

  CUgraph graph() const { return graph_; }
  /// Null until it is made.
  CUgraphExec executable() const { return executable_; }
  /// Behind all nodes.
  void instantiate() { Driver::get().graph_instantiate(&executable_, graph_, 0); }

 private:
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

/// Made for the first launches; `set` changes one for all launches of the graph from then on. One thread at a time, in the card's context.
class LaunchGraph {
 public:
  /// `after`: by launch, those before it that it waits for. `kernels_wait`: each waits itself for those, before it touches memory.
  LaunchGraph(std::vector<KernelLaunch> launches, std::span<const std::vector<std::size_t>> after, bool kernels_wait);

  /// Does nothing where the launch is that already.
  void set(std::size_t number, const KernelLaunch& launch);
  void launch(CUstream stream) const { Driver::get().graph_launch(graph_.executable(), stream); }

 private:
  std::vector<KernelLaunch> launches_;
  std::vector<CUgraphNode> nodes_;
  DriverGraph graph_;
};

}  // namespace tenon::cuda
