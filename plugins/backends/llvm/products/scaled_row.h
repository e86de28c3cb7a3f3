// A row of a product times a factor.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tenon::llvm_backend {

/// to[j] = from[j] * factor; they may be the same. Elements are read and written a chunk at a time, which takes vectors.
template <class T>
void scaled(const T* from, T factor, T* to, std::int64_t count) {
  constexpr std::int64_t kChunk = 8;
  std::int64_t j = 0;
  for (; j + kChunk <= count; j += kChunk) {
    std::array<T, kChunk> chunk;
    for (std::size_t l = 0; l < kChunk; ++l) chunk[l] = from[j + static_cast<std::int64_t>(l)] * factor;
    std::copy_n(chunk.begin(), kChunk, to + j);
  }
  for (; j < count; ++j) to[j] = from[j] * factor;
}

}  // namespace tenon::llvm_backend
