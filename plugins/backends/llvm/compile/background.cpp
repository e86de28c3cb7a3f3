#include "background.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

namespace tenon::llvm_backend {
namespace {

/// The jobs and their thread. Never destroyed: the thread may outlive every other object of this library.
class Background {
 public:
  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    jobs_.push_back(std::move(job));
    if (!working_) start();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !working_; });
  }

  /// A thread that still compiles, or ends, while the process destroys its static objects would find LLVM's gone.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      jobs_.clear();
    }
    if (thread_.joinable()) thread_.join();
  }

  /// A fork waits for the job that runs: in the child its locks would be held for ever.
  void before_fork() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !running_; });
    lock.release();
  }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child() {
    new (&changed_) std::condition_variable;  // the thread that may wait for it does not exist here
    new (&thread_) std::thread;
    jobs_.clear();
    working_ = false;
    mutex_.unlock();
  }

 private:
  void start() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the program's threads
    try {
      if (thread_.joinable()) thread_.join();  // has found no job, and needs no lock any more
      thread_ = std::thread([this] { work(); });
      working_ = true;
    } catch (const std::system_error&) {
      jobs_.clear();
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work() {
    constexpr int kLowPriority = 10;
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kLowPriority);
    std::unique_lock lock(mutex_);
    while (!jobs_.empty()) {
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      running_ = true;
      lock.unlock();
      try {
        job();
      } catch (const std::exception&) {  // what was there before serves on
      }
      lock.lock();
      running_ = false;
      changed_.notify_all();
    }
    working_ = false;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::thread thread_;
  bool working_ = false;  // there is a thread
  bool running_ = false;  // it is in a job
  bool stopping_ = false;
};

Background& background() {
  static Background* const only = [] {
    auto* made = new Background;
    std::atexit([] { background().stop(); });
    pthread_atfork([] { background().before_fork(); }, [] { background().after_fork_in_parent(); }, [] { background().after_fork_in_child(); });
    return made;
  }();
  return *only;
}

}  // namespace

void run_in_background(std::function<void()> job) { background().add(std::move(job)); }

void wait_for_background() { background().wait(); }

}  // namespace tenon::llvm_backend
