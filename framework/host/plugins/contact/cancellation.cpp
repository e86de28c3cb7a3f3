#include "host/plugins/contact/cancellation.h"

#include <utility>

#include "core/base/error.h"
#include "host/plugins/contact/call_state.h"

namespace tenon::host {

CancelScope::CancelScope(std::int32_t (*asked)(void* context), void* context)
    : asked_(asked), context_(context), outer_(std::exchange(CallState::current().cancel, this)) {}

CancelScope::~CancelScope() { CallState::current().cancel = outer_; }

bool CancelScope::given_up() {
  if (!given_up_.load(std::memory_order_relaxed) && asked_ && asked_(context_)) given_up_.store(true, std::memory_order_relaxed);
  return given_up_.load(std::memory_order_relaxed);
}

ProgressScope::ProgressScope(Progress* told) : outer_(std::exchange(CallState::current().progress, told)) {}
ProgressScope::~ProgressScope() { CallState::current().progress = outer_; }

bool cancelled() {
  CancelScope* scope = CallState::current().cancel;
  return scope && scope->given_up();
}

void stop_if_cancelled() {
  if (cancelled()) throw Exception(Code::cancelled, "the compile was cancelled");
}

}  // namespace tenon::host
