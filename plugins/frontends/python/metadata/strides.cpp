#include "python/metadata/strides.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "core/base/error.h"

namespace tenon::python {
namespace {

/// The operand's strides over the result's dimensions: 0 where it is broadcast.
Extents broadcast_strides(const Operand& operand, std::span<const std::int64_t> shape, bool zero_for_size_one) {
  TENON_CHECK(operand.shape.size() <= shape.size(), "an operand of {} dimensions for a result of {}", operand.shape.size(), shape.size());
  Extents strides(shape.size(), 0);
  const std::size_t offset = shape.size() - operand.shape.size();
  for (std::size_t i = 0; i < operand.shape.size(); ++i)
    if (operand.shape[i] != 1 || (!zero_for_size_one && shape[offset + i] == 1)) strides[offset + i] = operand.strides[i];
  return strides;
}

/// Dense strides with the dimensions of `order` from fastest to slowest.
Extents dense_strides(std::span<const std::int64_t> shape, std::span<const std::size_t> order) {
  Extents strides(shape.size(), 1);
  std::int64_t next = 1;
  for (std::size_t dim : order) {
    strides[dim] = next;
    next *= std::max<std::int64_t>(shape[dim], 1);
  }
  return strides;
}

/// The last dimension first: the order of row-major memory, fastest first.
std::vector<std::size_t> reversed_dimensions(std::size_t rank) {
  std::vector<std::size_t> order(rank);
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  return order;
}

/// The channels first, then the other dimensions from the last on: the order of channels last, fastest first.
std::vector<std::size_t> channels_last_order(std::size_t rank) {
  std::vector<std::size_t> order{1};
  for (std::size_t i = rank; i-- > 2;) order.push_back(i);
  order.push_back(0);
  return order;
}

bool is_channels_last(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (shape.size() != 4 && shape.size() != 5) return false;
  std::int64_t expected = 1;
  for (std::size_t dim : channels_last_order(shape.size())) {
    if (shape[dim] == 1) continue;
    if (strides[dim] != expected) return false;
    expected *= shape[dim];
  }
  return true;
}

/// torch's suggest_memory_format: strides that ascend in the order of channels last, also with gaps; what is ambiguous is not.
bool resembles_channels_last(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if ((shape.size() != 4 && shape.size() != 5) || strides[1] == 0) return false;
  std::int64_t least = 0;
  const auto ascends = [&](std::size_t dim) {
    if (shape[dim] == 0 || strides[dim] < least) return false;
    if (dim == 0 && least == strides[1]) return false;
    least = strides[dim] * std::max<std::int64_t>(shape[dim], 1);
    return true;
  };
  return std::ranges::all_of(channels_last_order(shape.size()), ascends);
}

Extents channels_last(std::span<const std::int64_t> shape) {
  return dense_strides(shape, channels_last_order(shape.size()));
}

bool equal(std::span<const std::int64_t> a, std::span<const std::int64_t> b) { return std::ranges::equal(a, b); }

/// TensorIterator::fast_set_up: what happens when all operands have the result's shape and one layout.
std::optional<Extents> fast_strides(std::span<const std::int64_t> shape, std::span<const Operand> operands) {
  auto all = [&](auto holds) { return std::ranges::all_of(operands, holds); };
  if (!all([&](const Operand& o) { return equal(o.shape, shape); })) return std::nullopt;
  if (all([](const Operand& o) { return is_row_major(o.shape, o.strides); })) return row_major(shape);
  if (all([](const Operand& o) { return is_channels_last(o.shape, o.strides); })) return channels_last(shape);
  const Operand& first = operands.front();
  if (all([&](const Operand& o) { return equal(o.strides, first.strides) && !memory_order(o.shape, o.strides).empty(); }))
    return Extents(first.strides.begin(), first.strides.end());
  return std::nullopt;
}

/// 1 when dimension a should come after b in memory order (fastest first), -1 before, 0 when the operands do not say.
int compare_torch(std::size_t a, std::size_t b, std::span<const std::int64_t> shape, std::span<const Extents> strides) {
  for (const Extents& s : strides) {
    if (s[a] == 0 || s[b] == 0) continue;
    if (s[a] != s[b]) return s[a] < s[b] ? -1 : 1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

/// 1 when b should come before a in NumPy's order, -1 when not, 0 when the operands do not say. Where they disagree, C order wins.
int compare_numpy(std::size_t a, std::size_t b, std::span<const Extents> strides) {
  bool ambiguous = true, swap = false;
  for (const Extents& s : strides) {
    if (s[a] == 0 || s[b] == 0) continue;
    if (std::abs(s[b]) <= std::abs(s[a])) {
      swap = false;
    } else if (ambiguous) {
      swap = true;
    }
    ambiguous = false;
  }
  return ambiguous ? 0 : swap ? 1 : -1;
}

}  // namespace

std::size_t byte_count(DType dtype, std::span<const std::int64_t> shape) {
  std::size_t bytes = size_of(dtype);
  for (std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

Extents row_major(std::span<const std::int64_t> shape) { return dense_strides(shape, reversed_dimensions(shape.size())); }

Extents torch_pointwise_strides(std::span<const std::int64_t> shape, std::span<const Operand> operands) {
  if (operands.empty() || shape.size() < 2) return row_major(shape);
  if (auto fast = fast_strides(shape, operands)) return *fast;
  std::vector<Extents> strides;
  for (const Operand& operand : operands) strides.push_back(broadcast_strides(operand, shape, false));
  std::vector<std::size_t> order = reversed_dimensions(shape.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t moving = i;
    for (std::size_t other = i; other-- > 0;) {
      const int comparison = compare_torch(order[other], order[moving], shape, strides);
      if (comparison < 0) break;
      if (comparison > 0) {
        std::swap(order[other], order[moving]);
        moving = other;
      }
    }
  }
  return dense_strides(shape, order);
}

Extents numpy_pointwise_strides(std::span<const std::int64_t> shape, std::span<const Operand> operands) {
  std::vector<Extents> strides;
  for (const Operand& operand : operands) strides.push_back(broadcast_strides(operand, shape, true));
  std::vector<std::size_t> order = reversed_dimensions(shape.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t moving = order[i];
    std::size_t position = i;
    for (std::size_t other = i; other-- > 0;) {
      const int comparison = compare_numpy(moving, order[other], strides);
      if (comparison < 0) break;
      if (comparison > 0) position = other;
    }
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(position), order.begin() + static_cast<std::ptrdiff_t>(i),
                order.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return dense_strides(shape, order);
}

Extents memory_format_strides(std::span<const std::int64_t> shape, std::span<const Operand> operands) {
  const bool last = std::ranges::any_of(operands, [](const Operand& o) { return resembles_channels_last(o.shape, o.strides); });
  return last ? channels_last(shape) : row_major(shape);
}

/// c10::TensorImpl's is_non_overlapping_and_dense: dimensions of size 1 may have any stride, and all where there are no elements.
static bool leaves_no_gaps(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  std::vector<std::size_t> dims = reversed_dimensions(shape.size());
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  std::erase_if(dims, [&](std::size_t dim) { return shape[dim] == 1; });
  std::ranges::stable_sort(dims, {}, [&](std::size_t dim) { return strides[dim]; });
  std::int64_t expected = 1;
  for (std::size_t dim : dims) {
    if (strides[dim] != expected) return false;
    expected *= shape[dim];
  }
  return true;
}

/// torch's preserve_format: strides that leave no gaps stay, also those of dimensions of size 1.
static Extents copied_strides(std::span<const std::int64_t> shape, const Operand& self) {
  if (self.shape.size() != shape.size()) return row_major(shape);
  const Operand part{shape, self.strides};
  if (leaves_no_gaps(shape, self.strides)) return Extents(self.strides.begin(), self.strides.end());
  return torch_pointwise_strides(shape, {&part, 1});
}

Extents pointwise_strides(ops::Flavour flavour, std::span<const std::int64_t> shape, std::span<const Operand> operands) {
  return flavour == ops::Flavour::torch ? torch_pointwise_strides(shape, operands) : numpy_pointwise_strides(shape, operands);
}

Extents strides_by(const ops::AliasLayout& rule, std::span<const std::int64_t> shape, std::span<const Operand> operands) {
  if (rule.layout == ops::ResultLayout::row_major || operands.empty()) return row_major(shape);
  const Operand& self = operands.front();
  if (rule.broadcasts && !equal(self.shape, shape)) return row_major(shape);
  if (rule.copies) return copied_strides(shape, self);
  if (!resembles_channels_last(self.shape, self.strides) && !(rule.row_major_stays && is_channels_last(self.shape, self.strides))) return row_major(shape);
  if (rule.row_major_stays && is_row_major(self.shape, self.strides)) return row_major(shape);
  return channels_last(shape);
}

MemoryOrder memory_order(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  const auto size = [&](std::int64_t dim) { return shape[static_cast<std::size_t>(dim)]; };
  const auto stride = [&](std::int64_t dim) { return strides[static_cast<std::size_t>(dim)]; };
  std::vector<std::int64_t> single, order;  // of size 1, and all, the fastest first
  std::vector<std::int64_t> dims(shape.size());
  std::iota(dims.rbegin(), dims.rend(), std::int64_t{0});
  std::ranges::stable_sort(dims, {}, stride);
  std::ranges::copy_if(dims, std::back_inserter(single), [&](std::int64_t dim) { return size(dim) == 1; });
  std::int64_t expected = 1;
  // Dimensions of size 1 may lie anywhere: where their strides say, or outermost.
  const auto place_single = [&](bool all) {
    std::erase_if(single, [&](std::int64_t dim) {
      if (!all && stride(dim) != expected) return false;
      order.push_back(dim);
      return true;
    });
  };
  for (std::int64_t dim : dims) {
    if (size(dim) == 1) continue;
    if (stride(dim) != expected) return {};
    place_single(false);
    order.push_back(dim);
    expected *= size(dim);
  }
  place_single(true);
  std::ranges::reverse(order);
  return order;
}

MemoryOrder order_of_like(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  MemoryOrder order = memory_order(shape, strides);
  if (!order.empty() && !is_row_major(shape, strides)) return order;
  order.resize(shape.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (is_row_major(shape, strides)) return order;
  const auto stride = [&](std::int64_t dim) { return strides[static_cast<std::size_t>(dim)]; };
  std::ranges::stable_sort(order, std::ranges::greater(), stride);
  const auto is_open = [&](std::int64_t outer, std::int64_t inner) { return stride(outer) == stride(inner) && shape[static_cast<std::size_t>(outer)] != 1; };
  const bool open = std::ranges::adjacent_find(order, is_open) != order.end() || std::ranges::find(strides, 0) != strides.end();
  return open ? MemoryOrder() : order;
}

MemoryOrder inverse(const MemoryOrder& order) {
  MemoryOrder places(order.size());
  for (std::size_t d = 0; d < order.size(); ++d) places[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
  return places;
}

Extents dense_strides(std::span<const std::int64_t> shape, std::span<const std::int64_t> order) {
  Extents strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t at = order.size(); at-- > 0;) {
    strides[static_cast<std::size_t>(order[at])] = stride;
    stride *= std::max<std::int64_t>(shape[static_cast<std::size_t>(order[at])], 1);
  }
  return strides;
}

bool same_layout(std::span<const std::int64_t> shape, std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && a[d] != b[d]) return false;
  return true;
}

}  // namespace tenon::python
