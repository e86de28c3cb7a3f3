// Memory that is fetched while something else is computed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::llvm_backend {

/// Fetches memory that is needed soon into the second-level cache, a part with each call of the microkernel: memory is slower than it.
class Ahead {
 public:
  Ahead() = default;
  Ahead(std::span<const std::byte> bytes, std::int64_t calls) : bytes_(bytes), lines_((static_cast<std::int64_t>(bytes.size()) / kLine + calls) / calls) {}

  void fetch() {
    constexpr int kForReading = 0, kIntoSecondLevel = 2;
    for (std::int64_t i = 0; i < lines_ && !bytes_.empty(); ++i) {
      __builtin_prefetch(bytes_.data(), kForReading, kIntoSecondLevel);
      bytes_ = bytes_.subspan(std::min<std::size_t>(kLine, bytes_.size()));
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;
  std::span<const std::byte> bytes_;
  std::int64_t lines_ = 0;
};

}  // namespace tenon::llvm_backend
