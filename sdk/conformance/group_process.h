// Runs the cases of one op in a process of its own, so that a crash, a hang or an exit is a result and not the end of the kit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "variations.h"

namespace tenon::conformance {

struct CaseResult {
  std::string op, sample, variation, dtype;
  Outcome outcome;
};

/// Where the cases of a group report to, from inside the group's process.
class ResultSink {
 public:
  explicit ResultSink(int descriptor) : descriptor_(descriptor) {}
  /// Says which case runs next: what is known of it when the process ends in its middle.
  void start(const CaseResult& about);
  void finish(const CaseResult& result);

 private:
  void write(char kind, const CaseResult& result);
  int descriptor_;
};

/// A group that runs; `cases` is called in a child process.
class GroupProcess {
 public:
  /// `label` names the group in the result of a child that ends before its first case.
  GroupProcess(std::string label, const std::function<void(ResultSink&)>& cases, double time_limit_seconds);
  GroupProcess(GroupProcess&& other) noexcept;
  GroupProcess& operator=(GroupProcess&&) = delete;
  ~GroupProcess();

  int descriptor() const { return descriptor_; }
  /// Reads what the child wrote. True when the child has ended and `results` is complete.
  bool read_some();
  /// Ends a child that has used up its time.
  void check_time();
  const std::vector<CaseResult>& results() const { return results_; }

 private:
  void consume_records();
  void conclude();

  std::string label_;
  double deadline_;
  double limit_;
  int child_ = -1;
  int descriptor_ = -1;
  bool timed_out_ = false;
  bool is_complete_ = false;  // the child said that all cases have run
  std::string unread_;
  std::vector<CaseResult> results_;
  std::vector<CaseResult> running_;  // the case that was started and has not finished: none or one
};

}  // namespace tenon::conformance
