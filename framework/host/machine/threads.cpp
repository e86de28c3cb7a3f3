#include "host/machine/threads.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "host/machine/float_flags.h"
#include "host/machine/openmp.h"

namespace tenon::host {
namespace {

namespace tbb = oneapi::tbb;

/// Whether the cores are taken by others: then the threads of a region come late, and a region waits for every one, whatever there is left to do. TBB's
/// caller waits for nobody who has not begun.
class Crowding {
 public:
  using Clock = std::chrono::steady_clock;

  bool lasts(Clock::time_point now) const { return now.time_since_epoch().count() < until_.load(std::memory_order_relaxed); }
  /// A thread of a region has come. One that sleeps takes some tens of microseconds, one that waits on its core none.
  void see_arrival(Clock::time_point begun) {
    constexpr auto kLate = std::chrono::milliseconds(1), kLasts = std::chrono::milliseconds(200);
    const Clock::time_point now = Clock::now();
    if (now - begun > kLate) until_.store((now + kLasts).time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<Clock::rep> until_{0};
};

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
  std::atomic<const OpenMp*> openmp{nullptr};  // whose threads are shared
  bool has_forked = false;                     // a child: the threads of the parent's OpenMP runtime do not exist here
  Crowding crowding;

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
  t.has_forked = true;
  t.openmp.store(nullptr);
  if (!t.stopped_for_fork) t.serial.store(true);
  t.mutex.unlock();
}

void watch_forks() {
  static const int registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)registered;
}

tbb::task_arena& make_arena(Threads& t) {
  watch_forks();
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

/// A loop on the threads of an OpenMP region. Each has a run of its own to take parts from, shorter and shorter ones, and then helps the
/// others: one that comes late leaves little to wait for.
class SharedLoop {
 public:
  SharedLoop(std::int64_t begin, std::int64_t end, std::int64_t grain, int threads) : grain_(grain), runs_(static_cast<std::size_t>(std::clamp<std::int64_t>((end - begin) / grain, 1, threads))) {
    const auto count = static_cast<std::int64_t>(runs_.size());
    for (std::int64_t i = 0; i < count; ++i) {
      Run& run = runs_[static_cast<std::size_t>(i)];
      run.next = begin + (end - begin) * i / count, run.end = begin + (end - begin) * (i + 1) / count;
    }
  }

  template <class Body>
  void take(int thread, Body& body) {
    for (std::size_t i = 0; i < runs_.size(); ++i) take_from(runs_[(static_cast<std::size_t>(thread) + i) % runs_.size()], body);
  }

 private:
  struct alignas(64) Run {
    std::atomic<std::int64_t> next = 0;
    std::int64_t end = 0;
  };

  template <class Body>
  void take_from(Run& run, Body& body) const {
    for (std::int64_t first = run.next.load(std::memory_order_relaxed); first < run.end;) {
      const std::int64_t left = run.end - first, last = left < 2 * grain_ ? run.end : first + std::max(grain_, left / 2);
      if (!run.next.compare_exchange_weak(first, last, std::memory_order_relaxed)) continue;
      body(first, last);
      first = run.next.load(std::memory_order_relaxed);
    }
  }

  std::int64_t grain_;
  std::vector<Run> runs_;
};

/// The body of a parallel loop. The caller's float flags are kept, and what a part raises on another thread is raised here at the end. They also say to the
/// thread sanitizer, which does not see into TBB, what comes before a part and what after it: a part looks at them first.
class FlaggedBody {
 public:
  FlaggedBody(LoopBody body, void* context) : body_(body), context_(context) { flags_.store(take_float_flags(), std::memory_order_release); }

  void operator()(std::int64_t first, std::int64_t last) {
    (void)flags_.load(std::memory_order_acquire);
    const unsigned before = take_float_flags();
    body_(context_, first, last);
    flags_.fetch_or(take_float_flags(), std::memory_order_release);
    raise_float_flags(before);
  }
  void raise_flags() const { raise_float_flags(flags_.load(std::memory_order_acquire)); }

 private:
  const LoopBody body_;
  void* const context_;
  std::atomic<unsigned> flags_{0};
};

}  // namespace

void share_openmp_threads() {
  Threads& t = threads();
  if (t.openmp.load(std::memory_order_relaxed)) return;
  const OpenMp* found = OpenMp::find();
  if (!found) return;
  watch_forks();
  std::lock_guard lock(t.mutex);
  if (!t.has_forked) t.openmp.store(found, std::memory_order_release);
}

int thread_count() {
  const Threads& t = threads();
  if (t.serial.load(std::memory_order_relaxed)) return 1;
  const OpenMp* openmp = t.openmp.load(std::memory_order_acquire);
  return openmp && t.count.load(std::memory_order_relaxed) == 0 ? openmp->thread_count() : t.wanted();
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
  const OpenMp* openmp = threads().openmp.load(std::memory_order_acquire);
  if (openmp && openmp->in_region()) return body(context, begin, end);
  FlaggedBody parts(body, context);
  Crowding& crowding = threads().crowding;
  const auto begun = openmp ? Crowding::Clock::now() : Crowding::Clock::time_point();
  if (openmp && openmp->thread_count() == thread_count() && !crowding.lasts(begun)) {
    SharedLoop loop(begin, end, grain, thread_count());
    openmp->run(thread_count(), [&](int thread) {
      crowding.see_arrival(begun);
      loop.take(thread, parts);
    });
  } else {
    // A blocked_range splits down to grain / 2, so that no part is smaller than the half rounded up: twice the grain, less one.
    const tbb::blocked_range<std::int64_t> range(begin, end, static_cast<std::size_t>(std::min<std::int64_t>(2 * grain - 1, end - begin)));
    arena().execute([&] { tbb::parallel_for(range, [all = &parts](const auto& part) { (*all)(part.begin(), part.end()); }); });
  }
  parts.raise_flags();
}

}  // namespace tenon::host
