// What stands between the C API and the host: no exception leaves, and the last failure of each thread is kept.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "host/diagnostics/failure.h"
#include "tenon/host.h"

namespace tenon::host {

/// Remembers the failure for tenon_last_error on this thread and gives its code.
std::int32_t remember(Code code, TenonPhase phase, const std::string& plugin, std::uint32_t node, const std::string& text) noexcept;
/// Remembers the exception that is being handled.
std::int32_t remember_current() noexcept;

/// Runs `body`; an exception becomes a code.
template <class Body>
std::int32_t guarded(const Body& body) noexcept {
  try {
    body();
    return TENON_OK;
  } catch (...) {
    return remember_current();
  }
}

/// A copy for the caller, who frees it with tenon_free.
char* copy_for_caller(const std::string& text);

}  // namespace tenon::host
