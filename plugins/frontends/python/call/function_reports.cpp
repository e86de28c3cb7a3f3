// What a function says of its captures: breaks, recompiles and what has changed, graphs, limits.
#include <fmt/format.h>

#include "python/call/capture_run.h"
#include "python/call/function_cache.h"
#include "python/capture/capture.h"
#include "python/graph/gradient_report.h"
#include "python/graph/traced_graph.h"
#include "python/recording/tensor_recorder.h"
#include "python/session/messages.h"
#include "python/session/session.h"

namespace tenon::python {

void FunctionCache::say_once(const std::string& message) {
  if (said_.insert(message).second) tell("compile", message);
}

void FunctionCache::report_refusal(RunStatus status) const {
  const Delivery delivery;
  if (!logs().fallbacks && !logs().graph_breaks) return;
  const TenonFailure* failure = tenon_last_error();
  const char* why = status == RunStatus::warned ? "a floating-point error of which NumPy warns" : status == RunStatus::unlike ? "a branch leads to an exception" : failure && failure->text ? failure->text : "the graph could not run";
  log_line(fmt::format("tenon: {} runs this call eagerly: {}", name_, why));
}

std::string FunctionCache::shown_at(const CapturePoint& point) const {
  if (std::string continued = point.describe(); !continued.empty()) return name_ + continued;
  const Ref function = function_behind(callable_.get());
  if (!function) return name_;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.get()));
  return fmt::format("{} ({}:{})", name_, text_or_empty(code->co_filename), code->co_firstlineno);
}

void FunctionCache::report_break(const CaptureBreak& why, const char* consequence) {
  if (logs().graph_breaks) {
    if (!said_.insert(break_message(why, name_)).second) return;
    CaptureBreak whole = why;
    const std::vector<StackEntry> callers = running_frames();
    whole.stack.insert(whole.stack.begin(), callers.begin(), callers.end());
    log_line(fmt::format("tenon: graph break: {}\n  {}", break_message(whole, name_), consequence));
  }
  else if (why.hint == kGradHint) say_once(fmt::format("tenon: {} runs as plain Python where gradients are needed; under torch.no_grad() it runs compiled", name_));
}

std::optional<GuardFailure> FunctionCache::failure_since(const CapturePoint& point, const TorchState& state, const CallArguments& values) const {
  if (point.entries().empty() || point.is_checking() || !point.entries().front()->holds_in(state)) return std::nullopt;
  const EntryRef held = point.entries().front();  // showing a value may run code of the program
  return held->segment().guards.explain(values);
}

namespace {

/// Which guard of the latest variant fails, in words.
std::string words_of_change(const CapturePoint& point, const TorchState& state, const std::optional<GuardFailure>& failure) {
  if (point.entries().empty() || point.is_checking()) return "none";
  if (!point.entries().front()->holds_in(state)) return "torch's global state changed (grad mode, inference mode, default dtype, precision of float32 products on devices)";
  return failure ? fmt::format("{}: {} was {}, is {}", failure->guard, failure->source, failure->expected, failure->found) : "none that a guard names";
}

}  // namespace

std::string FunctionCache::change_since(const CapturePoint& point, const TorchState& state, const CallArguments& values) const {
  return words_of_change(point, state, failure_since(point, state, values));
}

void FunctionCache::report_recompile(CapturePoint& point, const TorchState& state, const CallArguments& values) {
  ++counters().recompiles;
  ++recompiles_;
  ++changes_;
  const std::optional<GuardFailure> change = failure_since(point, state, values);
  if (change) point.numbers.note_change(change->source);
  if (logs().recompiles) log_line(fmt::format("tenon: recompiling {}: {}{}", shown_at(point), words_of_change(point, state, change), stack_text(running_frames())));
}

/// What is not compiled yet runs as plain Python this time.
void FunctionCache::report_wait(CapturePoint& point, const TorchState& state, const CallArguments& values) {
  ++changes_;
  if (logs().recompiles)
    log_line(fmt::format("tenon: {} has many variants; one more waits until it is needed more often: {}", shown_at(point), change_since(point, state, values)));
}

void FunctionCache::report_capture(CacheEntry& entry) {
  if (observer_) observer_->captured(entry);
  try {
    if (logs().graph_code && entry.op_count() > 0) {
      Ref traced = make_traced_graph(entry.captured(), name_);
      Ref text = checked(render(traced.get()).release());
      log_line(PyUnicode_AsUTF8(text.get()));
    }
    if (logs().autodiff)
      for (const BackwardReport& backward : backward_reports(entry.captured())) {
        log_line(fmt::format("tenon: a backward of {} keeps {} bytes", name_, backward.kept_bytes));
        for (const std::string& line : backward.kept) log_line("  " + line);
        log_line(backward.graph);
      }
    if (logs().guards)
      for (const std::string& guard : entry.segment().guards.describe()) log_line(fmt::format("tenon: guard of {}: {}", name_, guard));
  } catch (const std::exception&) {
    PyErr_WriteUnraisable(callable_.get());
  }
}

}  // namespace tenon::python
