#include "python/call/continuation.h"

#include "python/call/function_cache.h"
#include "python/call/plain_cost.h"
#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/library/torch_state.h"
#include "python/objects/gil.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

// Steps after which other Python threads get a turn: the loop below never enters CPython's, which would see to that.
constexpr std::size_t kStepsBetweenTurns = 64;
// Steps of one call after which it is asked whether they pay, and how many of them a recompile counts for.
constexpr std::size_t kStepsOnTrial = 64;
constexpr std::size_t kStepsOfARecompile = 8;

// Instructions after which a frame that does not leave a mode is left to Python.
constexpr std::size_t kMostStepsInMode = 4096;

/// Whether torch is in a state that no graph holds for: a function mode, a dispatch mode, a transform.
bool is_in_mode() { return !refusal(torch_state()).empty(); }

std::uint64_t next_call() {
  static std::uint64_t calls = 0;  // under the GIL
  return ++calls;
}

}  // namespace

Continuation::Continuation(FunctionCache& cache) : cache_(cache), call_(next_call()) {}

PyObject* Continuation::run(EntryRef entry, std::vector<Ref> objects) {
  Ref result;
  note(*entry);
  drawn_.take(entry->segment(), objects);
  if (!chain_.settle(*entry->segment().stop, std::move(objects))) return nullptr;
  Progress progress = go_past(*entry->segment().stop, nullptr, result);
  while (progress == Progress::goes_on) {
    slots_.gather(chain_);
    CapturePoint* point = cache_.point_after(*entry, chain_, slots_, drawn_);
    if (const BreakState* stop = entry->segment().stop.get(); stop && stop->why.leaves && point && !point->left_to_python) cache_.leave_to_python(*point, stop->why.reason);
    if (point && cache_.is_in_plain_function(*point) && !PyErr_Occurred()) {
      progress = as_plain_function(result);
      continue;
    }
    const std::size_t depth = chain_.depth();
    EntryRef next = point && pays(*point) ? entry_at(*point) : EntryRef();
    if (next && !next->has_frames_left()) next = {};
    if (!next && !PyErr_Occurred()) {
      progress = point && cache_.is_in_plain_function(*point) ? as_plain_function(result) : plainly(result);  // a capture may have left it
      continue;
    }
    Built built;
    if (next) entry = next;
    const RunStatus status = next ? next->run(built) : RunStatus::raised;
    if (status == RunStatus::raised) {  // `finally` and `with` of the program must see it
      progress = chain_.raise_here();
      continue;
    }
    if (status != RunStatus::done) {
      if (status != RunStatus::warned) cache_.note_refusal(*point, next);
      cache_.report_refusal(status);
      progress = plainly(result);
      continue;
    }
    note(*next);
    chain_.show_ends(next->segment().ends);
    const double gain = next->plain().nanoseconds - kStepCost;
    gain_ += gain;
    total_gain_ += gain;
    ++trial_;
    const std::unique_ptr<BreakState>& stop = next->segment().stop;
    if (!stop) {
      chain_.end_frames(0);
      return built.result.release();
    }
    drawn_.take(next->segment(), built.objects);
    if (!chain_.settle(*stop, std::move(built.objects))) return nullptr;
    if (chain_.depth() == depth) cache_.note_segment(*point, chain_, gain);
    if (stop->why.wants_numbers && !next->segment().ends.empty() && !next->plain().on_arrays) cache_.note_numbers(*point);
    progress = go_past(*stop, point, result);
  }
  return progress == Progress::returned ? result.release() : nullptr;
}

EntryRef Continuation::entry_at(CapturePoint& point) {
  const std::size_t variants = point.entries().size();
  EntryRef entry = cache_.entry_at(point, slots_.arguments(), &chain_, point.is_here_again(call_));
  if (variants > 0 && point.entries().size() > variants) trial_ += kStepsOfARecompile;
  return entry;
}

/// Whether to go on compiled. A program that breaks over and over with little in between is left to Python.
bool Continuation::pays(CapturePoint& point) {
  if (!point.left_to_python && trial_ >= kStepsOnTrial && gain_ < 0) {
    cache_.leave_to_python(point, "it breaks often, and the graphs in between do less than a break costs");
    gain_ = 0;  // what follows in the callers is another trial
    trial_ = 0;
  }
  return !point.left_to_python;
}

/// From the end of a segment that has begun at `begun` to where the next one begins: behind the instruction, or at it where that has lacked only what
/// is there now.
Progress Continuation::go_past(const BreakState& stop, const CapturePoint* begun, Ref& result) {
  const auto is_where_it_began = [&] {
    if (!begun) return false;
    slots_.gather(chain_);
    return begun->is_at(chain_, slots_);
  };
  if (stop.why.wants_numbers && !stop.keyword_names && !is_where_it_began()) return Progress::goes_on;
  return step(stop, result);
}

/// The instruction at which a segment has ended.
Progress Continuation::step(const BreakState& stop, Ref& result) {
  const Progress progress = step(stop.keyword_names.get(), result);
  if ((stop.why.reads_elements || stop.why.draws || stop.why.calls_plain) && progress == Progress::goes_on) drawn_.take(chain_.top());
  if (stop.why.calls_plain) cache_.end_plain_trial(progress == Progress::goes_on ? chain_.top() : nullptr);
  return progress;
}

Progress Continuation::step(PyObject* keyword_names, Ref& result) {
  if (++steps_ % kStepsBetweenTurns == 0) {
    const GilReleased released;
  }
  return PyErr_CheckSignals() < 0 ? chain_.raise_here() : chain_.step(keyword_names, result);
}

/// The rest of a function that is better off as plain Python, which is no fallback.
Progress Continuation::as_plain_function(Ref& result) {
  const Progress progress = PyErr_CheckSignals() < 0 ? chain_.raise_here() : chain_.finish_innermost(result);
  if (progress == Progress::goes_on) drawn_.take(chain_.top());  // it breaks so often for elements, mostly
  return progress;
}

/// The rest of the innermost frame as plain Python.
Progress Continuation::plainly(Ref& result) {
  ++counters().eager_fallbacks;
  plainly_ = true;
  if (Ref interrupt = compat::take_interrupt()) {  // it came while what follows was captured or compiled
    compat::set_exception(std::move(interrupt));
    return chain_.raise_here();
  }
  return is_in_mode() ? out_of_mode(result) : chain_.finish_innermost(result);
}

/// One instruction after the other, until the program has left the mode of torch that it is in: what comes then is compiled again.
Progress Continuation::out_of_mode(Ref& result) {
  Progress progress = Progress::goes_on;
  for (std::size_t taken = 0; progress == Progress::goes_on && is_in_mode(); ++taken)
    progress = taken < kMostStepsInMode ? step(nullptr, result) : chain_.finish_innermost(result);
  return progress;
}

}  // namespace tenon::python
