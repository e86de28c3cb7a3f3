#include "python/evaluator/unrolled_loops.h"

#include <fmt/format.h>

namespace tenon::python {
namespace {

// Networks that go through a sequence step by step have fewer, each with more to do.
constexpr std::size_t kMostRounds = 2000;

}  // namespace

UnrolledLoop::UnrolledLoop(std::size_t stop_before)
    : GraphBreak(fmt::format("a loop goes round more than {} times, and each time records operations: written out, they would take long to compile", kMostRounds),
                 "the loop runs as plain Python; an operation on whole tensors (a cumulative sum, a convolution) would be compiled"),
      stop_before_(stop_before) {}

void UnrolledLoops::goes_back(const void* code, std::int32_t target, std::size_t now, std::size_t recorded) {
  constexpr std::uintptr_t kSpread = 0x9E3779B97F4A7C15u;
  const auto [found, fresh] = loops_.try_emplace(reinterpret_cast<std::uintptr_t>(code) * kSpread + static_cast<std::uintptr_t>(target), Loop{0, now, recorded});
  Loop& loop = found->second;
  if (++loop.rounds > kMostRounds && recorded - loop.recorded >= loop.rounds) throw UnrolledLoop(loop.first);
}

}  // namespace tenon::python
