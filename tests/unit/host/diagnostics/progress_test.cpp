#include "host/diagnostics/progress.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>

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
    progress.begin_group("slow", 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  });
}

}  // namespace

TEST_CASE("a long compile is told of where it is wanted") {
  CHECK_THAT(told("always"), Catch::StartsWith("tenon: compiling 20 nodes for 1.") && Catch::EndsWith("7 are done, 5 at slow\n"));
  CHECK(told("auto").empty());  // a pipe is no terminal
  CHECK(stderr_of([] { Progress progress("always", 20); }).empty());
  CHECK_THROWS_WITH(Progress("loud", 1), Catch::Contains("auto, always or never, not: loud"));
}
