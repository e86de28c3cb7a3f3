#include "device/cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "tenon/host_services.h"

namespace tenon::cuda {
namespace {

/// Those that LLVM 19 names among the cards from sm_75 on; a newer card runs the PTX of the last.
constexpr int kArchitectures[] = {75, 80, 86, 87, 89, 90};
/// The one whose own instructions code uses: "sm_90a", which no other card runs.
constexpr int kWithWarpgroups = 90;

}  // namespace

Cards& Cards::get() {
  static Cards& cards = *new Cards;
  return cards;
}

Cards::Cards() {
  const Driver& driver = Driver::get();
  if (!driver.why_not().empty()) return;
  int count = 0;
  if (driver.device_count.code(&count) != kSuccess) return;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cards_.emplace_back();
    const std::string why_not = look_at(ordinal);
    if (why_not.empty()) devices_.push_back({kDLCUDA, ordinal});
    else left_out_ += fmt::format("; cuda:{} is left out: {}", ordinal, why_not);
  }
}

std::string Cards::look_at(int ordinal) {
  const Driver& driver = Driver::get();
  Card& card = cards_.back();
  char name[128] = {};
  int major = 0, minor = 0, has_pools = 0;
  try {
    driver.device(&card.device, ordinal);
    driver.device_name(name, sizeof name - 1, card.device);
    driver.device_memory(&card.memory_bytes, card.device);
    driver.device_attribute(&major, kMajor, card.device);
    driver.device_attribute(&minor, kMinor, card.device);
    driver.device_attribute(&has_pools, kHasMemoryPools, card.device);
  } catch (const Failure& failure) {
    return failure.what();
  }
  card.name = name;
  const int capability = 10 * major + minor;
  if (capability < kArchitectures[0]) return fmt::format("{} has compute capability {}.{}; code is made from 7.5 on", name, major, minor);
  if (!has_pools) return fmt::format("{} has no pools of memory", name);
  card.architecture = fmt::format("sm_{}{}", *(std::ranges::upper_bound(kArchitectures, capability) - 1), capability == kWithWarpgroups ? "a" : "");
  return {};
}

Card& Cards::at(int ordinal) {
  if (std::ranges::none_of(devices_, [&](DLDevice device) { return device.device_id == ordinal; }))
    throw Failure(TENON_NOT_FOUND, fmt::format("there is no cuda:{}{}", ordinal, left_out_));
  return cards_[static_cast<std::size_t>(ordinal)];
}

CUcontext Cards::context_of(int ordinal) {
  Card& card = at(ordinal);
  std::call_once(card.retained, [&] {
    const Driver& driver = Driver::get();
    driver.context_retain(&card.context, card.device);
    // Memory that is given back stays with the process: else every wait for a stream would give it to the system.
    CUmemoryPool pool = nullptr;
    driver.device_pool(&pool, card.device);
    std::uint64_t all = UINT64_MAX;
    driver.pool_set(pool, kReleaseThreshold, &all);
  });
  return card.context;
}

std::string Cards::why_none() const {
  if (!devices_.empty()) return {};
  if (const std::string& why_not = Driver::get().why_not(); !why_not.empty()) return why_not;
  return "the driver knows no card" + left_out_;
}

}  // namespace tenon::cuda
