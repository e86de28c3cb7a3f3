// Pieces of work that threads take: none is idle while another has more than one piece left.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace tenon::llvm_backend {

/// Large pieces, of which each thread has a run of its own, and small ones for the end. A thread that has done its run helps the others:
/// the last pieces that anybody works on are small, even where a thread starts late or loses its core for a while.
class Shares {
 public:
  Shares(std::int64_t large, std::int64_t small, std::int64_t threads) : runs_(static_cast<std::size_t>(threads)), small_{0, small} {
    for (std::int64_t t = 0; t < threads; ++t) {
      Run& run = runs_[static_cast<std::size_t>(t)];
      run.next = large * t / threads, run.end = large * (t + 1) / threads;
    }
  }

  /// Calls `large` and `small` with numbers of pieces until none is left.
  template <class Large, class Small>
  void take(std::int64_t thread, Large large, Small small) {
    for (std::size_t i = 0; i < runs_.size(); ++i) take_all(runs_[(static_cast<std::size_t>(thread) + i) % runs_.size()], large);
    take_all(small_, small);
  }

 private:
  struct alignas(64) Run {
    std::atomic<std::int64_t> next = 0;
    std::int64_t end = 0;
  };

  template <class Piece>
  static void take_all(Run& run, Piece piece) {
    for (std::int64_t n; (n = run.next.fetch_add(1, std::memory_order_relaxed)) < run.end;) piece(n);
  }

  std::vector<Run> runs_;
  Run small_;
};

}  // namespace tenon::llvm_backend
