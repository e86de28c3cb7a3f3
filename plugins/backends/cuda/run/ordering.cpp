#include "run/ordering.h"

#include <algorithm>

namespace tenon::cuda {
namespace {

bool meet(const Touch& a, const Touch& b) { return a.memory == b.memory && a.begin < b.end && b.begin < a.end && (a.written || b.written); }

bool meet(const std::vector<Touch>& a, const std::vector<Touch>& b) {
  return std::ranges::any_of(a, [&](const Touch& x) { return std::ranges::any_of(b, [&](const Touch& y) { return meet(x, y); }); });
}

}  // namespace

std::vector<std::vector<std::size_t>> order_of(const std::vector<std::vector<Touch>>& launches) {
  std::vector<std::vector<std::size_t>> after(launches.size());
  std::vector<std::vector<bool>> behind(launches.size());  // all that are before, directly or not
  for (std::size_t i = 0; i < launches.size(); ++i) {
    behind[i].assign(i, false);
    for (std::size_t j = i; j-- > 0;) {
      if (behind[i][j] || !meet(launches[i], launches[j])) continue;
      after[i].push_back(j);
      behind[i][j] = true;
      for (std::size_t k = 0; k < j; ++k) behind[i][k] = behind[i][k] || behind[j][k];
    }
  }
  return after;
}

}  // namespace tenon::cuda
