#include "host/diagnostics/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.h"
#include "core/base/error.h"

using namespace tenon;
using namespace tenon::host;

namespace {

/// What is written to stderr while `body` runs.
template <class Body>
std::string stderr_of(const Body& body) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const int kept = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  body();
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t length = read(ends[0], text.data(), text.size());
  close(ends[0]);
  return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
}

/// A compile of 20 nodes that takes more than a second.
std::string told(const char* when) {
  return stderr_of([&] {
    Progress progress(when, 20);
    progress.begin_group("fast", 7);
    progress.note_pieces(6, 6);
    progress.begin_group("slow", 5);
    progress.note_pieces(3, 12);
    progress.note_pieces(2, 12);  // of a worker that comes later
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  });
}

}  // namespace

TEST_CASE("a long compile is told of where it is wanted") {
  CHECK_THAT(told("always"), Catch::StartsWith("tenon: compiling 20 nodes for 1.") && Catch::EndsWith("7 are done, 5 at slow, 3 of 12 kernels\n"));
  CHECK(told("auto").empty());  // a pipe is no terminal
  CHECK(stderr_of([] { Progress progress("always", 20); }).empty());
  CHECK_THROWS_WITH(Progress("loud", 1), Catch::Contains("auto, always or never, not: loud"));
}

TEST_CASE("a listener is told in place of stderr, and that the compile has ended") {
  static std::mutex mutex;
  static std::vector<std::pair<std::string, double>> heard;
  set_progress_listener([](const char* line, double part) {
    const std::lock_guard lock(mutex);
    heard.emplace_back(line, part);
  });
  CHECK(told("auto").empty());
  CHECK(told("never").empty());
  for (int tries = 0; tries < 200; ++tries) {  // the compile does not wait for who listens
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::lock_guard lock(mutex);
    if (!heard.empty() && heard.back().first.empty()) break;
  }
  set_progress_listener(nullptr);
  const std::lock_guard lock(mutex);
  REQUIRE(heard.size() >= 2);
  CHECK_THAT(heard.front().first, Catch::Contains("3 of 12 kernels"));
  CHECK(heard.front().second == Approx((7 + 5 * 3.0 / 12) / 20));
  CHECK((heard.back() == std::pair<std::string, double>("", 1)));
}
