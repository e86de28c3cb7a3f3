// The compiled entries of one function and of its continuations, and what happens when none of them holds.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "python/call/capture_point.h"
#include "python/call/plain_trial.h"
#include "python/call/recompile_budget.h"
#include "python/call/told_to_torch.h"
#include "python/session/settings.h"

namespace tenon::python {

/// Hears what a function's captures give, in their order.
class CaptureObserver {
 public:
  virtual ~CaptureObserver() = default;
  /// An entry before its recording is dropped. Its `segment().stop` says why it ends early.
  virtual void captured(CacheEntry& entry) = 0;
  /// A capture that gave no entry.
  virtual void failed(const CaptureBreak& why) = 0;
  /// Seconds spent in a phase.
  virtual void spent(const char* phase, double seconds) = 0;
};

/// Lives in a CompiledFunction. All use needs the GIL.
class FunctionCache {
 public:
  FunctionCache(Ref callable, Settings settings);
  FunctionCache(const FunctionCache&) = delete;
  FunctionCache& operator=(const FunctionCache&) = delete;

  PyObject* callable() const { return callable_.get(); }
  void observe(CaptureObserver* observer) { observer_ = observer; }

  /// Calls the function through its entries. Null with an exception set.
  PyObject* call(PyObject* const* values, std::size_t nargsf, PyObject* keyword_names);
  /// Seconds that finding the entry of a call takes: guards and torch's state. For benchmarks; -1 where none holds.
  double seconds_to_find(const CallArguments& call, int repeats);
  /// Visits every object that is held, for the garbage collector.
  int traverse(visitproc visit, void* arg) const;
  /// Forgets everything compiled. The places where captures begin stay: a call that is under way on another thread may be at one.
  void clear();

  // ---- for a Continuation
  /// The continuation at which a chain is after a step that followed `entry`; null where a limit forbids another one.
  CapturePoint* point_after(CacheEntry& entry, const LiveChain& chain, const ChainSlots& slots, const DrawnNumbers& drawn);
  /// The entry that holds at a place, found or captured now. Null when the program must go on as plain Python, or with an exception set.
  /// `again`: this call has been there before, in a loop.
  EntryRef entry_at(CapturePoint& point, const CallArguments& values, const LiveChain* chain, bool again = false);
  /// Gives up a continuation that costs more than plain Python.
  void leave_to_python(CapturePoint& point, std::string_view why);
  /// Takes note of what a segment has gained over plain execution, its break included; that tells of a function where it has begun and ended in it.
  void note_segment(const CapturePoint& from, const LiveChain& to, double gain);
  /// Takes note of a segment that has left the function in which it began, and done nothing but find numbers that are wanted then.
  void note_numbers(const CapturePoint& from);
  /// Whether a continuation is in a function that is left to plain Python.
  /// A function that is called as it is has given `result` (null where there is none).
  void end_plain_trial(PyObject* result);
  bool is_in_plain_function(const CapturePoint& point) const { return point.called_code() && plain_functions_.contains(point.called_code()); }
  /// Logs that a graph could not run on these values.
  void report_refusal(RunStatus status) const;
  void note_refusal(CapturePoint& point, const EntryRef& entry) { point.note_refusal(entry, settings_.fullgraph); }

 private:
  /// When a call began, and what was compiled before it; none where no trial is on.
  struct Beginning {
    double seconds = 0;
    std::int64_t compiled = 0;
  };
  PyObject* call_here(const CallArguments& call);
  PyObject* run(EntryRef entry, const CallArguments& call, const Beginning& beginning);
  PyObject* run_in_steps(EntryRef entry, std::vector<Ref> objects, const Beginning& beginning);
  PyObject* run_on_trial(const CallArguments& call);
  PyObject* eagerly_after(const Beginning& beginning, const CallArguments& call);
  bool may_be_left() const { return !settings_.callable && !settings_.fullgraph && !observer_; }
  bool has_many_variants() const;
  void took_compiled(const Beginning& beginning, bool is_in_doubt);
  PyObject* eagerly(const CallArguments& call);
  EntryRef miss(CapturePoint& point, const CallArguments& values, const LiveChain* chain, bool again);
  EntryRef keep(CapturePoint& point, EntryRef entry, const TorchState& state, const CallArguments& values);
  bool may_end_here(const CacheEntry& entry);
  bool stays_plain(const CapturePoint& point);
  std::size_t recompile_limit() const { return has_usual_limit() ? Settings::kUsualLimit : settings_.has_usual_limit() ? *told_.recompile_limit : settings_.recompile_limit; }
  bool has_usual_limit() const { return settings_.has_usual_limit() && !told_.recompile_limit; }
  bool limit_reached(CapturePoint& point, const TorchState& state, const CallArguments& values);
  void leave_loop(const LiveChain& chain);
  bool leaves_function(const CapturePoint& point, std::string_view why);
  void report_plain_function(const CapturePoint& point, std::string_view why);
  bool still_freezes(CapturePoint& point);
  void refuse(const CaptureBreak& why);
  void fail_to_compile();
  std::optional<GuardFailure> failure_since(const CapturePoint& point, const TorchState& state, const CallArguments& values) const;
  std::string change_since(const CapturePoint& point, const TorchState& state, const CallArguments& values) const;
  void report_recompile(CapturePoint& point, const TorchState& state, const CallArguments& values);
  void report_wait(CapturePoint& point, const TorchState& state, const CallArguments& values);
  void report_break(const CaptureBreak& why, const char* consequence);
  void report_capture(CacheEntry& entry);
  void say_once(const std::string& message);  // unasked, by logging
  std::string shown_at(const CapturePoint& point) const;  // the function and the place, for messages

  Ref callable_;
  Settings settings_;
  std::string name_;
  CapturePoint start_;
  std::unique_ptr<PlainTrial> trial_;  // where calls break, or there are many variants
  std::size_t changes_ = 0;            // for which a variant was compiled, or no graph ran
  std::unordered_multimap<std::size_t, std::unique_ptr<CapturePoint>> continuations_;  // by CapturePoint::hash
  SteppedLoops stepped_;
  PlainFunctions plain_functions_;
  RecompileBudget budget_;
  std::unordered_set<std::string> said_;  // messages that were logged
  bool places_limit_told_ = false;
  CaptureObserver* observer_ = nullptr;
  ToldToTorch told_;  // as read for the latest capture
  std::size_t recompiles_ = 0;
};

/// Runs the renderer of the package over a graph; empty with an exception set when it fails.
Ref render(PyObject* traced);
void take_renderer(Ref renderer);

}  // namespace tenon::python
