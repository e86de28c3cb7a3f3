// How many variants of a function are compiled: those that its calls keep coming to, and no more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tenon::python {

/// Counts the calls of a function for which something was compiled, its continuations included. The first few are free. After them one more is
/// compiled for only while much of the latest calls came to what was not compiled, and up to a number that grows with the logarithm of the calls;
/// what is not compiled runs as plain Python from where it begins, and may be compiled later. Goes by counts alone: the same calls compile the
/// same. Needs the GIL.
class RecompileBudget {
 public:
  void begins_call() { ++calls_; }
  /// Takes note that the present call has come to what is not compiled. Gives whether that may be compiled: one answer a call.
  bool grants();
  /// Whether it has refused any call.
  bool is_exceeded() const { return refused_ > 0; }
  void clear() { *this = {}; }

 private:
  bool decide();
  std::size_t most_now() const;

  static constexpr std::size_t kFrequent = 16;  // of the latest kLatest calls
  std::uint64_t calls_ = 0, last_miss_ = 0;
  std::size_t misses_ = 0, granted_ = 0, refused_ = 0, waiting_ = 0, patience_ = 512;
  bool answer_ = false;
  std::array<std::uint64_t, kFrequent> latest_{};  // calls with a miss
};

}  // namespace tenon::python
