#include "run/launch_graph.h"

#include "schedule/schedule.h"

namespace tenon::cuda {
namespace {

/// A launch as the driver takes it; both read the launch's values.
class Arguments {
 public:
  explicit Arguments(const KernelLaunch& launch) {
    for (const std::uint64_t& value : launch.values) pointers_.push_back(const_cast<std::uint64_t*>(&value));
    node_.function = launch.function;
    node_.blocks[0] = launch.blocks;
    node_.threads[0] = kBlock;
    node_.shared_bytes = launch.shared_bytes;
    node_.parameters = pointers_.data();
  }
  Arguments(const Arguments&) = delete;

  void** pointers() { return pointers_.data(); }
  const CUkernelNode* node() const { return &node_; }

 private:
  std::vector<void*> pointers_;
  CUkernelNode node_;
};

}  // namespace

void launch_kernel(const KernelLaunch& launch, CUstream stream) {
  Arguments arguments(launch);
  Driver::get().launch(launch.function, launch.blocks, 1, 1, kBlock, 1, 1, launch.shared_bytes, stream, arguments.pointers(), nullptr);
}

LaunchGraph::LaunchGraph(std::vector<KernelLaunch> launches, std::span<const std::vector<std::size_t>> after, bool kernels_wait) : launches_(std::move(launches)) {
  const Driver& driver = Driver::get();
  driver.graph_create(&graph_, 0);
  try {
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      std::vector<CUgraphNode> before;
      for (const std::size_t j : after[i]) before.push_back(nodes_[j]);
      // A kernel may start while the last one before it ends.
      const std::size_t early = kernels_wait && !before.empty() && driver.graph_connect.is_there() ? 1 : 0;
      driver.graph_add(&nodes_.emplace_back(), graph_, before.data() + early, before.size() - early, Arguments(launches_[i]).node());
      if (early == 1) driver.graph_connect(graph_, before.data(), &nodes_.back(), &kProgrammatic, 1);
    }
    driver.graph_instantiate(&executable_, graph_, 0);
  } catch (...) {
    driver.graph_destroy.code(graph_);
    throw;
  }
}

LaunchGraph::~LaunchGraph() {
  const Driver& driver = Driver::get();
  driver.graph_release.code(executable_);  // what is in flight ends first
  driver.graph_destroy.code(graph_);
}

void LaunchGraph::set(std::size_t number, const KernelLaunch& launch) {
  if (launches_[number] == launch) return;
  Driver::get().graph_set(executable_, nodes_[number], Arguments(launch).node());
  launches_[number] = launch;
}

}  // namespace tenon::cuda
