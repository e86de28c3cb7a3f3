// Ranges and code for profilers, as C++: free of charge while nobody listens.
#pragma once

#include <string>

#include "core/abi/profiling.h"
#include "core/abi/struct_size.h"
#include "tenon/host_services.h"

namespace tenon {

/// What the host knows of profilers. Cheap to copy; of a host that knows nothing, nobody ever listens.
class Profiling {
 public:
  explicit Profiling(const HostServices& host) : Profiling(static_cast<const TenonProfiling*>(host.feature("profiling"))) {}
  explicit Profiling(const TenonProfiling* table) : table_(table && TENON_COVERS(table, tell_code) ? table : nullptr) {}

  /// Whether somebody takes ranges now: two loads.
  bool takes_ranges() const { return table_ && __atomic_load_n(table_->takes_ranges, __ATOMIC_RELAXED) != 0; }
  /// Whether code that is made should be told.
  bool takes_code() const { return table_ && __atomic_load_n(table_->takes_code, __ATOMIC_RELAXED) != 0; }
  /// Tells code that may run from now on; an empty `file` where its place in the user's program is not known.
  void tell_code(const std::string& name, const void* code, std::size_t bytes, const std::string& file, int line) const {
    table_->tell_code(name.c_str(), code, bytes, file.c_str(), line);
  }

  const TenonProfiling* table() const { return table_; }

 private:
  const TenonProfiling* table_;
};

/// A range from `begin` to the end of its scope; none where that is never called.
class Range {
 public:
  Range() = default;
  ~Range() {
    if (table_) table_->end();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  /// Call it once, and only while somebody takes ranges. `place` is "file:line", or empty.
  void begin(const Profiling& profiling, const std::string& name, const std::string& place = {}) {
    table_ = profiling.table();
    table_->begin(name.c_str(), place.c_str());
  }

 private:
  const TenonProfiling* table_ = nullptr;
};

}  // namespace tenon
