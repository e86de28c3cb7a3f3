// Memory that is fetched while something else is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::llvm_backend {

/// Memory that is needed soon, which microkernels fetch into the second-level cache, a part with each call: memory is slower than it.
class Ahead {
 public:
  Ahead() = default;
  explicit Ahead(std::span<const std::byte> bytes) : Ahead(bytes.data(), kLine, kLine, static_cast<std::int64_t>(bytes.size()) / kLine) {}
  /// `rows` runs of `bytes`, which start `stride` bytes apart.
  Ahead(const std::byte* first, std::int64_t bytes, std::int64_t stride, std::int64_t rows)
      : first_(first), stride_(stride), rows_(rows), lines_(rows > 0 ? (bytes + kLine - 1) / kLine : 0) {}

  /// Has `next` fetched after it, which lives at least as long.
  void before(Ahead& next) { after_ = &next; }

  /// Whether nothing is left.
  bool empty() const { return line_ >= lines_ && (after_ == nullptr || after_->empty()); }

  /// Lines that start `stride` bytes apart.
  struct Part {
    const std::byte* first;
    std::int64_t stride;
  };

  /// The next `lines` lines, of as many rows; where nothing is left, that many times the one at `near`. Lines past the last row are
  /// fetched too: what lies there is often wanted next.
  Part next(std::int64_t lines, const void* near) {
    if (line_ >= lines_) return after_ ? after_->next(lines, near) : Part{static_cast<const std::byte*>(near), 0};
    const Part part{first_ + row_ * stride_ + line_ * kLine, stride_};
    row_ += lines;
    if (row_ >= rows_) row_ = 0, ++line_;
    return part;
  }

 private:
  static constexpr std::int64_t kLine = 64;
  const std::byte* first_ = nullptr;
  Ahead* after_ = nullptr;
  std::int64_t stride_ = 0, rows_ = 0, lines_ = 0, row_ = 0, line_ = 0;
};

}  // namespace tenon::llvm_backend
