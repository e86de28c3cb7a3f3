#include "host/diagnostics/trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "host/diagnostics/profiling.h"

namespace tenon::host {
namespace {

constexpr std::size_t kWriteFrom = std::size_t{64} << 10;  // bytes that wait

double microseconds_now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Begun {
  std::string name, place;
  double at;
};

thread_local std::vector<Begun> t_begun;

/// Never destroyed: threads may end ranges while the process exits.
class Trace {
 public:
  explicit Trace(int file) : file_(file) { text_ = "[\n"; }

  bool is_of_this_process() const { return process_ == getpid(); }

  void add(const Begun& range) {
    const double now = microseconds_now();
    nlohmann::json event{{"name", range.name}, {"cat", "tenon"}, {"ph", "X"}, {"ts", range.at}, {"dur", now - range.at}, {"pid", process_}, {"tid", gettid()}};
    if (!range.place.empty()) event["args"]["place"] = range.place;
    const std::string line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    const std::lock_guard lock(mutex_);
    text_ += separator_ + line;
    separator_ = ",\n";
    if (text_.size() >= kWriteFrom) write();
  }

  void close() {
    const std::lock_guard lock(mutex_);
    text_ += "\n]\n";
    write();
    file_ = -1;
  }

 private:
  void write() {
    std::string_view rest = text_;
    while (file_ >= 0 && !rest.empty()) {
      const ssize_t written = ::write(file_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;  // a full disk: the program goes on
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    text_.clear();
  }

  const pid_t process_ = getpid();
  std::mutex mutex_;
  int file_;
  std::string text_, separator_;
};

Trace* g_written = nullptr;  // set once

void begin_traced(const char* name, const char* place) { t_begun.push_back({name, place, microseconds_now()}); }

void end_traced() {
  if (t_begun.empty()) return;
  const Begun range = std::move(t_begun.back());
  t_begun.pop_back();
  if (g_written->is_of_this_process()) g_written->add(range);
}

constexpr TenonRangeListener kTraceListener{sizeof(TenonRangeListener), begin_traced, end_traced};

std::string with_process(std::string path) {
  if (const auto at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  return path;
}

std::string start(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return "no trace is written: " + path + ": " + std::strerror(errno) + "; TENON_TRACE takes the name of a file in a folder that exists and may be written";
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    close(file);
    return "no trace is written: another process writes " + path + "; \"%p\" in the name is the number of the process";
  }
  if (ftruncate(file, 0) != 0) lseek(file, 0, SEEK_SET);  // what cannot be cut (a pipe) is written to as it is
  g_written = new Trace(file);
  set_trace_listener(kTraceListener);
  std::atexit([] {
    if (g_written->is_of_this_process()) g_written->close();
  });
  return {};
}

}  // namespace

std::string start_trace(const std::string& given) {
  static std::once_flag once;
  std::string wrong;
  std::call_once(once, [&] { wrong = start(with_process(given)); });  // a session of another thread waits: its ranges are in the trace
  return wrong;
}

}  // namespace tenon::host
