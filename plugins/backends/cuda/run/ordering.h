// Which launches of a plan wait for which: those that touch memory which another one writes.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::cuda {

/// Bytes [begin, end) that a launch reads or writes, in one of several memories that do not overlap.
struct Touch {
  std::size_t memory = 0;
  std::int64_t begin = 0, end = 0;
  bool written = false;
};

/// By launch, in the order in which they may run one by one: those before that it has to wait for, without those that one of these waits for.
std::vector<std::vector<std::size_t>> order_of(const std::vector<std::vector<Touch>>& launches);

}  // namespace tenon::cuda
