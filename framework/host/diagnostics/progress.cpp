#include "host/diagnostics/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "core/base/error.h"

namespace tenon::host {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kFirst{1};
constexpr std::chrono::milliseconds kTerminal{250};
constexpr std::chrono::seconds kFile{5};

/// One call: other threads may write to stderr too.
void write_to_stderr(const std::string& text) {
  const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  (void)written;  // there is nobody to tell
}

}  // namespace

Progress::Progress(const std::string& when, std::size_t nodes) : nodes_(nodes), terminal_(isatty(STDERR_FILENO) != 0) {
  TENON_USER_CHECK(when == "auto" || when == "always" || when == "never", "diagnostics.progress is auto, always or never, not: {}", when);
  if (when == "always" || (when == "auto" && terminal_)) teller_ = std::thread([this] { tell(); });
}

Progress::~Progress() {
  if (!teller_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  teller_.join();
}

void Progress::begin_group(std::string_view backend, std::size_t nodes) {
  if (!teller_.joinable()) return;
  const std::lock_guard lock(mutex_);
  backend_ = backend;
  group_ = nodes;
  begun_ += nodes;
}

std::string Progress::line(double seconds) {
  const std::lock_guard lock(mutex_);
  if (backend_.empty()) return fmt::format("tenon: compiling {} nodes for {:.1f} s", nodes_, seconds);
  return fmt::format("tenon: compiling {} nodes for {:.1f} s: {} are done, {} at {}", nodes_, seconds, begun_ - group_, group_, backend_);
}

void Progress::tell() {
  const auto start = Clock::now();
  const auto wait = [&](auto time) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, time, [&] { return done_; });
  };
  if (wait(kFirst)) return;
  for (bool done = false; !done;) {
    const std::string text = line(std::chrono::duration<double>(Clock::now() - start).count());
    write_to_stderr(terminal_ ? "\r\x1b[K" + text : text + "\n");
    done = terminal_ ? wait(kTerminal) : wait(kFile);
  }
  if (terminal_) write_to_stderr("\r\x1b[K");
}

}  // namespace tenon::host
