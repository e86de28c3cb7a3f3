#include "group_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <utility>

namespace tenon::conformance {
namespace {

// A record is: kind, then its fields, each ended by a NUL, then a newline. Kinds: s (a case starts), f (it has finished), e (all have).
constexpr std::size_t kFields = 6;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void write_all(int descriptor, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    if (written <= 0) _exit(3);
    done += static_cast<std::size_t>(written);
  }
}

/// What a plugin prints is not part of the kit's report.
void drop_standard_output() {
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  close(nowhere);
}

std::string without_separators(std::string text) {
  for (char& c : text)
    if (c == '\0' || c == '\n') c = ' ';
  return text;
}

CaseResult parse(const char* record) {
  std::string fields[kFields];
  for (std::string& field : fields) {
    field = record;
    record += field.size() + 1;
  }
  return {fields[0], fields[1], fields[2], fields[3], {static_cast<Status>(fields[4][0] - '0'), fields[5]}};
}

}  // namespace

void ResultSink::start(const CaseResult& about) { write('s', about); }
void ResultSink::finish(const CaseResult& result) { write('f', result); }

void ResultSink::write(char kind, const CaseResult& r) {
  std::string record(1, kind);
  const std::string status(1, static_cast<char>('0' + static_cast<int>(r.outcome.status)));
  for (const std::string& field : {r.op, r.sample, r.variation, r.dtype, status, r.outcome.text}) record += without_separators(field) + '\0';
  write_all(descriptor_, record + '\n');
}

GroupProcess::GroupProcess(std::string label, const std::function<void(ResultSink&)>& cases, double limit)
    : label_(std::move(label)), deadline_(now() + limit), limit_(limit) {
  int ends[2];
  if (pipe(ends) != 0) throw Exception(error(Code::internal, "no pipe: {}", std::strerror(errno)));
  child_ = fork();
  if (child_ < 0) throw Exception(error(Code::internal, "no process: {}", std::strerror(errno)));
  if (child_ == 0) {
    close(ends[0]);
    drop_standard_output();
    ResultSink sink(ends[1]);
    cases(sink);
    write_all(ends[1], "e\n");
    _exit(0);
  }
  close(ends[1]);
  descriptor_ = ends[0];
}

GroupProcess::GroupProcess(GroupProcess&& other) noexcept
    : label_(std::move(other.label_)), deadline_(other.deadline_), limit_(other.limit_), child_(std::exchange(other.child_, -1)),
      descriptor_(std::exchange(other.descriptor_, -1)), timed_out_(other.timed_out_), is_complete_(other.is_complete_),
      unread_(std::move(other.unread_)), results_(std::move(other.results_)), running_(std::move(other.running_)) {}

GroupProcess::~GroupProcess() {
  if (descriptor_ >= 0) close(descriptor_);
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
}

bool GroupProcess::read_some() {
  char bytes[65536];
  const ssize_t count = ::read(descriptor_, bytes, sizeof bytes);
  if (count > 0) {
    unread_.append(bytes, static_cast<std::size_t>(count));
    consume_records();
    return false;
  }
  conclude();
  return true;
}

void GroupProcess::check_time() {
  if (timed_out_ || now() < deadline_) return;
  timed_out_ = true;
  kill(child_, SIGKILL);
}

void GroupProcess::consume_records() {
  std::size_t begin = 0;
  for (std::size_t end; (end = unread_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const char kind = unread_[begin];
    if (kind == 'e') is_complete_ = true;
    if (kind == 's') running_ = {parse(unread_.data() + begin + 1)};
    if (kind == 'f') {
      results_.push_back(parse(unread_.data() + begin + 1));
      running_.clear();
    }
  }
  unread_.erase(0, begin);
}

void GroupProcess::conclude() {
  int status = 0;
  waitpid(child_, &status, 0);
  child_ = -1;
  if (is_complete_) return;
  std::string text = fmt::format("the process ended with exit status {}", WEXITSTATUS(status));
  if (timed_out_) text = fmt::format("ran longer than {} s", limit_);
  else if (WIFSIGNALED(status)) text = fmt::format("crashed: {}", strsignal(WTERMSIG(status)));
  CaseResult last = running_.empty() ? CaseResult{label_, "", "", "", {}} : running_[0];
  last.outcome = {Status::failed, std::move(text)};
  results_.push_back(std::move(last));
}

}  // namespace tenon::conformance
