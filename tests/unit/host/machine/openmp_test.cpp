#include "host/machine/openmp.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <vector>

#include "catch.h"
#include "host/machine/threads.h"

using namespace tenon::host;

namespace {

bool sums_all(std::int64_t count, std::int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
  std::atomic<bool> fine{true};
  parallel_loop(0, count, grain, [&](std::int64_t first, std::int64_t last) {
    if (last - first < std::min(grain, count)) fine = false;
    for (std::int64_t i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  for (const auto& times : seen) fine = fine && times == 1;
  return fine;
}

/// What loops do with GCC's runtime in the process, which then stays: 0, or the number of what went wrong.
int with_openmp() {
  if (OpenMp::find()) return 1;
  if (!dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL)) return 0;
  const OpenMp* const runtime = OpenMp::find();
  if (!runtime) return 2;
  set_thread_count(runtime->thread_count());
  share_openmp_threads();
  for (const std::int64_t count : {1, 2, 7, 100, 10007})
    for (const std::int64_t grain : {1, 3, 64})
      if (!sums_all(count, grain)) return 3;
  std::atomic<bool> inside{false};
  for (int i = 0; i < 100 && !inside; ++i) {  // on a crowded machine loops run elsewhere for a while
    parallel_loop(0, 1000, 1, [&](std::int64_t, std::int64_t) { inside = inside || runtime->in_region(); });
    if (!inside) usleep(20'000);
  }
  if (runtime->thread_count() > 1 && !inside) return 4;
  std::atomic<int> inner{0};
  parallel_loop(0, 20, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) parallel_loop(0, 50, 1, [&](std::int64_t low, std::int64_t high) { inner += static_cast<int>(high - low); });
  });
  if (inner != 20 * 50) return 5;
  std::feclearexcept(FE_ALL_EXCEPT);
  parallel_loop(0, 100, 1, [&](std::int64_t first, std::int64_t last) {
    volatile double zero = 0, quotient = 0;
    for (std::int64_t i = first; i < last; ++i)
      if (i == 99) quotient = quotient + 1.0 / zero;
  });
  if (!std::fetestexcept(FE_DIVBYZERO)) return 6;
  set_thread_count(runtime->thread_count() + 1);  // regions of that many threads are for nobody else
  if (!sums_all(1000, 1)) return 7;
  set_thread_count(runtime->thread_count());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    share_openmp_threads();
    _exit(sums_all(1000, 1) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 8;
}

/// What loops do with a runtime whose second thread is punctual, then late, and punctual again: 0, or the number of what went wrong.
int with_late_thread() {
  void* const library = dlopen(TENON_BUILD_DIR "/tests/plugins/fake_openmp.so", RTLD_NOW | RTLD_GLOBAL);
  if (!library) return 1;
  auto& regions = *static_cast<std::atomic<int>*>(dlsym(library, "fake_openmp_regions"));
  auto& late_ms = *static_cast<std::atomic<int>*>(dlsym(library, "fake_openmp_late_ms"));
  share_openmp_threads();
  if (!sums_all(100, 1) || regions == 0) return 2;
  late_ms = 20;
  if (!sums_all(100, 1)) return 3;
  late_ms = 0;
  const int of_crowded = regions;
  for (int i = 0; i < 10; ++i)
    if (!sums_all(100, 1)) return 4;
  if (regions != of_crowded) return 5;
  for (int i = 0; i < 200 && regions == of_crowded; ++i) {  // it is tried again: within 0.2 s
    usleep(10'000);
    if (!sums_all(100, 1)) return 6;
  }
  return regions > of_crowded ? 0 : 7;
}

int status_of_run(const char* test) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "test_host", test, nullptr);
    _exit(99);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

#ifndef __SANITIZE_THREAD__  // its runtime does not support threads in the child of a threaded process
TEST_CASE("with GCC's OpenMP runtime in the process", "[.openmp]") { CHECK(with_openmp() == 0); }

TEST_CASE("with an OpenMP runtime whose second thread is late", "[.late_openmp]") { CHECK(with_late_thread() == 0); }

TEST_CASE("loops run on the threads of the program's OpenMP runtime", "[threads]") { CHECK(status_of_run("[.openmp]") == 0); }

TEST_CASE("loops leave the threads of an OpenMP runtime that come late, and try them again", "[threads]") { CHECK(status_of_run("[.late_openmp]") == 0); }
#endif
