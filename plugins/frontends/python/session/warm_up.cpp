#include "python/session/warm_up.h"

#include <mutex>
#include <thread>

#include "core/ir/buffer.h"
#include "core/ops/build/node_builder.h"
#include "tenon/host.h"

namespace tenon::python {
namespace {

std::thread& warm_up_thread() {
  static std::thread thread;
  return thread;
}

/// One kernel with a reduction and one without: each kind has its own way through a code generator.
ir::Graph graph_to_warm_up() {
  ir::Graph graph;
  const ir::ValueId x = graph.add_input(ir::Type::tensor(DType::f32, {32, 128}));
  const ir::ValueId y = graph.add_input(ir::Type::tensor(DType::f32, {64}));
  ops::NodeBuilder builder(graph);
  graph.add_output({.value = builder.one("softmax", {x}, {{"dim", ir::Dim(1)}})});
  graph.add_output({.value = builder.one("relu", {builder.one("add", {y, builder.literal(1.0)})})});
  return graph;
}

void warm_up() noexcept {
  try {
    const std::vector<std::uint8_t> buffer = ir::write_buffer(graph_to_warm_up());
    const TenonGraph graph{sizeof(TenonGraph), ir::bytes_of(buffer), nullptr, 0};
    tenon_warm_up(&graph);
  } catch (...) {  // the program's own compile will say what is wrong
  }
}

}  // namespace

void start_warm_up() {
  static const bool started = [] {
    warm_up_thread() = std::thread(warm_up);
    return true;
  }();
  (void)started;
}

void finish_warm_up() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (warm_up_thread().joinable()) warm_up_thread().join();
}

}  // namespace tenon::python
