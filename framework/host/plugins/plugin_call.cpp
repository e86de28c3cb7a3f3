#include "host/plugins/plugin_call.h"

#include <algorithm>

#include "host/plugins/call_state.h"

namespace tenon::host {

CallState& CallState::current() {
  thread_local CallState state;
  return state;
}

ReportSlot& CallState::slot() {
  thread_local ReportSlot own;
  return reports ? *reports : own;
}

std::optional<Report> take_report() {
  ReportSlot& slot = CallState::current().slot();
  const std::lock_guard lock(slot.mutex);
  return std::exchange(slot.report, std::nullopt);
}

CompileScope::CompileScope(const TenonGraph& graph) : state_(std::make_unique<State>()) {
  state_->graph = graph;
  state_->outer = std::exchange(CallState::current().compile, state_.get());
}

CompileScope::~CompileScope() { CallState::current().compile = state_->outer; }

std::vector<std::uint32_t> CompileScope::constants_read() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::uint32_t> result = state_->constants_read;
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace tenon::host
