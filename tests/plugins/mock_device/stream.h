// A stream of work that a thread does in order, late on purpose.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

namespace tenon::mock {

/// How late work is begun when nobody asks for it; never, where it is held.
struct Lateness {
  std::chrono::microseconds most{100};
  std::atomic<bool> hold{false};  // tests switch it while streams run
};

/// Thread-safe. Work that throws ends nothing: what it threw comes out of the next `wait` for a point behind it.
class Stream {
 public:
  explicit Stream(const Lateness& lateness) : lateness_(lateness) {}
  /// Does what is left.
  ~Stream();
  Stream(const Stream&) = delete;

  void give(std::function<void()> work);
  /// How much work has been given.
  std::uint64_t given() const;
  /// Whether the first `count` pieces have been done. Has them done soon. Throws what one of them threw.
  bool is_done(std::uint64_t count);
  /// Returns when they have been done. Throws what one of them threw.
  void wait(std::uint64_t count);

 private:
  using Clock = std::chrono::steady_clock;
  struct Piece {
    std::function<void()> work;
    Clock::time_point due;
  };

  void run();
  void ask_for(std::uint64_t count);
  void throw_failure(std::uint64_t count);

  const Lateness& lateness_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, done_;
  std::deque<Piece> queue_;
  std::uint64_t given_count_ = 0, done_count_ = 0, asked_ = 0;
  std::exception_ptr failure_;
  std::uint64_t failed_at_ = 0;
  bool ends_ = false;
  std::minstd_rand random_{12345};
  std::thread thread_;  // begins with the first piece
};

}  // namespace tenon::mock
