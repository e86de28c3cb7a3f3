// Plans of one group for single sizes: for backends that take no symbolic sizes, and where an assumption does not hold.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace tenon::host {

class Plan;

/// A bounded cache; the plan used longest ago goes first. Thread-safe; a plan that went stays alive while it runs.
class PlansBySize {
 public:
  struct Found {
    std::shared_ptr<Plan> plan;
    bool made = false;     // just now
    bool dropped = false;  // another one had to go
  };
  using Make = std::function<std::shared_ptr<Plan>()>;

  /// The plan for these sizes, made with `make` if there is none. One thread makes at a time.
  Found find_or_make(std::span<const std::int64_t> sizes, std::size_t limit, const Make& make);
  /// The plan that was used last; null when there is none.
  std::shared_ptr<Plan> latest() const;
  /// All plans, for collecting their counts.
  std::vector<std::shared_ptr<Plan>> all() const;

 private:
  struct Entry {
    std::vector<std::int64_t> sizes;
    std::shared_ptr<Plan> plan;
    std::uint64_t used = 0;
  };
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace tenon::host
