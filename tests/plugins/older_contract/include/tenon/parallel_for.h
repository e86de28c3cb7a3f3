// Carries an exception of a loop body past the host's C frames.
#pragma once

#include <exception>
#include <mutex>
#include <utility>

#include "tenon/host_services.h"

namespace tenon::detail {

template <class Body>
struct LoopCall {
  Body& body;
  std::mutex mutex;
  std::exception_ptr first_failure;

  static void run(void* context, std::int64_t first, std::int64_t last) {
    auto& call = *static_cast<LoopCall*>(context);
    try {
      call.body(first, last);
    } catch (...) {
      std::lock_guard lock(call.mutex);
      if (!call.first_failure) call.first_failure = std::current_exception();
    }
  }
};

}  // namespace tenon::detail

template <class Body>
void tenon::HostServices::parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, Body&& body) const {
  detail::LoopCall<std::remove_reference_t<Body>> call{body, {}, {}};
  host_->parallel_for(host_->self, begin, end, grain, &decltype(call)::run, &call);
  if (call.first_failure) std::rethrow_exception(call.first_failure);
}
