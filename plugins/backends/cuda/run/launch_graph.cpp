#include "run/launch_graph.h"

#include "schedule/schedule.h"

namespace tenon::cuda {
namespace {

/// A launch as the driver takes it; both read the launch's values.
class Arguments {
 public:
  explicit Arguments(const KernelLaunch& launch) {
    for (std::size_t i = 0; i < launch.values.size(); i += i == 0 ? launch.in_first : 1) pointers_.push_back(const_cast<std::uint64_t*>(&launch.values[i]));
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

/// Events that take times.
class Events {
 public:
  explicit Events(std::size_t count) {
    made_.reserve(count);
    while (made_.size() < count) {
      CUevent event = nullptr;
      Driver::get().event_create(&event, kWithTiming);
      made_.push_back(event);
    }
  }
  ~Events() {
    for (const CUevent event : made_) Driver::get().event_destroy.code(event);
  }
  Events(const Events&) = delete;

  CUevent operator[](std::size_t i) const { return made_[i]; }

 private:
  std::vector<CUevent> made_;
};

}  // namespace

void launch_kernel(const KernelLaunch& launch, CUstream stream) {
  Arguments arguments(launch);
  Driver::get().launch(launch.function, launch.blocks, 1, 1, kBlock, 1, 1, launch.shared_bytes, stream, arguments.pointers(), nullptr);
}

DriverGraph::~DriverGraph() {
  const Driver& driver = Driver::get();
  if (executable_) driver.graph_release.code(executable_);  // what is in flight ends first
  driver.graph_destroy.code(graph_);
}

std::vector<double> timed_launches(std::span<const KernelLaunch> launches, CUstream stream) {
  const Driver& driver = Driver::get();
  Events events(launches.size() + 1);
  DriverGraph graph;
  std::vector<CUgraphNode> before;  // the last node
  const auto then = [&](const auto& add) {
    CUgraphNode node = nullptr;
    add(&node);
    before = {node};
  };
  for (std::size_t i = 0; i <= launches.size(); ++i) {
    then([&](CUgraphNode* node) { driver.graph_event(node, graph.graph(), before.data(), before.size(), events[i]); });
    if (i < launches.size()) then([&](CUgraphNode* node) { driver.graph_add(node, graph.graph(), before.data(), before.size(), Arguments(launches[i]).node()); });
  }
  graph.instantiate();
  driver.graph_launch(graph.executable(), stream);
  driver.stream_synchronise(stream);
  std::vector<double> microseconds;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    float milliseconds = 0;
    driver.event_elapsed(&milliseconds, events[i], events[i + 1]);
    microseconds.push_back(1e3 * static_cast<double>(milliseconds));
  }
  return microseconds;
}

LaunchGraph::LaunchGraph(std::vector<KernelLaunch> launches, std::span<const std::vector<std::size_t>> after, bool kernels_wait) : launches_(std::move(launches)) {
  const Driver& driver = Driver::get();
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    std::vector<CUgraphNode> before;
    for (const std::size_t j : after[i]) before.push_back(nodes_[j]);
    // A kernel may start while the last one before it ends.
    const std::size_t early = kernels_wait && !before.empty() && driver.graph_connect.is_there() ? 1 : 0;
    driver.graph_add(&nodes_.emplace_back(), graph_.graph(), before.data() + early, before.size() - early, Arguments(launches_[i]).node());
    if (early == 1) driver.graph_connect(graph_.graph(), before.data(), &nodes_.back(), &kProgrammatic, 1);
  }
  graph_.instantiate();
}

void LaunchGraph::set(std::size_t number, const KernelLaunch& launch) {
  if (launches_[number] == launch) return;
  Driver::get().graph_set(graph_.executable(), nodes_[number], Arguments(launch).node());
  launches_[number] = launch;
}

}  // namespace tenon::cuda
