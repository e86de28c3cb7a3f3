#include "host/runtime/stored_graph.h"

#include "core/ir/buffer.h"

namespace tenon::host {

void StoredGraph::store() {
  if (!graph_->constants().empty()) return;
  bytes_ = ir::write_buffer(*graph_);
  bytes_.shrink_to_fit();
  graph_.reset();
}

const ir::Graph& StoredGraph::read() const {
  const std::lock_guard lock(mutex_);
  if (!graph_) graph_ = std::make_unique<ir::Graph>(ir::read_buffer(ir::bytes_of(bytes_)).value());
  return *graph_;
}

ir::Graph StoredGraph::copy() const {
  const std::lock_guard lock(mutex_);
  return graph_ ? graph_->clone() : ir::read_buffer(ir::bytes_of(bytes_)).value();
}

}  // namespace tenon::host
