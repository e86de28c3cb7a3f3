#include "python/capture/frame_chain.h"

#include <algorithm>

#include "python/evaluator/evaluator.h"
#include "python/objects/iterators.h"

namespace tenon::python {
namespace {

std::unique_ptr<Frame> frame_of(const ChainStart::Frame& start, bool innermost) {
  auto frame = std::make_unique<Frame>();
  auto* function = reinterpret_cast<PyFunctionObject*>(start.function);
  frame->code = decoded(reinterpret_cast<PyCodeObject*>(function->func_code));
  frame->globals = Ref::borrow(function->func_globals);
  frame->builtins = Ref::borrow(function->func_builtins);
  frame->current = start.instruction;
  frame->next = innermost ? start.instruction : start.instruction + 1;
  frame->completion = start.completion;
  frame->kept = true;
  frame->locals.resize(frame->code->local_count());
  frame->stack.reserve(frame->code->code()->co_stacksize);
  return frame;
}

/// A function that stands for the code and globals of a frame; programs cannot see a frame's function.
Ref function_of(const Frame& frame) { return checked(PyFunction_New(frame.code->object.get(), frame.globals.get())); }

}  // namespace

FrameChain::FrameChain(Evaluator& core) : core_(core), heap_(core.heap()), recorder_(core.recorder()) {}

void FrameChain::begin(const ChainStart& start, const CallArguments& values) {
  core_.dropped().watch(values.values, values.count());
  std::int64_t at = 0;
  const auto slot = [&]() -> Slot {
    PyObject* value = values.values[at];
    const SourceId source = heap_.sources().argument(at++);
    if (value == nullptr) return {};
    // Cells are read past the slots that hold them.
    if (PyCell_Check(value)) return {heap_.enter(source, value), {}};
    return {Ref::borrow(value), source};
  };
  for (const ChainStart::Frame& each : start.frames) {
    auto frame = frame_of(each, &each == &start.frames.back());
    for (Slot& local : frame->locals) local = slot();
    for (int n = 0; n < each.stack_size; ++n) frame->stack.push_back(slot());
    if (each.completion == Completion::push_object) frame->completion_object = core_.force(slot());
    core_.keep_frame(std::move(frame));
  }
  for (const auto& frame : core_.frames()) note_counters(*frame);
  core_.frames().front()->completion = Completion::stop;
}

/// Tells the recorder which local variables count the rounds of the loops over ranges that a frame is in.
void FrameChain::note_counters(const Frame& frame) {
  const std::vector<Instruction>& all = frame.code->instructions;
  std::vector<PyObject*> iterators;
  for (const Slot& entry : frame.stack)
    if (entry.object && heap_.traits(entry.object.get()).iterator) iterators.push_back(entry.object.get());
  std::vector<std::int32_t> loops;
  for (std::int32_t at = 0; at < frame.current && !iterators.empty(); ++at)
    if (all[at].op == Op::for_iter && all[at].target > frame.current) loops.push_back(at);
  if (loops.size() != iterators.size()) return;
  for (std::size_t depth = 0; depth < loops.size(); ++depth) {
    const Instruction& takes = all[loops[depth] + 1];
    if (Py_TYPE(iterators[depth]) != &PyRangeIter_Type || takes.op != Op::store_fast) continue;
    const Slot& local = frame.locals[takes.arg];
    if (local.pending) recorder_.counts(local.pending, local.object.get(), upcoming_item(iterators[depth], 0).get(), heap_.guards());
  }
}

/// Describes the slots of one frame. `source` is that of its first slot where the segment began.
class FrameWriter {
 public:
  FrameWriter(Heap& heap, Recorder& recorder, Snapshot& snapshot, BreakState::FrameState& state) : heap_(heap), recorder_(recorder), snapshot_(snapshot), state_(state) {}

  void write(std::uint32_t slot, const Slot& value, SourceId before, bool was_bound) {
    if (!value.object) {
      if (was_bound) state_.writes.push_back({slot, BreakState::kUnbound});
      return;
    }
    if (before && source_behind(value) == before) return;
    state_.writes.push_back({slot, value.pending ? snapshot_.add_source(value.pending) : snapshot_.add(value.object.get())});
  }

 private:
  SourceId source_behind(const Slot& value) {
    if (value.pending) return value.pending;
    if (heap_.is_stand_in(value.object.get())) return recorder_.input_source(value.object.get());
    return heap_.source_of(value.object.get());
  }

  Heap& heap_;
  Recorder& recorder_;
  Snapshot& snapshot_;
  BreakState::FrameState& state_;
};

BreakState FrameChain::describe(Snapshot& snapshot, const ChainStart* start, const CallArguments& values) {
  BreakState result;
  std::int64_t first = 0;  // number of the frame's first slot where the segment began
  for (const auto& frame : core_.frames()) {
    const std::size_t depth = result.frames.size();
    if (frame->class_namespace) throw GraphBreak("a graph break inside a class statement");
    BreakState::FrameState& state = result.frames.emplace_back();
    const bool innermost = frame == core_.frames().back();
    state.kept = frame->kept;
    if (!state.kept) state.function = function_of(*frame);
    state.instruction = innermost ? frame->next : frame->current;
    state.completion = depth == 0 ? Completion::push : frame->completion;
    state.stack_size = static_cast<int>(frame->stack.size());
    FrameWriter writer(heap_, recorder_, snapshot, state);
    const std::size_t locals = frame->locals.size();
    // How many slots there were; those above are new and hold nothing that could be left as it is.
    const std::size_t had = state.kept ? locals + static_cast<std::size_t>(start->frames[depth].stack_size) : 0;
    for (std::size_t slot = 0; slot < locals + frame->stack.size(); ++slot) {
      const bool known = slot < had && values.values[first + static_cast<std::int64_t>(slot)] != nullptr;
      const SourceId before = known ? heap_.sources().argument(first + static_cast<std::int64_t>(slot)) : SourceId{};
      writer.write(static_cast<std::uint32_t>(slot), slot < locals ? frame->locals[slot] : frame->stack[slot - locals], before, known || slot >= std::max(had, locals));
    }
    if (frame->completion == Completion::push_object && !state.kept) state.completion_object = snapshot.add(frame->completion_object.get());
    if (state.kept) first += static_cast<std::int64_t>(had) + (start->frames[depth].completion == Completion::push_object ? 1 : 0);
  }
  result.keyword_names = core_.frames().back()->keyword_names;
  const Ref handled = compat::handled_exception();
  if (handled.get() != core_.exceptions().handled_at_start()) result.handled = handled ? snapshot.add(handled.get()) : BreakState::kUnbound;
  return result;
}

}  // namespace tenon::python
