#include "host/runtime/plans_by_size.h"

#include <algorithm>

#include "host/runtime/plan.h"

namespace tenon::host {

PlansBySize::Found PlansBySize::find_or_make(std::span<const std::int64_t> sizes, std::size_t limit, const Make& make) {
  std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    if (!std::equal(sizes.begin(), sizes.end(), entry.sizes.begin(), entry.sizes.end())) continue;
    entry.used = ++clock_;
    return {entry.plan, false, false};
  }
  Found found{make(), true, false};
  if (entries_.size() >= std::max<std::size_t>(limit, 1)) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; }));
    found.dropped = true;
  }
  entries_.push_back({{sizes.begin(), sizes.end()}, found.plan, ++clock_});
  return found;
}

std::shared_ptr<Plan> PlansBySize::latest() const {
  std::lock_guard lock(mutex_);
  const auto last = std::ranges::max_element(entries_, {}, &Entry::used);
  return last == entries_.end() ? nullptr : last->plan;
}

std::vector<std::shared_ptr<Plan>> PlansBySize::all() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Plan>> plans;
  for (const Entry& entry : entries_) plans.push_back(entry.plan);
  return plans;
}

}  // namespace tenon::host
