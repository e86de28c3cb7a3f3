#include "host/runtime/threads.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "host/runtime/float_flags.h"

namespace tenon::host {
namespace {

namespace tbb = oneapi::tbb;

/// The arena, made on first use and again after a fork. An arena that is replaced is kept: a loop on another thread may still be
/// inside it, and replacing happens a handful of times in a process.
struct Threads {
  std::mutex mutex;
  std::atomic<tbb::task_arena*> arena{nullptr};
  std::atomic<int> count{0};  // what is wanted; 0: the machine
  std::vector<std::unique_ptr<tbb::task_arena>> arenas;  // every one that was made since the last fork
  tbb::task_scheduler_handle handle;
  bool stopped_for_fork = false;
  std::atomic<bool> serial{false};  // a child whose parent could not stop its threads: they do not exist here

  int wanted() const {
    const int n = count.load(std::memory_order_relaxed);
    return n > 0 ? n : tbb::info::default_concurrency();
  }
};

Threads& threads() {
  static Threads* const instance = new Threads;  // outlives every static destructor: plugins may loop at exit
  return *instance;
}

// TBB's worker threads do not survive a fork, and the scheduler would wait for them. They are stopped before it, so that parent
// and child each start new ones on their next loop (oneTBB, "task_scheduler_handle": finalize).
void before_fork() {
  Threads& t = threads();
  t.mutex.lock();
  t.stopped_for_fork = true;
  if (!t.handle) return;
  t.arena.store(nullptr);
  for (const auto& arena : t.arenas) arena->terminate();  // an arena keeps the threads
  t.stopped_for_fork = tbb::finalize(t.handle, std::nothrow);
}

void after_fork_in_parent() { threads().mutex.unlock(); }

void after_fork_in_child() {
  Threads& t = threads();
  if (!t.stopped_for_fork) t.serial.store(true);
  t.mutex.unlock();
}

tbb::task_arena& make_arena(Threads& t) {
  static const int registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)registered;
  std::lock_guard lock(t.mutex);
  if (tbb::task_arena* existing = t.arena.load()) return *existing;
  if (!t.handle) t.handle = tbb::task_scheduler_handle(tbb::attach{});
  // An arena bound to NUMA or core constraints is not wanted: the process's affinity mask already limits it.
  tbb::task_arena& arena = *t.arenas.emplace_back(std::make_unique<tbb::task_arena>(t.wanted()));
  t.arena.store(&arena, std::memory_order_release);
  return arena;
}

tbb::task_arena& arena() {
  Threads& t = threads();
  if (tbb::task_arena* existing = t.arena.load(std::memory_order_acquire)) return *existing;
  return make_arena(t);
}

}  // namespace

int thread_count() {
  const Threads& t = threads();
  return t.serial.load(std::memory_order_relaxed) ? 1 : t.wanted();
}

void set_thread_count(int count) {
  Threads& t = threads();
  std::lock_guard lock(t.mutex);
  if (t.count.exchange(std::max(count, 0)) == std::max(count, 0)) return;
  t.arena.store(nullptr);
}

void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, LoopBody body, void* context) {
  if (begin >= end) return;
  grain = std::max<std::int64_t>(grain, 1);
  if (end - begin <= grain || thread_count() == 1) return body(context, begin, end);
  // A blocked_range splits down to grain / 2, so that no part is smaller than the half rounded up: twice the grain, less one.
  const std::size_t split = static_cast<std::size_t>(std::min<std::int64_t>(2 * grain - 1, end - begin));
  // The flags also say to the thread sanitizer, which does not see into TBB, what comes before a part and what after it.
  std::atomic<unsigned> flags{0};
  flags.store(take_float_flags(), std::memory_order_release);
  const auto run_part = [&](const tbb::blocked_range<std::int64_t>& part) {
    (void)flags.load(std::memory_order_acquire);
    const unsigned before = take_float_flags();
    body(context, part.begin(), part.end());
    flags.fetch_or(take_float_flags(), std::memory_order_release);
    raise_float_flags(before);
  };
  arena().execute([&] { tbb::parallel_for(tbb::blocked_range<std::int64_t>(begin, end, split), run_part); });
  raise_float_flags(flags.load(std::memory_order_acquire));
}

}  // namespace tenon::host
