// Keeps exceptions inside the plugin: what an entry point throws becomes a report to the host and a TenonCode.
#pragma once

#include <exception>
#include <new>

#include "tenon/host_services.h"

#ifdef TENON_PLUGIN_CORE
#include "core/base/error.h"
#endif

namespace tenon::detail {

/// Reports a failure; returns its code, so that a call reads `return failed(...)`.
inline std::int32_t failed(const TenonHost* host, std::int32_t code, const char* text, std::uint32_t node = TENON_NO_NODE) noexcept {
  if (host) host->report(host->self, code, node, text);
  return code;
}

/// Runs `body` as the body of an entry point. Nothing that it throws crosses, whatever its type.
template <class Body>
std::int32_t guarded(const TenonHost* host, Body&& body) noexcept {
  try {
    body();
    return TENON_OK;
  } catch (const Failure& failure) {
    return failed(host, failure.code(), failure.what(), failure.node());
#ifdef TENON_PLUGIN_CORE
  } catch (const Exception& exception) {
    return failed(host, static_cast<std::int32_t>(exception.code()), exception.what());
#endif
  } catch (const std::bad_alloc&) {
    return failed(host, TENON_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& exception) {
    return failed(host, TENON_PLUGIN_FAILED, exception.what());
  } catch (...) {
    return failed(host, TENON_PLUGIN_FAILED, "the plugin threw something that is not a std::exception");
  }
}

}  // namespace tenon::detail
