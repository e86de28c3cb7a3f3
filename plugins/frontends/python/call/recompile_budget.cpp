#include "python/call/recompile_budget.h"

namespace tenon::python {
namespace {

constexpr std::uint64_t kFirstCalls = 4;  // that make up what a function is, rather than variants of it
constexpr std::size_t kFree = 16;         // calls that compile variants, whatever comes of them
constexpr std::uint64_t kLatest = 64;
// Of those that compile where variants are many: so many up to a number of calls, and a few more each time that it has quadrupled.
constexpr std::size_t kMost = 24, kMore = 8;
constexpr std::uint64_t kCallsOfMost = 512;

}  // namespace

bool RecompileBudget::grants() {
  if (last_miss_ == calls_) return answer_;
  last_miss_ = calls_;
  latest_[misses_++ % kFrequent] = calls_;
  answer_ = decide();
  if (calls_ > kFirstCalls) ++(answer_ ? granted_ : refused_);
  return answer_;
}

bool RecompileBudget::decide() {
  if (calls_ <= kFirstCalls || granted_ < kFree) return true;
  if (++waiting_ >= patience_) {  // what comes seldom, but for ever
    waiting_ = 0;
    patience_ *= 2;
    return true;
  }
  const std::uint64_t oldest = latest_[misses_ % kFrequent];
  const bool frequent = misses_ >= kFrequent && oldest + kLatest > calls_;
  return frequent && granted_ < most_now();
}

std::size_t RecompileBudget::most_now() const {
  std::size_t most = kMost;
  for (std::uint64_t calls = kCallsOfMost; calls <= calls_; calls *= 4) most += kMore;
  return most;
}

}  // namespace tenon::python
