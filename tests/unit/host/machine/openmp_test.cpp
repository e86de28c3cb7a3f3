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
  parallel_loop(0, 1000, 1, [&](std::int64_t, std::int64_t) { inside = inside || runtime->in_region(); });
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

}  // namespace

#ifndef __SANITIZE_THREAD__  // its runtime does not support threads in the child of a threaded process
TEST_CASE("with GCC's OpenMP runtime in the process", "[.openmp]") { CHECK(with_openmp() == 0); }

TEST_CASE("loops run on the threads of the program's OpenMP runtime", "[threads]") {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "test_host", "[.openmp]", nullptr);
    _exit(99);
  }
  int status = -1;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif
