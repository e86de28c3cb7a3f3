#include "python/library/torch_ref.h"

#include <atomic>

#include "python/library/torch_node_layout.h"

namespace tenon::python {
namespace {

using namespace node_layout;

// Strong counts are in the lower half of the word at 8, weak ones in the upper; bit 63 says that a Python object belongs to it.
constexpr std::uint64_t kHasPython = 1ull << 63;

std::atomic<std::uint64_t>& counts(void* object) { return layout::field<std::atomic<std::uint64_t>>(object, 8); }

}  // namespace

void TorchRef::count(void* object) noexcept {
  const std::uint64_t now = counts(object).fetch_add(1, std::memory_order_relaxed) + 1;
  if ((now & kHasPython) && static_cast<std::uint32_t>(now) == 2) [[unlikely]] call_slot(object, kCountPython);
}

void TorchRef::let_go(void* object) noexcept {
  std::atomic<std::uint64_t>& word = counts(object);
  if ((word.load(std::memory_order_acquire) & ~kHasPython) == kUnique) {
    word.store(0, std::memory_order_relaxed);
    return call_slot(object, kDelete);
  }
  const std::uint64_t now = word.fetch_sub(1, std::memory_order_acq_rel) - 1;
  const auto weak = [](std::uint64_t w) { return (w & ~kHasPython) >> 32; };
  if (static_cast<std::uint32_t>(now) == 0) {
    if (weak(now) != 1) {
      call_slot(object, kReleaseResources);
      if (weak(word.fetch_sub(1ull << 32, std::memory_order_acq_rel) - (1ull << 32)) != 0) return;
    }
    call_slot(object, kDelete);
  } else if ((now & kHasPython) && static_cast<std::uint32_t>(now) == 1) {
    call_slot(object, kDropPython);
  }
}

TorchRef TorchRef::lock(void* object) noexcept {
  std::atomic<std::uint64_t>& word = counts(object);
  std::uint64_t now = word.load(std::memory_order_relaxed);
  do {
    const auto strong = static_cast<std::uint32_t>(now);
    if (strong == 0 || ((now & kHasPython) && strong == 1)) return {};
  } while (!word.compare_exchange_weak(now, now + 1));
  return steal(object);
}

}  // namespace tenon::python
