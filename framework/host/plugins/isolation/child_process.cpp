#include "host/plugins/isolation/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "host/plugins/contact/cancellation.h"
#include "host/plugins/find/file.h"
#include "host/plugins/isolation/probe_protocol.h"

namespace tenon::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kComplaintBytes = 4096;
constexpr long long kPollMilliseconds = 20;  // between looks at whether the driver still waits

struct Pipe {
  Descriptor read, write;

  /// High numbers, so that no end is in the way of the descriptors that the child is given.
  Pipe() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    const Descriptor low_read(ends[0]), low_write(ends[1]);
    read = Descriptor(::fcntl(ends[0], F_DUPFD_CLOEXEC, 10));
    write = Descriptor(::fcntl(ends[1], F_DUPFD_CLOEXEC, 10));
  }
};

struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

/// The descriptors under which the child finds the files: all but that of the answer, from kProbeLibrary on.
int child_descriptor(std::size_t file) { return file == 0 ? kProbeLibrary : kProbeAnswer + static_cast<int>(file); }

int spawn(const std::vector<std::string>& command, std::span<const Descriptor> files, int complaint, int answer, pid_t& pid) {
  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&settings.actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.actions, complaint, 2);
  for (std::size_t i = 0; i < files.size(); ++i) posix_spawn_file_actions_adddup2(&settings.actions, files[i].get(), child_descriptor(i));
  posix_spawn_file_actions_adddup2(&settings.actions, answer, kProbeAnswer);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return posix_spawn(&pid, command[0].c_str(), &settings.actions, &settings.attributes, arguments.data(), environ);
}

/// Reads what is there. False at the end of the stream.
bool drain(int fd, std::string& into) {
  char block[4096];
  const ssize_t n = ::read(fd, block, sizeof block);
  if (n > 0) into.append(block, static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

/// Hands over the complete lines. True when one of them was the last.
bool take_lines(std::string& buffer, const std::function<bool(std::string_view)>& line) {
  for (std::size_t end; (end = buffer.find('\n')) != std::string::npos; buffer.erase(0, end + 1))
    if (line(std::string_view(buffer).substr(0, end))) return true;
  return false;
}

void keep_end(std::string& text) {
  if (text.size() > kComplaintBytes) text.erase(0, text.size() - kComplaintBytes);
}

/// Waits for the child, which may already have been waited for by the surrounding program.
void reap(pid_t pid, ChildResult& result) {
  int status = 0;
  pid_t reaped;
  do reaped = ::waitpid(pid, &status, 0);
  while (reaped < 0 && errno == EINTR);
  if (reaped != pid) return;
  result.exited = WIFEXITED(status);
  result.status = result.exited ? WEXITSTATUS(status) : WTERMSIG(status);
}

/// Whether the process itself has ended, though something that it started may still hold its pipes.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
}

/// Listens until the last line, the end of the process, the deadline, or until nobody waits any more; true at the last line.
bool listen(pid_t pid, int answer_fd, int complaint_fd, Clock::time_point deadline, const std::function<bool(std::string_view)>& line, ChildResult& result) {
  std::string answer;
  pollfd ends[2] = {{answer_fd, POLLIN, 0}, {complaint_fd, POLLIN, 0}};
  for (;;) {
    const long long left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      result.timed_out = true;
      return false;
    }
    if (cancelled()) {
      result.cancelled = true;
      return false;
    }
    const int ready = ::poll(ends, 2, static_cast<int>(std::min(left, kPollMilliseconds)));
    if (ready == 0 && has_ended(pid)) return false;
    if (ends[0].revents && !drain(answer_fd, answer)) ends[0].fd = -1;
    if (ends[1].revents && !drain(complaint_fd, result.complaint)) ends[1].fd = -1;
    keep_end(result.complaint);
    if (take_lines(answer, line)) return true;
    if (ends[0].fd < 0 && ends[1].fd < 0) return false;
  }
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command, std::span<const int> files, double seconds, const std::function<bool(std::string_view)>& line) {
  ChildResult result;
  const auto deadline = Clock::now() + std::chrono::milliseconds(static_cast<long long>(std::min(seconds, 3600.0) * 1000));
  Pipe answer, complaint;
  std::vector<Descriptor> copies;
  for (int file : files) copies.emplace_back(::fcntl(file, F_DUPFD_CLOEXEC, 10));
  if (!answer.write || !complaint.write || std::any_of(copies.begin(), copies.end(), [](const Descriptor& copy) { return !copy; })) {
    result.start_error = errno;
    return result;
  }
  pid_t pid = 0;
  result.start_error = spawn(command, copies, complaint.write.get(), answer.write.get(), pid);
  if (result.start_error != 0) return result;
  result.started = true;
  answer.write = Descriptor();
  complaint.write = Descriptor();
  const bool said_all = listen(pid, answer.read.get(), complaint.read.get(), deadline, line, result);
  // The whole group goes: a plugin may have started processes. Where the child ended by itself its own status counts.
  if (said_all || result.timed_out || result.cancelled || has_ended(pid)) ::kill(-pid, SIGKILL);
  reap(pid, result);
  ::kill(-pid, SIGKILL);
  return result;
}

}  // namespace tenon::host
