#include "python/call/plain_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tenon::python {
namespace {

constexpr std::size_t kCallsBefore = 12;  // without a compilation
constexpr std::size_t kCallsOfEither = 9;
constexpr double kMargin = 1.2;           // by which plain calls must be faster

double middle(std::vector<double> seconds) {
  const auto at = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, at);
  return *at;
}

}  // namespace

PlainTrial::Way PlainTrial::next() {
  if (state_ == State::left || state_ == State::kept) {
    if (++calls_ < patience_) return state_ == State::left ? Way::plain : Way::compiled;
    patience_ *= 4;  // what is called so often has settled
    state_ = State::watching;
    calls_ = 0;
  }
  // Not by turns: arguments may come by turns, too.
  return state_ == State::trying && plain_.size() < kCallsOfEither && (compiled_.size() > plain_.size() + 1 || (compiled_.size() + plain_.size()) % 3 == 1) ? Way::plain : Way::compiled;
}

void PlainTrial::took_compiled(double seconds, bool is_in_doubt) {
  if (!is_in_doubt) return begin_anew();
  if (state_ == State::trying) {
    compiled_.push_back(seconds);
    settle();
  } else if (state_ == State::watching && ++calls_ >= kCallsBefore) {
    state_ = State::trying;
  }
}

void PlainTrial::took_plain(double seconds) {
  if (state_ != State::trying) return;
  plain_.push_back(seconds);
  settle();
}

void PlainTrial::begin_anew() {
  if (state_ == State::kept || state_ == State::left) return;
  state_ = State::watching;
  calls_ = 0;
  compiled_.clear();
  plain_.clear();
}

void PlainTrial::settle() {
  if (compiled_.size() < kCallsOfEither || plain_.size() < kCallsOfEither) return;
  const double compiled = middle(std::exchange(compiled_, {})), plain = middle(std::exchange(plain_, {}));
  calls_ = 0;
  state_ = compiled > kMargin * plain ? State::left : State::kept;
  if (state_ == State::left)
    decision_ = fmt::format("it takes elements one by one, goes on as Python between its graphs, or has many variants: calls take {:.1f} us compiled, {:.1f} us plain", compiled * 1e6, plain * 1e6);
}

std::optional<std::string> PlainTrial::decision() { return std::exchange(decision_, {}); }

}  // namespace tenon::python
