#include "host/diagnostics/perf_code.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "core/base/error.h"
#include "host/diagnostics/profiling.h"

namespace tenon::host {
namespace {

constexpr std::uint32_t kDumpMagic = 0x4A695444, kDumpVersion = 1;
enum PerfRecord : std::uint32_t { kCodeLoad = 0, kDebugInfo = 2 };

#if defined(__x86_64__)
constexpr std::uint32_t kElfMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kElfMachine = EM_AARCH64;
#else
constexpr std::uint32_t kElfMachine = EM_NONE;
#endif

/// The clock that `perf record -k 1` stamps events with.
std::uint64_t nanoseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

template <class... T>
std::string as_bytes(T... values) {
  std::string bytes;
  ((bytes.append(reinterpret_cast<const char*>(&values), sizeof values)), ...);
  return bytes;
}

std::string ended_by_zero(std::string_view text) { return std::string(text) + '\0'; }

std::string dump_header() { return as_bytes(kDumpMagic, kDumpVersion, std::uint32_t{40}, kElfMachine, std::uint32_t{0}, static_cast<std::uint32_t>(getpid()), nanoseconds_now(), std::uint64_t{0}); }

std::string dump_record(PerfRecord kind, const std::string& body) {
  const std::string head = as_bytes(static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(16 + body.size()), nanoseconds_now());
  return head + body;
}

/// One file a process; the child of a fork begins its own.
class PerfCode {
 public:
  explicit PerfCode(bool dumps) : dumps_(dumps) {}

  /// Opens the file of this process. Gives what is wrong, or nothing.
  std::string open() {
    process_ = getpid();
    const std::string path = dumps_ ? fmt::format("jit-{}.dump", process_) : fmt::format("/tmp/perf-{}.map", process_);
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) return fmt::format("perf is told nothing: {}: {}", path, std::strerror(errno));
    if (!dumps_) return {};
    write(dump_header());
    // perf finds the file by this mapping: it is never read, and stays.
    mmap(nullptr, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), PROT_READ | PROT_EXEC, MAP_PRIVATE, file_, 0);
    return {};
  }

  void tell(const std::string& name, const void* code, std::size_t bytes, const std::string& file, std::int32_t line) {
    const std::lock_guard lock(mutex_);
    if (process_ != getpid()) open();
    const auto address = reinterpret_cast<std::uint64_t>(code);
    if (!dumps_) return write(fmt::format("{:x} {:x} {}\n", address, bytes, name));
    // Lines come before the code that they are of. perf ends the last entry where it begins: a second one stands at the end of the code.
    const auto entry = [&](std::uint64_t at) { return as_bytes(at, line, std::int32_t{0}) + ended_by_zero(file); };
    if (!file.empty()) write(dump_record(kDebugInfo, as_bytes(address, std::uint64_t{2}) + entry(address) + entry(address + bytes)));
    const auto process = static_cast<std::uint32_t>(process_), thread = static_cast<std::uint32_t>(gettid());
    const std::string load = as_bytes(process, thread, address, address, static_cast<std::uint64_t>(bytes), ++loads_) + ended_by_zero(name);
    write(dump_record(kCodeLoad, load + std::string(static_cast<const char*>(code), bytes)));
  }

 private:
  void write(std::string_view rest) const {
    while (file_ >= 0 && !rest.empty()) {
      const ssize_t written = ::write(file_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  const bool dumps_;
  pid_t process_ = 0;
  int file_ = -1;
  std::uint64_t loads_ = 0;
  std::mutex mutex_;
};

PerfCode* g_perf_code = nullptr;  // set once

std::string start(bool dumps) {
  auto made = std::make_unique<PerfCode>(dumps);
  if (std::string wrong = made->open(); !wrong.empty()) return wrong;
  g_perf_code = made.release();  // never destroyed: threads may make code while the process exits
  set_code_listener([](const char* name, const void* code, std::size_t bytes, const char* file, std::int32_t line) { g_perf_code->tell(name, code, bytes, file, line); });
  return {};
}

}  // namespace

std::string start_perf_code(const std::string& how) {
  if (how.empty()) return {};
  TENON_USER_CHECK(how == "map" || how == "jitdump", "diagnostics.perf must be map or jitdump, not: {}", how);
  static std::once_flag once;
  std::string wrong;
  std::call_once(once, [&] { wrong = start(how == "jitdump"); });  // a session of another thread waits: what it makes is told
  return wrong;
}

}  // namespace tenon::host
