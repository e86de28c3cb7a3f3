#include "host/plugins/contact/plugin_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "host/plugins/contact/call_state.h"
#include "host/plugins/contact/given_text.h"
#include "host/plugins/contact/host_table.h"

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

thread_local constinit const CallWatch* CallWatch::innermost_ = nullptr;

void CallWatch::put_back() const noexcept {
  const FloatControl after = FloatControl::current();
  before_.restore();
  try {
    tell_float_control(*watched_, function_, before_.difference(after));
  } catch (...) {
    // Out of memory while telling of it: the arithmetic is as it was.
  }
}

std::int32_t report_escaped(const char* function) noexcept {
  ReportSlot& slot = CallState::current().slot();
  try {
    std::string what = "something that is no std::exception";
    try {
      throw;
    } catch (const std::exception& escaped) {
      what = fmt::format("an exception: {}", text_of(escaped.what()));
    } catch (...) {
    }
    const std::lock_guard lock(slot.mutex);
    slot.report = Report{TENON_PLUGIN_FAILED, TENON_NO_NODE, fmt::format("\"{}\" let out {}", function, what)};
  } catch (...) {
    // Out of memory: the code says that it failed.
  }
  return TENON_PLUGIN_FAILED;
}

}  // namespace tenon::host
