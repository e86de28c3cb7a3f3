// The host that the kit plays for the plugin under test.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/abi/plugin.h"

namespace tenon::conformance {

/// What the plugin said when a call failed.
struct Report {
  std::int32_t code = TENON_INTERNAL;
  std::uint32_t node = TENON_NO_NODE;
  std::string text;
};

/// The table of the host's functions. Logs go nowhere; parallel_for runs on threads of its own, with small and uneven parts, so that
/// a body that is not fit for threads shows.
const TenonHost& kit_host();

/// The report of this thread since the last take, if there is one.
std::optional<Report> take_report();

/// Lets read_constant answer, on this thread, while it lives.
class ConstantScope {
 public:
  explicit ConstantScope(std::span<const DLTensor* const> constants);
  ~ConstantScope();
  ConstantScope(const ConstantScope&) = delete;
  ConstantScope& operator=(const ConstantScope&) = delete;
};

}  // namespace tenon::conformance
