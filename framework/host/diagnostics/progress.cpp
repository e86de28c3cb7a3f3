#include "host/diagnostics/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

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

std::atomic<ProgressListener> g_progress_listener{nullptr};

}  // namespace

/// What is known of a compile; the teller has it as long as it needs it.
struct Progress::State {
  std::size_t nodes = 0;
  bool terminal = false;
  ProgressListener listener = nullptr;
  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;
  std::string backend;
  std::size_t begun = 0, group = 0;      // nodes of all groups that were begun, and of the last one
  std::int64_t pieces_done = 0, pieces = 0;  // of the last one

  template <class Time>
  bool wait(Time time) {
    std::unique_lock lock(mutex);
    return wake.wait_for(lock, time, [&] { return done; });
  }
  std::string line(double seconds) {
    const std::lock_guard lock(mutex);
    std::string text = fmt::format("tenon: compiling {} nodes for {:.1f} s", nodes, seconds);
    if (!backend.empty()) text += fmt::format(": {} are done, {} at {}", begun - group, group, backend);
    if (pieces > 0) text += fmt::format(", {} of {} kernels", pieces_done, pieces);
    return text;
  }
  double part() {
    const std::lock_guard lock(mutex);
    const double of_group = pieces > 0 ? static_cast<double>(pieces_done) / static_cast<double>(pieces) : 0;
    return nodes > 0 ? std::min(1.0, (static_cast<double>(begun - group) + of_group * static_cast<double>(group)) / static_cast<double>(nodes)) : 0;
  }
  void show(double seconds) {
    if (listener) listener(line(seconds).c_str(), part());
    else write_to_stderr(terminal ? "\r\x1b[K" + line(seconds) : line(seconds) + "\n");
  }
  void end() const {
    if (listener) listener("", 1);
    else if (terminal) write_to_stderr("\r\x1b[K");
  }
  void tell() {
    const auto start = Clock::now();
    if (wait(kFirst)) return;
    for (bool ended = false; !ended;) {
      show(std::chrono::duration<double>(Clock::now() - start).count());
      ended = terminal || listener ? wait(kTerminal) : wait(kFile);
    }
    end();
  }
};

void set_progress_listener(ProgressListener listener) { g_progress_listener.store(listener); }

Progress::Progress(const std::string& when, std::size_t nodes) {
  TENON_USER_CHECK(when == "auto" || when == "always" || when == "never", "diagnostics.progress is auto, always or never, not: {}", when);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const ProgressListener listener = g_progress_listener.load();
  if (when == "never" || (when == "auto" && !terminal && !listener)) return;
  state_ = std::make_shared<State>();
  state_->nodes = nodes;
  state_->terminal = terminal;
  state_->listener = listener;
  teller_ = std::thread([state = state_] { state->tell(); });
}

Progress::~Progress() {
  if (!state_) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->done = true;
  }
  state_->wake.notify_one();
  if (state_->listener) teller_.detach();
  else teller_.join();
}

void Progress::begin_group(std::string_view backend, std::size_t nodes) {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->backend = backend;
  state_->group = nodes;
  state_->begun += nodes;
  state_->pieces_done = state_->pieces = 0;
}

void Progress::note_pieces(std::int64_t done, std::int64_t total) {
  if (!state_) return;
  const std::lock_guard lock(state_->mutex);
  state_->pieces_done = std::max(state_->pieces_done, std::min(done, total));  // workers may come out of order
  state_->pieces = total;
}

}  // namespace tenon::host
