#include "python/call/function_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "python/call/capture_run.h"
#include "python/call/continuation.h"
#include "python/call/number_results.h"
#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/evaluator/evaluator.h"
#include "python/graph/traced_graph.h"
#include "python/library/numpy_state.h"
#include "python/library/torch_library.h"
#include "python/recording/tensor_recorder.h"
#include "python/session/errors.h"
#include "python/session/messages.h"
#include "python/session/ranges.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

// Captures at one place that may leave no segment before it is given up.
constexpr std::size_t kMostFailures = 2;
// Continuations of one function, and frames of one code object in a chain: a program that exceeds them (a recursion with a break at each
// level) is not worth its graphs.
constexpr std::size_t kMostContinuations = 256;
constexpr std::ptrdiff_t kMostFramesOfOneCode = 4;

PyObject* g_renderer = nullptr;  // of the package; lives as long as the process

/// Tells an observer, if there is one, how long its scope took.
class Stopwatch {
 public:
  Stopwatch(CaptureObserver* observer, const char* phase) : observer_(observer), phase_(phase) {}
  ~Stopwatch() {
    if (observer_) observer_->spent(phase_, std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }

 private:
  CaptureObserver* observer_;
  const char* phase_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool recurses(const LiveChain& chain) {
  const PyCodeObject* innermost = compat::code_of(chain[chain.depth() - 1].frame);
  std::ptrdiff_t same = 0;
  for (std::size_t depth = 0; depth < chain.depth(); ++depth) same += compat::code_of(chain[depth].frame) == innermost;
  return same > kMostFramesOfOneCode;
}

/// Whether a function passes on whatever it is given (a decorator's, a module's call): its code runs for many functions, and tells of none.
bool passes_on(PyObject* code) {
  constexpr int kAny = CO_VARARGS | CO_VARKEYWORDS;
  return (reinterpret_cast<PyCodeObject*>(code)->co_flags & kAny) == kAny;
}

}  // namespace

void take_renderer(Ref renderer) { Py_XSETREF(g_renderer, renderer.release()); }

Ref render(PyObject* traced) {
  if (!g_renderer) return checked(PyObject_CallMethod(traced, "text", nullptr));
  return Ref::steal(PyObject_CallOneArg(g_renderer, traced));
}

FunctionCache::FunctionCache(Ref callable, Settings settings)
    : callable_(std::move(callable)), settings_(std::move(settings)), name_(name_of_callable(callable_.get())) {}

int FunctionCache::traverse(visitproc visit, void* arg) const {
  Py_VISIT(callable_.get());
  Py_VISIT(settings_.callable.get());
  const auto visit_entries = [&](const CapturePoint& point) {
    for (const EntryRef& entry : point.entries())
      if (int stopped = entry->traverse(visit, arg)) return stopped;
    return 0;
  };
  for (const auto& [hash, point] : continuations_)
    if (int stopped = visit_entries(*point)) return stopped;
  return visit_entries(start_);
}

void FunctionCache::clear() {
  said_.clear();
  stepped_.clear();
  plain_functions_.clear();
  recompiles_ = 0;
  budget_.clear();
  trial_.reset();
  changes_ = 0;
  std::vector<EntryRef> gone = start_.clear();  // to the end: what ends with them may call the function
  for (auto& [hash, point] : continuations_) std::ranges::move(point->clear(), std::back_inserter(gone));
}

// ---- calls

PyObject* FunctionCache::call(PyObject* const* values, std::size_t nargsf, PyObject* keyword_names) {
  ++counters().calls;
  if (messages_wait()) [[unlikely]] deliver_messages();
  const CallArguments call{values, static_cast<std::size_t>(PyVectorcall_NARGS(nargsf)), keyword_names};
  const SaidToCalls said = said_to_calls();
  if (said.runs_plainly) [[unlikely]] return eagerly(call);
  if (!has_said_of_torch(said.is_profiled)) [[unlikely]] say_of_torch(said.is_profiled);
  if (!profiling().takes_ranges()) [[likely]] return call_here(call);
  const CallRange range("call " + name_);
  return call_here(call);
}

inline PyObject* FunctionCache::call_here(const CallArguments& call) {
  budget_.begins_call();
  if (trial_ && trial_->next() == PlainTrial::Way::plain) [[unlikely]] return run_on_trial(call);
  Beginning beginning;
  if (trial_) beginning = {seconds_now(), counters().graph_breaks + counters().graphs};
  if (EntryRef entry = entry_at(start_, call, nullptr)) [[likely]] return run(std::move(entry), call, beginning);
  return PyErr_Occurred() ? nullptr : eagerly_after(beginning, call);
}

PyObject* FunctionCache::run(EntryRef entry, const CallArguments& call, const Beginning& beginning) {
  if (!entry->has_frames_left()) return eagerly(call);
  Built built;
  const RunStatus status = entry->run(built);
  PyObject* result = nullptr;
  const bool breaks = static_cast<bool>(entry->segment().stop);
  if (status == RunStatus::done) result = breaks ? run_in_steps(entry, std::move(built.objects), beginning) : built.result.release();
  if (status == RunStatus::refused || status == RunStatus::unlike) note_refusal(start_, entry);
  else if (entry->walks()) start_.unlike = 0;
  entry = {};
  if (trial_ && status == RunStatus::done && !breaks && has_many_variants()) [[unlikely]] took_compiled(beginning, true);
  if (status == RunStatus::done || status == RunStatus::raised) return result;
  report_refusal(status);
  ++changes_;
  return eagerly_after(beginning, call);
}

/// A call that goes on after a graph break.
PyObject* FunctionCache::run_in_steps(EntryRef entry, std::vector<Ref> objects, const Beginning& beginning) {
  Continuation continuation(*this);
  PyObject* result = continuation.run(std::move(entry), std::move(objects));
  if (result && may_be_left()) took_compiled(beginning, continuation.goes_through_elements() || continuation.does_little() || continuation.ended_plainly() || !stepped_.empty() || has_many_variants());
  return result;
}

/// Whether it is in doubt that graphs pay, since what they hold for changes over and over.
bool FunctionCache::has_many_variants() const {
  constexpr std::size_t kMany = 12;
  return changes_ >= kMany;
}

/// A call that no graph holds for, or whose graph could not run.
PyObject* FunctionCache::eagerly_after(const Beginning& beginning, const CallArguments& call) {
  PyObject* result = eagerly(call);
  if (result && may_be_left() && has_many_variants()) took_compiled(beginning, true);
  return result;
}

/// Takes note of how long a call has taken that was not on trial as a plain one.
void FunctionCache::took_compiled(const Beginning& beginning, bool is_in_doubt) {
  if (!trial_) {
    trial_ = std::make_unique<PlainTrial>();
  } else if (beginning.seconds == 0 || counters().graph_breaks + counters().graphs != beginning.compiled) {
    trial_->begin_anew();
  } else {
    trial_->took_compiled(seconds_now() - beginning.seconds, is_in_doubt);
    if (const auto why = trial_->decision()) leave_to_python(start_, *why);
  }
}

/// A call as plain Python, by which is seen how long that takes.
PyObject* FunctionCache::run_on_trial(const CallArguments& call) {
  const double begun = seconds_now();
  PyObject* result = eagerly(call);
  if (!result || !trial_) return result;
  trial_->took_plain(seconds_now() - begun);
  if (const auto why = trial_->decision()) leave_to_python(start_, *why);
  return result;
}

PyObject* FunctionCache::eagerly(const CallArguments& call) {
  ++counters().eager_fallbacks;
  compat::raise_interrupt_in_next_code();  // that came while it was captured or compiled
  if (PyErr_Occurred()) return nullptr;
  return PyObject_Vectorcall(callable_.get(), call.values, call.positional, call.keyword_names);
}

EntryRef FunctionCache::entry_at(CapturePoint& point, const CallArguments& values, const LiveChain* chain, bool again) {
  if (point.left_to_python || point.is_checking()) return {};
  if (const std::optional<TorchState> state = torch_state()) [[likely]] {
    // Asked before the check: NumPy may answer in Python, and the values of a check are gone with the next one, on whatever thread.
    const bool loud = point.uses_numpy() && !numpy_errors_are_quiet();
    if (EntryRef entry = point.find(*state, values)) [[likely]] {
      if (!loud || !entry->uses_numpy()) [[likely]] return entry;
      refuse({.reason = kLoudErrors, .hint = kErrstateHint, .stack = {}});
      return {};
    }
  }
  return miss(point, values, chain, again);
}

double FunctionCache::seconds_to_find(const CallArguments& call, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    const std::optional<TorchState> state = torch_state();
    if (!state || !start_.find(*state, call)) return -1;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
}

CapturePoint* FunctionCache::point_after(CacheEntry& entry, const LiveChain& chain, const ChainSlots& slots, const DrawnNumbers& drawn) {
  for (CapturePoint* point : entry.successors)
    if (point->is_at(chain, slots)) return point;
  const std::size_t hash = CapturePoint::hash(chain);
  const auto [first, last] = continuations_.equal_range(hash);
  auto found = std::find_if(first, last, [&](const auto& each) { return each.second->is_at(chain, slots); });
  if (found == last) {
    const bool recursive = recurses(chain);
    if (recursive || continuations_.size() >= kMostContinuations) {
      const std::string many = recursive ? "in a recursion" : fmt::format("at more than {} places", kMostContinuations);
      if (std::exchange(places_limit_told_, true)) return nullptr;
      tell("compile", fmt::format("tenon: recompile limit reached for {}: it breaks {}, the last time{}; what follows runs as plain Python{}", shown_at(start_), many,
                           CapturePoint(chain, slots).describe(), stack_text(running_frames())));
      return nullptr;
    }
    found = continuations_.emplace(hash, std::make_unique<CapturePoint>(chain, slots));
    found->second->expect_other_numbers(chain, drawn);
  }
  entry.successors.push_back(found->second.get());
  return found->second.get();
}

// ---- misses

EntryRef FunctionCache::miss(CapturePoint& point, const CallArguments& values, const LiveChain* chain, bool again) {
  if (current_evaluator()) return {};  // C code calls this from within a capture: what it is given are stand-ins
  const Delivery delivery;
  const compat::SignalsWait waiting;
  if (point.turn.wait()) return compat::has_interrupt() ? EntryRef() : entry_at(point, values, chain, again);
  const Turn::Taken turn(point.turn);
  torch_library();                          // torch may have been imported since
  const std::optional<TorchState> now = torch_state();
  CaptureBreak why{.reason = refusal(now), .hint = kStateHint, .stack = {}};
  if (why.reason.empty() && point.loud >= kMostFailures && !numpy_errors_are_quiet()) why = {.reason = kLoudErrors, .hint = kErrstateHint, .stack = {}};
  if (!why.reason.empty()) {
    refuse(why);
    return {};
  }
  told_ = told_to_torch();
  if (stays_plain(point)) return {};
  const bool leaves_loops = !settings_.callable && !settings_.fullgraph;
  if (again && leaves_loops && point.is_of_elements()) {
    leave_to_python(point, "a loop breaks at elements that it takes one by one, and does too little in a round to be compiled for the next");
    leave_loop(*chain);
    return {};
  }
  if (limit_reached(point, *now, values)) return {};
  if (may_be_left() && !budget_.grants()) {
    report_wait(point, *now, values);
    return {};
  }
  if (!point.entries().empty()) report_recompile(point, *now, values);
  const bool freeze = still_freezes(point);
  constexpr std::size_t kSeveral = 3;
  point.numbers.takes_any_layout = point.entries().size() >= kSeveral;
  // A function that has come to many variants rather breaks at what makes them.
  point.numbers.splits = !settings_.fullgraph && !settings_.callable && 2 * point.entries().size() >= recompile_limit();
  point.numbers.may_break = (chain || point.numbers.splits) && !settings_.fullgraph;
  point.numbers.may_assume = !settings_.callable && point.numbers.branches_assumed;
  const ChainStart start = chain ? chain->start() : ChainStart{};
  std::variant<EntryRef, CaptureBreak> captured;
  {
    Stopwatch watch(observer_, "capture");
    Range range;
    if (profiling().takes_ranges()) range.begin(profiling(), "capture " + name_);
    captured = capture_segment({callable_.get(), chain ? &start : nullptr, values}, *now, name_, dynamic_of(settings_, told_.dynamic), point.numbers,
                               {.places = {.host_only = false, .backends = settings_.callable ? nullptr : &settings_.backends}, .freeze = freeze, .leave_loops = leaves_loops, .tries_plain = may_be_left(), .stepped = leaves_loops ? &stepped_ : nullptr, .plain = leaves_loops ? &plain_functions_ : nullptr});
  }
  if (const auto* stopped = std::get_if<CaptureBreak>(&captured)) {
    if (!stopped->interrupted) ++point.failures;
    refuse(*stopped);
    return {};
  }
  if (!point.entries().empty() && leaves_function(point, "it breaks, and goes now one way and now another without computing on arrays")) return {};
  return keep(point, std::get<EntryRef>(std::move(captured)), *now, values);
}

/// Compiles a fresh entry and puts it into the cache. Null when it cannot be used for these values.
EntryRef FunctionCache::keep(CapturePoint& point, EntryRef entry, const TorchState& state, const CallArguments& values) {
  report_capture(*entry);
  if (!may_end_here(*entry)) return {};
  CaptureBreak why;
  if (entry->uses_numpy() && !numpy_errors_are_quiet()) {
    ++point.loud;
    why = {.reason = kLoudErrors, .hint = kErrstateHint, .stack = {}};
  } else if (!point.holds(entry, state, values)) {  // finds the inputs of this call; the capture itself has checked that it holds
    ++point.failures;
    why = {.reason = "the guards of the capture do not hold right after it", .hint = kReportHint, .stack = {}};
  }
  if (!why.reason.empty()) {
    refuse(why);
    return {};
  }
  try {
    Stopwatch watch(observer_, "compile");
    if (!entry->compile(settings_, name_)) {
      if (!compat::has_interrupt()) fail_to_compile();
      return {};
    }
  } catch (const GraphBreak& stop) {
    ++point.failures;
    why.reason = stop.reason();
    why.hint = stop.hint();
    refuse(why);
    return {};
  }
  if (!settings_.callable) entry->drop_recording();
  if (entry->op_count() > 0) ++counters().graphs;
  point.add(entry);
  return point.holds(entry, state, values) ? std::move(entry) : EntryRef();  // compiling gave other threads time to change what was read
}

/// Whether a segment may end where this one does. Reports its break.
bool FunctionCache::may_end_here(const CacheEntry& entry) {
  const std::unique_ptr<BreakState>& stop = entry.segment().stop;
  if (!stop || stop->why.raises) return true;
  ++counters().graph_breaks;
  if (settings_.fullgraph) {
    set_error(ErrorClass::graph_break, break_message(stop->why, name_));
    return false;
  }
  report_break(stop->why, stop->why.wants_numbers ? "With its value the next graph begins there." : "The instruction runs as plain Python, what follows is compiled on.");
  return true;
}

/// Whether the next capture freezes parameters: not once they have been written as often as the limit on recompiles.
bool FunctionCache::still_freezes(CapturePoint& point) {
  if (!settings_.freeze || settings_.callable) return false;
  point.drop_outlived();
  if (point.outlived < recompile_limit()) return true;
  say_once(fmt::format("tenon: recompile limit of {} reached for {}: its frozen parameters keep being written; they are inputs from now on", recompile_limit(),
                       shown_at(point)));
  return false;
}

/// Whether the program has asked torch's compiler to capture nothing now, or an error is set since it has forbidden to recompile.
bool FunctionCache::stays_plain(const CapturePoint& point) {
  if (told_.runs_plainly) return true;
  if (point.entries().empty()) return false;
  if (!told_.no_recompiles.empty()) set_error(ErrorClass::error, fmt::format("{} would be compiled again, which {} forbids; TENON_LOGS=recompiles says what has changed", shown_at(point), told_.no_recompiles));
  return told_.recompiles_plainly || !told_.no_recompiles.empty();
}

bool FunctionCache::limit_reached(CapturePoint& point, const TorchState& state, const CallArguments& values) {
  const auto live = std::ranges::count_if(point.entries(), [](const EntryRef& entry) { return !entry->outlived(); });
  const bool drawn = has_usual_limit() && point.is_reused();  // the budget sees to these
  const bool accumulated = told_.accumulated_limit && !point.entries().empty() && recompiles_ >= *told_.accumulated_limit;
  const bool variants = accumulated || (!drawn && static_cast<std::size_t>(live) >= recompile_limit());
  const bool given_up = point.failures >= kMostFailures && !settings_.fullgraph;
  if (!variants && !given_up) return false;
  constexpr std::size_t kSure = 3;  // that what has come so far does not come again
  if (variants && has_usual_limit() && ++point.past_limit < kSure) {
    report_wait(point, state, values);
    return true;
  }
  if (!std::exchange(point.limit_reported, true))
    tell("compile", variants ? fmt::format("tenon: recompile limit of {} reached for {}: further variants run eagerly; the last change: {}; give what goes by it a compiled function of its own, "
                                    "or allow more variants with options={{\"recompile_limit\": {}}}; TENON_LOGS=recompiles shows all changes{}",
                                    accumulated ? *told_.accumulated_limit : recompile_limit(), shown_at(point), change_since(point, state, values), recompile_limit() * 4,
                                    stack_text(running_frames()))
                      : fmt::format("tenon: recompile limit reached for {}: {} captures left nothing to run, it runs eagerly from now on; TENON_LOGS=graph_breaks says why{}",
                                    shown_at(point), point.failures, stack_text(running_frames())));
  return true;
}

void FunctionCache::leave_to_python(CapturePoint& point, std::string_view why) {
  if (settings_.callable) return;  // its graphs are the user's to see
  point.left_to_python = !point.is_start();  // the start is tried again
  ++counters().left_to_python;
  if (logs().fallbacks || logs().graph_breaks)
    log_line(fmt::format("tenon: {} is left to plain Python: {}", shown_at(point), why));
}

void FunctionCache::note_segment(const CapturePoint& from, const LiveChain& to, double gain) {
  PyObject* code = from.called_code();
  if (!may_be_left() || !code || passes_on(code) || reinterpret_cast<PyObject*>(compat::code_of(to[to.depth() - 1].frame)) != code || !plain_functions_.note_segment(code, gain)) return;
  report_plain_function(from, "it breaks often, and the graphs in between do less than a break costs");
}

void FunctionCache::note_numbers(const CapturePoint& from) { leaves_function(from, "it breaks, and so does what follows for the numbers that it draws"); }

/// Leaves the function that a continuation is in to plain Python, unless it computes on arrays. Gives whether it did.
bool FunctionCache::leaves_function(const CapturePoint& point, std::string_view why) {
  PyObject* code = point.called_code();
  if (!may_be_left() || !code || passes_on(code) || !plain_functions_.note_cost(code)) return false;
  report_plain_function(point, why);
  return true;
}

void FunctionCache::end_plain_trial(PyObject* result) {
  if (!plain_functions_.is_on_trial()) return;
  const bool numbers = result && holds_numbers_alone(result);
  plain_functions_.end_trial(numbers);
  if (!numbers) return;
  ++counters().left_to_python;
  if (logs().fallbacks || logs().graph_breaks) log_line(fmt::format("tenon: {}: a function that draws numbers at which it breaks, and gives nothing else, is called as plain Python from now on", name_));
}

void FunctionCache::report_plain_function(const CapturePoint& point, std::string_view why) {
  ++counters().left_to_python;
  if (logs().fallbacks || logs().graph_breaks) log_line(fmt::format("tenon: {}: what it calls{} is called as plain Python from now on: {}", name_, point.describe(), why));
}

/// Leaves the loop that the innermost frame is in to plain Python also where it begins.
void FunctionCache::leave_loop(const LiveChain& chain) {
  const LiveChain::Link& innermost = chain[chain.depth() - 1];
  PyCodeObject* code = compat::code_of(innermost.frame);
  const auto decoded_code = decoded(code);
  for (std::int32_t at = innermost.instruction; at >= 0; --at)
    if (const Instruction& i = decoded_code->instructions[at]; i.op == Op::for_iter && i.target > innermost.instruction)
      return stepped_.add(reinterpret_cast<PyObject*>(code), at, true);
}

/// The program goes on as plain Python, or not at all where a whole graph is demanded.
void FunctionCache::refuse(const CaptureBreak& why) {
  if (why.interrupted) return;
  ++counters().graph_breaks;
  if (observer_) observer_->failed(why);
  if (settings_.fullgraph) set_error(ErrorClass::graph_break, break_message(why, name_));
  else report_break(why, "The call runs eagerly.");
}

/// What the user asked for wrongly, their own backend's failure and what a signal's handler raised are theirs to see; a failure of ours is an event and an eager call.
void FunctionCache::fail_to_compile() {
  const TenonFailure* failure = settings_.callable ? nullptr : tenon_last_error();
  const bool theirs = settings_.callable || settings_.fullgraph || !PyErr_Occurred() ||
                      (failure && (failure->code == TENON_INVALID_ARGUMENT || failure->code == TENON_NOT_FOUND || failure->code == TENON_CANCELLED));
  if (theirs && PyErr_Occurred()) return;
  Ref exception = PyErr_Occurred() ? compat::take_exception() : Ref();
  Ref text = exception ? Ref::steal(PyObject_Str(exception.get())) : Ref();
  PyErr_Clear();
  say_once(fmt::format("tenon: {} runs eagerly: {}", shown_at(start_), text ? PyUnicode_AsUTF8(text.get()) : "it could not be compiled"));
}

}  // namespace tenon::python
