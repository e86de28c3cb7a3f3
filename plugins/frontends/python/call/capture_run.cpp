#include "python/call/capture_run.h"

#include <fmt/format.h>

#include <utility>

#include "python/call/turn.h"
#include "python/compat/collection.h"
#include "python/compat/real_frame.h"
#include "python/compat/waiting_signals.h"
#include "python/objects/imported.h"
#include "python/recording/tensor_recorder.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

std::string text_attribute(PyObject* object, const char* name) {
  Ref value = Ref::steal(interned_attribute(object, name));
  const char* text = value && PyUnicode_Check(value.get()) ? PyUnicode_AsUTF8(value.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

}  // namespace

std::string name_of_callable(PyObject* callable) {
  for (const char* attribute : {"__qualname__", "__name__"})
    if (std::string text = text_attribute(callable, attribute); !text.empty()) return text;
  return Py_TYPE(callable)->tp_name;
}

namespace {

using Captured = std::variant<EntryRef, CaptureBreak>;

// Each evaluation ends earlier than the one before it; more than these are not worth their time.
constexpr int kMostEvaluations = 24;

/// What a capture says about the next of the same call.
struct Outlook {
  bool learned = false;      // the capture must be repeated with what it has found out about numbers
  bool has_symbols = false;
  bool breaks_for_number = false;  // instead of taking one as a constant
  bool functions_leave = false;    // and with their gradients in the graph
};

/// One evaluation up to the instruction at which the segment is to end (0: to the return).
Captured evaluate_once(const CaptureStart& start, const TorchState& state, const std::string& name, std::size_t stop_before, TensorRecorder::Numbers numbers,
                       CaptureWishes wishes, Outlook& outlook) {
  TensorRecorder recorder(state, numbers, wishes.places, wishes.freeze, /*gradients=*/true, wishes.functions_leave);
  struct Noting {
    TensorRecorder& recorder;
    Outlook& outlook;
    ~Noting() { outlook = {recorder.learned(), recorder.has_symbols(), recorder.breaks_for_number(), recorder.functions_leave()}; }
  } noting{recorder, outlook};
  CaptureOptions options;
  options.stop_before = stop_before;
  options.leave_loops = wishes.leave_loops;
  options.stepped = wishes.stepped;
  options.plain = wishes.plain;
  auto captured = capture(start, recorder, options);
  if (auto* broken = std::get_if<CaptureBreak>(&captured)) return std::move(*broken);
  CaptureBreak broken;
  try {
    CapturedGraph graph = recorder.finish();
    graph.recording->graph.name = name;
    return EntryRef(new CacheEntry(state, std::move(std::get<Segment>(captured)), std::move(graph)));
  } catch (const GraphBreak& stop) {
    broken.reason = stop.reason();
    broken.hint = stop.hint();
  } catch (const std::exception& failure) {
    PyErr_Clear();
    broken.reason = fmt::format("an internal failure: {}", failure.what());
    broken.hint = kReportHint;
  }
  return broken;
}

}  // namespace

Dynamic dynamic_of(const Settings& settings, std::optional<bool> otherwise) {
  if (settings.callable) return Dynamic::never;
  const std::optional<bool> dynamic = settings.dynamic ? settings.dynamic : otherwise;
  if (!dynamic) return Dynamic::when_varying;
  return *dynamic ? Dynamic::always : Dynamic::never;
}

namespace {

/// Evaluates until nothing more is learned about numbers.
Captured evaluate(const CaptureStart& start, const TorchState& state, const std::string& name, std::size_t stop_before, Dynamic dynamic, NumberHistory& history,
                  CaptureWishes wishes) {
  constexpr int kMostRounds = 24;
  NumberFacts facts;
  bool settled = false, constants = false;
  for (int round = 0;; ++round) {
    if (round == kMostRounds) facts.fix_all();
    Outlook outlook;
    Captured captured = evaluate_once(start, state, name, stop_before, {dynamic, history, facts}, wishes, outlook);
    const auto* broken = std::get_if<CaptureBreak>(&captured);
    if (broken && broken->interrupted) return captured;
    if (broken && outlook.functions_leave && !std::exchange(wishes.functions_leave, true)) continue;
    bool again = outlook.learned && round < kMostRounds;
    const bool stops_early = broken && broken->stop_before > 0 &&
                             (outlook.breaks_for_number || broken->leaves || broken->steps || broken->wants_numbers || (wishes.leave_loops && (broken->on_elements || history.constants_wear_out())));
    if (!again && broken && outlook.has_symbols && !stops_early && facts.fix_all()) {  // constants may do where symbols do not
      again = constants = true;
      if (logs().recompiles) log_line(fmt::format("tenon: all numbers of {} are taken as constants: {}", name, broken->reason));
    }
    if (!again && broken && broken->drawn_in && wishes.tries_plain) again = wishes.plain->begin_trial(broken->drawn_in.get());
    if (!again && broken && broken->unsettled) again = !std::exchange(settled, true);
    if (again) continue;
    if (constants && !broken) history.note_constants();
    return captured;
  }
}

/// Of the thread that captures: one at a time in the process. A capture changes real objects until it takes that back, and what it makes once a
/// process by running Python would keep a second thread waiting with the GIL that the first one needs.
Turn g_turn;

}  // namespace

std::variant<EntryRef, CaptureBreak> capture_segment(const CaptureStart& start, const TorchState& state, const std::string& name, Dynamic dynamic,
                                                     NumberHistory& history, CaptureWishes wishes) {
  while (g_turn.wait())
    if (compat::has_interrupt()) {
      CaptureBreak broken;
      broken.interrupted = true;
      return broken;
    }
  const Turn::Taken turn(g_turn);
  const compat::WithoutCollection quiet;  // nothing that a capture makes is garbage, and each look at all objects of torch's modules takes 65 ms
  std::optional<CaptureBreak> first;
  std::size_t stop_before = 0;
  for (int evaluation = 0; evaluation < kMostEvaluations; ++evaluation) {
    Captured captured = evaluate(start, state, name, stop_before, dynamic, history, wishes);
    if (auto* entry = std::get_if<EntryRef>(&captured)) {
      if (first) (*entry)->segment().stop->why = std::move(*first);
      return captured;
    }
    CaptureBreak& broken = std::get<CaptureBreak>(captured);
    const bool earlier = broken.stop_before > 0 && (stop_before == 0 || broken.stop_before < stop_before);
    if (broken.interrupted || !earlier || !compat::real_frames_work()) return captured;
    stop_before = broken.stop_before;
    if (!first) first = std::move(broken);
  }
  return std::move(*first);
}

std::string break_message(const CaptureBreak& broken, const std::string& name) {
  std::string text = fmt::format("{} cannot be captured as one graph: {}", name, broken.reason);
  text += stack_text(broken.stack);
  if (!broken.hint.empty()) text += fmt::format("\n  Hint: {}", broken.hint);
  return text;
}

}  // namespace tenon::python
