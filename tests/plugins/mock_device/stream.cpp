#include "stream.h"

#include <algorithm>
#include <utility>

namespace tenon::mock {

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Stream::give(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  const auto most = static_cast<std::minstd_rand::result_type>(lateness_.most.count() + 1);
  queue_.push_back({std::move(work), Clock::now() + std::chrono::microseconds(random_() % most)});
  ++given_count_;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  if (!lateness_.hold && queue_.size() == 1) changed_.notify_one();
}

std::uint64_t Stream::given() const {
  const std::lock_guard lock(mutex_);
  return given_count_;
}

void Stream::ask_for(std::uint64_t count) {
  if (count <= asked_) return;
  asked_ = count;
  changed_.notify_one();
}

void Stream::throw_failure(std::uint64_t count) {
  if (failure_ && failed_at_ <= count) std::rethrow_exception(std::exchange(failure_, nullptr));
}

bool Stream::is_done(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  ask_for(count);
  if (done_count_ >= count) throw_failure(count);
  return done_count_ >= count;
}

void Stream::wait(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  ask_for(count);
  done_.wait(lock, [&] { return done_count_ >= count; });
  throw_failure(count);
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (queue_.empty()) {
      if (ends_) return;
      changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
      continue;
    }
    const auto wanted = [&] { return ends_ || asked_ > done_count_; };
    if (!wanted()) {
      if (lateness_.hold)
        changed_.wait(lock, wanted);
      else
        changed_.wait_until(lock, queue_.front().due, wanted);
    }
    const std::function<void()> work = std::move(queue_.front().work);
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    ++done_count_;
    if (failure && !failure_) failure_ = failure, failed_at_ = done_count_;
    done_.notify_all();
  }
}

}  // namespace tenon::mock
