#include "host/machine/threads.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <numeric>
#include <vector>

#include "catch.h"

using namespace tenon::host;

namespace {

std::int64_t sum_in_parallel(std::int64_t count) {
  std::atomic<std::int64_t> sum{0};
  parallel_loop(0, count, 100, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) sum += i;
  });
  return sum;
}

}  // namespace

TEST_CASE("every iteration runs once, in parts of at least the grain", "[threads]") {
  std::vector<std::atomic<int>> seen(10007);
  std::atomic<int> small{0};
  parallel_loop(0, 10007, 64, [&](std::int64_t first, std::int64_t last) {
    if (last - first < 64) ++small;
    for (std::int64_t i = first; i < last; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  for (const auto& count : seen) REQUIRE(count == 1);
  CHECK(small == 0);
}

TEST_CASE("empty and small ranges run inline", "[threads]") {
  int calls = 0;
  parallel_loop(5, 5, 1, [&](std::int64_t, std::int64_t) { ++calls; });
  CHECK(calls == 0);
  parallel_loop(3, 8, 10, [&](std::int64_t first, std::int64_t last) {
    ++calls;
    CHECK(first == 3);
    CHECK(last == 8);
  });
  CHECK(calls == 1);
}

TEST_CASE("loops nest", "[threads]") {
  std::atomic<std::int64_t> sum{0};
  parallel_loop(0, 20, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) sum += sum_in_parallel(1000);
  });
  CHECK(sum == 20 * 999 * 500);
}

TEST_CASE("the number of threads can change", "[threads]") {
  set_thread_count(3);
  CHECK(thread_count() == 3);
  CHECK(sum_in_parallel(5000) == 5000 * 4999 / 2);
  set_thread_count(0);
  CHECK(thread_count() >= 1);
}

#ifndef __SANITIZE_THREAD__  // its runtime does not support threads in the child of a threaded process
TEST_CASE("a child after fork has threads of its own", "[threads]") {
  set_thread_count(2);
  REQUIRE(sum_in_parallel(100000) == std::int64_t{100000} * 99999 / 2);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(sum_in_parallel(100000) == std::int64_t{100000} * 99999 / 2 && thread_count() == 2 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(sum_in_parallel(100000) == std::int64_t{100000} * 99999 / 2);
  set_thread_count(0);
}
#endif

TEST_CASE("the floating-point flags of all parts reach the calling thread", "[threads]") {
  std::vector<double> values(1 << 16, 1.0);
  const auto divide = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      volatile double divisor = values[static_cast<std::size_t>(i)];
      values[static_cast<std::size_t>(i)] = 1.0 / divisor;
    }
  };
  std::feclearexcept(FE_ALL_EXCEPT);
  parallel_loop(0, static_cast<std::int64_t>(values.size()), 64, divide);
  CHECK(std::fetestexcept(FE_DIVBYZERO | FE_INVALID) == 0);
  for (std::size_t place : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
    values[place] = 0.0;
    parallel_loop(0, static_cast<std::int64_t>(values.size()), 64, divide);
    CHECK(std::fetestexcept(FE_DIVBYZERO) == FE_DIVBYZERO);
    std::feclearexcept(FE_ALL_EXCEPT);
    values[place] = 1.0;
    parallel_loop(0, static_cast<std::int64_t>(values.size()), 64, divide);
    CHECK(std::fetestexcept(FE_DIVBYZERO) == 0);  // a worker does not remember
  }
}
