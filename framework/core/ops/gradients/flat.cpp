#include "core/ops/gradients/flat.h"

#include <algorithm>
#include <array>

namespace tenon::ops {

bool has_flat_gradient(std::string_view op) {
  constexpr std::array<std::string_view, 10> kFlat = {"relu",       "relu6",      "hardtanh", "leaky_relu",            "threshold",
                                                      "hardshrink", "softshrink", "max_pool", "max_pool_with_indices", "window_sum"};
  return std::ranges::find(kFlat, op) != kFlat.end();
}

}  // namespace tenon::ops
