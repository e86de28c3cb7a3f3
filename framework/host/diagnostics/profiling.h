// Ranges of time and machine code, from plugins and from the host itself, to whoever listens in this process.
#pragma once

#include <string>

#include "core/abi/profiling.h"
#include "tenon/host.h"

namespace tenon::host {

/// What plugins and drivers tell by: the extension "profiling".
const TenonProfiling& profiling_table();

/// Gives ranges to the driver's listener, in place of the one before; null ends it. The listener must last as long as the process.
void set_range_listener(const TenonRangeListener* listener);
/// Gives ranges to the trace of the process, for good.
void set_trace_listener(const TenonRangeListener& listener);
/// Gives code to whoever writes it for perf, for good.
void set_code_listener(void (*listener)(const char* name, const void* code, std::size_t bytes, const char* file, std::int32_t line));

/// Whether somebody takes ranges now: one load.
bool takes_ranges() noexcept;

/// A range of the host's from `begin` to the end of its scope; none where that is never called.
class ProfiledRange {
 public:
  ProfiledRange() = default;
  /// Begins one of this name where somebody takes ranges.
  explicit ProfiledRange(const char* name) {
    if (takes_ranges()) begin(name);
  }
  ~ProfiledRange() {
    if (begun_) profiling_table().end();
  }
  ProfiledRange(const ProfiledRange&) = delete;
  ProfiledRange& operator=(const ProfiledRange&) = delete;

  /// Call it once, for a name that is dear to make, where somebody takes ranges.
  void begin(const std::string& name) {
    begun_ = true;
    profiling_table().begin(name.c_str(), "");
  }

 private:
  bool begun_ = false;
};

}  // namespace tenon::host
