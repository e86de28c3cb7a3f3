#include "host/machine/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "host/machine/threads.h"

namespace tenon::host {
namespace {

struct Axis {
  std::int64_t size, to, from;
};

/// Drops axes of size 1, sorts by destination stride (so that writes are sequential), and joins axes that follow each other on both sides.
std::vector<Axis> simplified(std::span<const std::int64_t> to, std::span<const std::int64_t> from, std::span<const std::int64_t> sizes) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1) axes.push_back({sizes[i], to[i], from[i]});
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    if (!joined.empty() && joined.back().to == axis.to * axis.size && joined.back().from == axis.from * axis.size)
      joined.back() = {joined.back().size * axis.size, axis.to, axis.from};
    else
      joined.push_back(axis);
  }
  if (joined.empty()) joined.push_back({1, 0, 0});
  return joined;
}

template <class Element>
void copy_row(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride, std::int64_t size) {
  auto* out = reinterpret_cast<Element*>(to);
  const auto* in = reinterpret_cast<const Element*>(from);
  if (to_stride == 1 && from_stride == 1) {
    std::memcpy(out, in, static_cast<std::size_t>(size) * sizeof(Element));
    return;
  }
  for (std::int64_t i = 0; i < size; ++i) out[i * to_stride] = in[i * from_stride];
}

struct alignas(8) Sixteen {
  std::uint64_t parts[2];
};

using CopyRow = void (*)(std::byte*, std::int64_t, const std::byte*, std::int64_t, std::int64_t);

CopyRow row_copier(std::size_t element_bytes) {
  switch (element_bytes) {
    case 1: return copy_row<std::uint8_t>;
    case 2: return copy_row<std::uint16_t>;
    case 4: return copy_row<std::uint32_t>;
    case 8: return copy_row<std::uint64_t>;
    default: return copy_row<Sixteen>;
  }
}

}  // namespace

void strided_copy(std::byte* to, std::span<const std::int64_t> to_strides, const std::byte* from, std::span<const std::int64_t> from_strides,
                  std::span<const std::int64_t> sizes, std::size_t element_bytes) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  std::vector<Axis> axes = simplified(to_strides, from_strides, sizes);
  // One long axis is cut in two, so that the threads have rows to share.
  constexpr std::int64_t kRow = 16384;
  if (axes.size() == 1 && axes[0].size >= 2 * kRow) {
    const Axis whole = axes[0];
    const std::int64_t rows = whole.size / kRow, rest = whole.size % kRow;
    const auto bytes = static_cast<std::int64_t>(element_bytes);
    axes = {{rows, whole.to * kRow, whole.from * kRow}, {kRow, whole.to, whole.from}};
    const std::int64_t done = rows * kRow;
    row_copier(element_bytes)(to + done * whole.to * bytes, whole.to, from + done * whole.from * bytes, whole.from, rest);
  }
  const Axis row = axes.back();
  axes.pop_back();
  std::int64_t rows = 1;
  for (const Axis& axis : axes) rows *= axis.size;
  const CopyRow copy = row_copier(element_bytes);
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  parallel_loop(0, rows, std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, row.size * bytes)), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      std::int64_t rest = r, to_offset = 0, from_offset = 0;
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        const std::int64_t index = rest % axis->size;
        rest /= axis->size;
        to_offset += index * axis->to;
        from_offset += index * axis->from;
      }
      copy(to + to_offset * bytes, row.to, from + from_offset * bytes, row.from, row.size);
    }
  });
}

std::size_t extent_bytes(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::size_t element_bytes) {
  std::int64_t last = 0, bytes = 0;
  bool countable = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    std::int64_t reach = 0;
    countable = countable && strides[i] != INT64_MIN && !__builtin_mul_overflow(sizes[i] - 1, std::abs(strides[i]), &reach) && !__builtin_add_overflow(last, reach, &last);
  }
  countable = countable && last != INT64_MAX && !__builtin_mul_overflow(last + 1, static_cast<std::int64_t>(element_bytes), &bytes);
  if (!countable) throw Exception(Code::out_of_memory, "the bytes of a tensor of that size cannot be counted");
  return static_cast<std::size_t>(bytes);
}

std::size_t bytes_before_first(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::size_t element_bytes) {
  std::int64_t before = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
    before += (sizes[i] - 1) * std::max<std::int64_t>(-strides[i], 0);
  }
  return static_cast<std::size_t>(before) * element_bytes;
}

bool may_overlap_itself(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return false;
    if (sizes[i] > 1) axes.push_back({sizes[i], std::abs(strides[i]), 0});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to < b.to; });
  std::int64_t reach = 0;  // farthest element of the axes so far
  for (const Axis& axis : axes) {
    if (axis.to <= reach) return true;
    reach += (axis.size - 1) * axis.to;
  }
  return false;
}

}  // namespace tenon::host
