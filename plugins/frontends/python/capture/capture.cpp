#include "python/capture/capture.h"

#include <fmt/format.h>

#include "python/capture/frame_chain.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

thread_local Evaluator* active_evaluator = nullptr;

/// Makes an evaluator the one that callbacks find, and puts back what was being handled before.
class Activation {
 public:
  explicit Activation(Evaluator* evaluator) : previous_(std::exchange(active_evaluator, evaluator)), handled_(compat::handled_exception()) {}
  ~Activation() {
    active_evaluator = previous_;
    compat::set_handled_exception(handled_.get());
  }

 private:
  Evaluator* previous_;
  Ref handled_;
};

CaptureBreak break_at(const Evaluator& evaluator, const GraphBreak& graph_break) {
  CaptureBreak result;
  result.reason = graph_break.reason();
  result.hint = graph_break.hint();
  for (const auto& frame : evaluator.frames()) result.stack.push_back(stack_entry(frame->code->code(), frame->code->position_of(frame->current)));
  return result;
}

/// The names under which the arguments appear in messages: the function's parameters, as far as they are plain.
std::vector<std::string> argument_names(PyObject* callable, const CallArguments& call) {
  const Ref function = function_behind(callable);
  if (!function) return {};
  const std::size_t skip = PyFunction_Check(callable) ? 0 : 1;
  auto* code = reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(function.get())->func_code);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < call.positional; ++at) {
    const std::size_t parameter = at + skip;
    const bool named = parameter < static_cast<std::size_t>(code->co_argcount);
    names.push_back(named ? text_or_empty(PyTuple_GET_ITEM(code->co_localsplusnames, parameter)) : fmt::format("arg[{}]", at));
  }
  for (std::size_t at = 0; at < call.keyword_count(); ++at) names.push_back(text_or_empty(PyTuple_GET_ITEM(call.keyword_names, at)));
  return names;
}

/// The names of the slots of a chain.
std::vector<std::string> slot_names(const ChainStart& start) {
  std::vector<std::string> names;
  for (const ChainStart::Frame& frame : start.frames) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(frame.function));
    for (int slot = 0; slot < code->co_nlocalsplus + frame.stack_size; ++slot) names.push_back(name_of_slot(code, slot));
    if (frame.completion == Completion::push_object) names.push_back("self");
  }
  return names;
}

/// The call as it reaches the evaluator: arguments whose reads are guarded when the program consumes them.
Ref evaluate(Evaluator& evaluator, PyObject* callable, const CallArguments& call) {
  Heap& heap = evaluator.heap();
  const SourceId root = heap.sources().constant(callable);
  heap.make_known(callable, root);
  if (PyType_HasFeature(Py_TYPE(callable), Py_TPFLAGS_HEAPTYPE)) heap.guards().add(GuardKind::type_is, root, reinterpret_cast<PyObject*>(Py_TYPE(callable)));
  Arguments arguments;
  arguments.names = Ref::borrow(call.keyword_count() > 0 ? call.keyword_names : nullptr);
  for (std::size_t at = 0; at < call.count(); ++at)
    arguments.values.push_back(heap.enter(heap.sources().argument(static_cast<std::int64_t>(at)), call.values[at]));
  return evaluator.call_now(callable, std::move(arguments));
}

/// What a run leaves: objects and their nodes.
struct Ending {
  ResultTemplate objects;
  std::uint32_t result = 0;
  Replay journal;
  std::unique_ptr<BreakState> stop;
};

Ending run_to_the_end(Evaluator& evaluator, const CaptureStart& start) {
  Activation activation(&evaluator);
  Snapshot snapshot(evaluator.heap(), evaluator.recorder());
  Ending ending;
  Ref value;  // the snapshot knows it by address
  try {
    if (start.chain) FrameChain(evaluator).begin(*start.chain, start.values);
    value = start.chain ? evaluator.run(0) : evaluate(evaluator, start.callable, start.values);
    ending.result = snapshot.add(value.get());
  } catch (const StopHere&) {
    ending.stop = std::make_unique<BreakState>(FrameChain(evaluator).describe(snapshot, start.chain, start.values));
  }
  if (evaluator.late_failure() != nullptr) throw GraphBreak(evaluator.late_failure());
  evaluator.library_states().finish();
  evaluator.heap().journal_gradients();
  ending.journal = evaluator.heap().journal().write(snapshot);
  ending.objects = snapshot.take();
  return ending;
}

/// The code of a called function that has drawn the numbers for which a graph ends, and done nothing on arrays: the innermost one, or one that has returned with
/// the number; where the graph does nothing on arrays at all, the one that has recorded the first of its nodes.
Ref drawn_in(Evaluator& evaluator) {
  constexpr int kPassesOn = CO_VARARGS | CO_VARKEYWORDS;
  const std::size_t work = evaluator.recorder().array_work();
  if (work == 0) return evaluator.first_to_record();
  const auto& frames = evaluator.frames();
  if (frames.empty()) return {};
  const Frame& frame = *frames.back();
  const bool draws = frames.size() > 1 && frame.work_before == work && evaluator.recorder().recorded() > frame.nodes_before;
  if (draws && !frame.kept && !frame.generator && (frame.code->code()->co_flags & kPassesOn) != kPassesOn) return frame.code->object;
  const auto first = evaluator.recorder().first_of_needed();
  return first ? evaluator.recorded_in(*first) : Ref();
}

/// The break of a run that ended in an exception. The heap is rolled back already.
CaptureBreak broken(Evaluator& evaluator, std::exception_ptr failure) {
  Heap& heap = evaluator.heap();
  std::size_t stop_before = evaluator.late_failure() != nullptr ? evaluator.late_failure_at() : heap.now;
  CaptureBreak result;
  try {
    std::rethrow_exception(failure);
  } catch (const Unbuildable& object) {
    stop_before = heap.born_at(object.object());
    result = break_at(evaluator, object);
  } catch (const UnrolledLoop& loop) {
    stop_before = loop.stop_before();
    result = break_at(evaluator, loop);
    result.leaves = true;
  } catch (const PlainCall& call) {
    result = break_at(evaluator, call);
    result.calls_plain = true;
  } catch (const ElementsNeeded& read) {
    result = break_at(evaluator, read);
    result.reads_elements = true;
  } catch (const NumberNeeded& number) {
    result = break_at(evaluator, number);
    result.wants_numbers = true;
  } catch (const BranchOnElements& branch) {
    result = break_at(evaluator, branch);
    result.on_elements = true;
  } catch (const SteppedLoop& loop) {
    result = break_at(evaluator, loop);
    result.steps = true;
    result.leaves = loop.leaves();
  } catch (const UnhandledException& raised) {
    result = break_at(evaluator, raised);
    result.raises = true;
  } catch (const GraphBreak& graph_break) {
    result = break_at(evaluator, graph_break);
    result.draws = graph_break.hint() == kDrawHint;
  } catch (const std::exception& fault) {
    const bool python = dynamic_cast<const PythonError*>(&fault) != nullptr;
    if (python && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
      result.interrupted = true;
      return result;
    }
    result = break_at(evaluator, python ? GraphBreak("the call raises an exception", kRaisesHint) : GraphBreak(fmt::format("an internal failure: {}", fault.what()), kReportHint));
  }
  PyErr_Clear();
  if (result.reads_elements || result.wants_numbers) result.drawn_in = drawn_in(evaluator);
  const std::optional<std::size_t> elements = evaluator.loops().unrolled().unfinished();
  if (elements && *elements < stop_before && !result.raises) {
    stop_before = *elements;
    result.leaves = true;
  }
  result.stop_before = stop_before;
  return result;
}

/// Frees, when all else of a capture is gone, the classes that it made: their bases would name them among their `__subclasses__()`.
struct LeftClasses {
  bool any = false;

  ~LeftClasses() {
    if (!any) return;
    Ref pending = PyErr_Occurred() ? compat::take_exception() : Ref();
    Ref collector = Ref::steal(imported("gc"));
    Ref done = collector ? Ref::steal(PyObject_CallMethod(collector.get(), "collect", "i", 1)) : Ref();
    PyErr_Clear();
    if (pending) compat::set_exception(std::move(pending));
  }
};

std::vector<std::string> value_names(const CaptureStart& start) {
  return start.chain ? slot_names(*start.chain) : argument_names(start.callable, start.values);
}

}  // namespace

Ref function_behind(PyObject* callable) {
  if (PyFunction_Check(callable)) return Ref::borrow(callable);
  if (PyMethod_Check(callable)) return PyFunction_Check(PyMethod_GET_FUNCTION(callable)) ? Ref::borrow(PyMethod_GET_FUNCTION(callable)) : Ref();
  for (const char* name : {"forward", "__call__"}) {
    const Ref interned = Ref::steal(PyUnicode_InternFromString(name));
    if (PyObject* found = compat::type_lookup(Py_TYPE(callable), interned.get()); found != nullptr && PyFunction_Check(found)) return Ref::borrow(found);
  }
  return {};
}

std::string name_of_slot(PyCodeObject* code, int slot) {
  if (slot < code->co_nlocalsplus) return text_or_empty(PyTuple_GET_ITEM(code->co_localsplusnames, slot));
  return fmt::format("<intermediate value {} of {}>", slot - code->co_nlocalsplus, text_or_empty(code->co_name));
}

Evaluator* current_evaluator() { return active_evaluator; }

std::variant<Segment, CaptureBreak> capture(const CaptureStart& start, Recorder& recorder, const CaptureOptions& options) {
  LeftClasses left;
  SourceTable sources;
  sources.name_arguments(value_names(start));
  GuardSet guards(sources);
  Heap heap(recorder, guards);
  Evaluator evaluator(recorder, heap, options);
  Ending ending;
  try {
    ending = run_to_the_end(evaluator, start);
    guards.set_numbers(recorder.numbers());
    left.any = heap.holds_new_classes();
    heap.rollback();
  } catch (const std::exception&) {
    const std::exception_ptr failure = std::current_exception();
    left.any = heap.holds_new_classes();
    heap.rollback();
    return broken(evaluator, failure);
  } catch (const Interrupted&) {
    left.any = heap.holds_new_classes();
    heap.rollback();
    CaptureBreak result;
    result.interrupted = true;
    return result;
  }
  std::vector<SourceId> wanted = heap.inputs();
  wanted.insert(wanted.end(), ending.objects.sources.begin(), ending.objects.sources.end());
  const std::vector<SourceId> inputs = heap.inputs();
  std::shared_ptr<LaterCheck> later = LaterCheck::of(sources, guards);
  Segment segment{CheckProgram(std::move(sources), guards, start.values, wanted), std::move(later), std::move(ending.objects), ending.result, std::move(ending.journal), {}, {}, evaluator.instructions(), std::move(ending.stop)};
  segment.ends = evaluator.ends();
  for (SourceId input : inputs) segment.input_slots.push_back(segment.guards.slot(input));
  const auto slot_of_input = [&](SourceId source) { return std::ranges::find(inputs, source) == inputs.end() ? std::nullopt : std::optional(segment.guards.slot(source)); };
  for (const Heap::DroppedGradient& dropped : heap.dropped_gradients())
    if (const auto of = slot_of_input(dropped.of)) segment.dropped_gradients.push_back({*of, slot_of_input(dropped.gradient)});
  segment.objects.bind(segment.guards);
  if (options.self_check) {
    if (std::optional<GuardFailure> failure = segment.guards.explain(start.values)) {
      CaptureBreak result = break_at(evaluator, GraphBreak(fmt::format("the guard '{}' on {} does not hold right after the capture (expected {}, found {})",
                                                                       failure->guard, failure->source, failure->expected, failure->found),
                                                           "it changed while the call was captured; another call captures again"));
      result.unsettled = true;
      return result;
    }
  }
  return segment;
}

}  // namespace tenon::python
