#include "guarded_memory.h"

#include <algorithm>

namespace tenon::conformance {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::size_t kAlignment = 64;
constexpr std::byte kPattern{0x5c};

}  // namespace

GuardedMemory::GuardedMemory(std::size_t size, std::size_t misalignment)
    : storage_(size + 2 * kGuard + 2 * kAlignment, kPattern), size_(size) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data() + kGuard);
  start_ = storage_.data() + kGuard + (kAlignment - address % kAlignment) % kAlignment + misalignment;
}

void GuardedMemory::fill(std::byte value) { std::fill_n(start_, size_, value); }

bool GuardedMemory::intact() const {
  const std::byte* begin = storage_.data();
  const std::byte* end = begin + storage_.size();
  const std::byte* start = start_;
  const auto is_pattern = [](std::byte b) { return b == kPattern; };
  return std::all_of(begin, start, is_pattern) && std::all_of(start + size_, end, is_pattern);
}

}  // namespace tenon::conformance
