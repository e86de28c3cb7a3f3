#include "host/driver/entry_guard.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace tenon::host {
namespace {

struct LastFailure {
  TenonFailure failure{TENON_OK, 0, "", TENON_NO_NODE, ""};
  std::string plugin, text;
};

LastFailure& last_failure() {
  thread_local LastFailure last;
  return last;
}

}  // namespace

std::int32_t remember(Code code, TenonPhase phase, const std::string& plugin, std::uint32_t node, const std::string& text) noexcept {
  try {
    LastFailure& last = last_failure();
    last.plugin = plugin;
    last.text = text;
    last.failure = {static_cast<std::int32_t>(code), phase, last.plugin.c_str(), node, last.text.c_str()};
  } catch (...) {
    // Out of memory while telling of it: the code still says so.
  }
  return static_cast<std::int32_t>(code);
}

std::int32_t remember_current() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return remember(failure.code(), failure.phase(), failure.plugin(), failure.node(), failure.what());
  } catch (const Exception& exception) {
    return remember(exception.code(), TENON_PHASE_LOAD, "", TENON_NO_NODE, exception.what());
  } catch (const std::bad_alloc&) {
    return remember(Code::out_of_memory, TENON_PHASE_LOAD, "", TENON_NO_NODE, "out of memory");
  } catch (const std::exception& exception) {
    return remember(Code::internal, TENON_PHASE_LOAD, "", TENON_NO_NODE, exception.what());
  } catch (...) {
    return remember(Code::internal, TENON_PHASE_LOAD, "", TENON_NO_NODE, "an exception of unknown type");
  }
}

char* copy_for_caller(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace tenon::host

extern "C" {

const TenonFailure* tenon_last_error(void) { return &tenon::host::last_failure().failure; }
void tenon_free(void* memory) { std::free(memory); }

}  // extern "C"
