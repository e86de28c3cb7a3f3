#include "python/resume/live_chain.h"

#include "python/compat/object_layout.h"
#include "python/resume/real_instruction.h"

namespace tenon::python {
namespace {

/// Whether CPython has an instruction of its own there. The second half of a fused pair has none.
bool starts_a_code_unit(const DecodedCode& code, int instruction) {
  return instruction == 0 || code.instructions[instruction].unit != code.instructions[instruction - 1].unit;
}

void push_on(compat::RealFrame* frame, Ref value) {
  const int size = compat::stack_size(frame);
  compat::slots_of(frame)[compat::code_of(frame)->co_nlocalsplus + size] = value.release();
  compat::set_stack_size(frame, size + 1);
}

void cut_stack(compat::RealFrame* frame, int depth) {
  for (int size = compat::stack_size(frame); size > depth; --size) {
    Ref dropped = Ref::steal(compat::slots_of(frame)[compat::code_of(frame)->co_nlocalsplus + size - 1]);
    compat::set_stack_size(frame, size - 1);
  }
}

/// `except ... as name` unbinds its name at the end, which a segment does not write to a frame that ends in it. An exception that stayed bound
/// would keep itself alive, by its traceback and this frame.
void unbind_exceptions(compat::RealFrame* frame) {
  for (int slot = 0; slot < compat::code_of(frame)->co_nlocalsplus; ++slot) {
    PyObject*& value = compat::slots_of(frame)[slot];
    if (value != nullptr && PyExceptionInstance_Check(value)) Ref dropped = Ref::steal(std::exchange(value, nullptr));
  }
}

/// Gives a frame the slots that a segment has left.
void write_slots(compat::RealFrame* frame, const BreakState::FrameState& state, const std::vector<Ref>& objects) {
  PyObject** slots = compat::slots_of(frame);
  const int locals = compat::code_of(frame)->co_nlocalsplus, before = compat::stack_size(frame);
  std::vector<Ref> dropped;  // last, when the frame is whole again: finalizers may look at it
  for (int entry = state.stack_size; entry < before; ++entry) dropped.push_back(Ref::steal(slots[locals + entry]));
  for (const BreakState::Write& write : state.writes) {
    PyObject* value = write.node == BreakState::kUnbound ? nullptr : Ref(objects[write.node]).release();
    const bool is_new = static_cast<int>(write.slot) >= locals + before;
    PyObject* old = std::exchange(slots[write.slot], value);
    if (!is_new && old) dropped.push_back(Ref::steal(old));
  }
  compat::set_stack_size(frame, state.stack_size);
}

}  // namespace

LiveChain::LiveChain() : handled_before_(compat::handled_exception()) { links_.reserve(8); }

LiveChain::~LiveChain() {
  while (!links_.empty()) pop();
  compat::set_handled_exception(handled_before_.get());
}

bool LiveChain::settle(const BreakState& stop, std::vector<Ref> objects) {
  const auto object = [&](std::uint32_t node) { return node == BreakState::kUnbound ? Ref() : objects[node]; };
  std::size_t kept = 0;
  while (kept < stop.frames.size() && stop.frames[kept].kept) ++kept;
  end_frames(kept);
  for (std::size_t at = 0; at < stop.frames.size(); ++at) {
    const BreakState::FrameState& state = stop.frames[at];
    if (at >= kept) {
      auto code = decoded(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(state.function.get())));
      compat::RealFrame* frame = compat::push_frame(state.function.get());
      if (frame == nullptr) return false;
      links_.push_back({frame, std::move(code), state.instruction, state.completion, object(state.completion_object)});
    }
    links_[at].instruction = state.instruction;
    show_position(links_[at], compat::Position::running);
    write_slots(links_[at].frame, state, objects);
  }
  if (stop.handled) compat::set_handled_exception(object(*stop.handled).get());
  return true;
}

void LiveChain::show_ends(const std::vector<int>& instructions) {
  for (std::size_t at = 0; at < instructions.size() && at < depth(); ++at) {
    Link& link = links_[depth() - 1 - at];
    link.instruction = instructions[at];
    show_position(link, compat::Position::running);
  }
}

void LiveChain::end_frames(std::size_t kept) {
  while (depth() > kept) {
    unbind_exceptions(innermost().frame);
    pop();
  }
}

PyObject* LiveChain::top() const {
  compat::RealFrame* frame = links_.back().frame;
  const int size = compat::stack_size(frame);
  return size > 0 ? compat::slots_of(frame)[compat::code_of(frame)->co_nlocalsplus + size - 1] : nullptr;
}

ChainStart LiveChain::start() const {
  ChainStart start;
  for (const Link& link : links_) start.frames.push_back({compat::function_of(link.frame), link.instruction, link.completion, compat::stack_size(link.frame)});
  return start;
}

void LiveChain::pop() {
  compat::pop_frame(links_.back().frame);
  links_.pop_back();
}

void LiveChain::show_position(Link& link, compat::Position position) {
  const Instruction& instruction = link.code->instructions[link.instruction];
  compat::set_position(link.frame, instruction.unit - (position == compat::Position::next ? instruction.prefixes : 0), position);
}

Progress LiveChain::step(PyObject* keyword_names, Ref& result) {
  Link& link = innermost();
  const DecodedCode& code = *link.code;
  if (const Instruction& names = code.instructions[link.instruction]; names.op == Op::kw_names) {
    ++link.instruction;
    return step(code.constant(names.arg), result);
  }
  show_position(link, compat::Position::running);
  RealInstruction instruction(link.frame, code, link.instruction);
  switch (instruction.run(keyword_names)) {
    case Effect::next:
      link.instruction = instruction.following;
      show_position(link, compat::Position::next);
      return Progress::goes_on;
    case Effect::raised: return unwind(true);
    case Effect::reraised: return unwind(false);
    case Effect::returned: return leave(std::move(instruction.result), result);
    case Effect::unknown: break;
  }
  return finish_in_cpython(result);
}

/// The innermost frame ends with a value.
Progress LiveChain::leave(Ref value, Ref& result) {
  const Completion completion = innermost().completion;
  Ref object = std::move(innermost().completion_object);
  pop();
  return deliver(completion, std::move(object), std::move(value), result);
}

/// Gives what a frame that has ended returned to its caller, which is the innermost now, or to whoever called the chain.
Progress LiveChain::deliver(Completion completion, Ref object, Ref value, Ref& result) {
  if (completion == Completion::push_object) {
    if (!value.is(Py_None)) {
      PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", Py_TYPE(value.get())->tp_name);
      return links_.empty() ? Progress::raised : unwind(true);
    }
    value = std::move(object);
  }
  if (links_.empty()) {
    result = std::move(value);
    return Progress::returned;
  }
  Link& caller = innermost();
  if (completion != Completion::discard) push_on(caller.frame, std::move(value));
  ++caller.instruction;
  show_position(caller, compat::Position::next);
  return Progress::goes_on;
}

Progress LiveChain::unwind(bool add_entry) {
  while (true) {
    Link& link = innermost();
    if (add_entry) compat::add_traceback_entry();
    const DecodedCode& code = *link.code;
    if (const Handler* handler = code.handler_of(link.instruction)) {
      Ref exception = compat::take_exception();
      // What is raised again comes from where it was raised first, as the frame shows.
      const int unit = add_entry ? code.instructions[link.instruction].unit : compat::running_unit(link.frame), target = handler->target;
      const bool wants_unit = handler->push_lasti;
      cut_stack(link.frame, handler->depth);
      if (wants_unit) push_on(link.frame, Ref::steal(PyLong_FromLong(unit)));
      push_on(link.frame, std::move(exception));
      link.instruction = target;
      show_position(link, compat::Position::next);
      return Progress::goes_on;
    }
    pop();
    if (links_.empty()) return Progress::raised;
    add_entry = true;
  }
}

/// Runs the innermost frame to its end, or to the generator that it makes, by CPython's interpreter.
Progress LiveChain::finish_in_cpython(Ref& result) {
  Link link = std::move(innermost());
  show_position(link, compat::Position::next);
  links_.pop_back();
  Ref value = Ref::steal(compat::finish_frame(link.frame));
  if (value) return deliver(link.completion, std::move(link.completion_object), std::move(value), result);
  return links_.empty() ? Progress::raised : unwind(true);
}

Progress LiveChain::finish_innermost(Ref& result) {
  const std::size_t before = depth();
  Progress progress = Progress::goes_on;
  while (progress == Progress::goes_on && depth() == before) {
    const bool by_itself = starts_a_code_unit(*innermost().code, innermost().instruction);
    progress = by_itself ? finish_in_cpython(result) : step(nullptr, result);
  }
  return progress;
}

void ChainSlots::gather(const LiveChain& chain) {
  values.clear();
  bound.clear();
  for (std::size_t depth = 0; depth < chain.depth(); ++depth) {
    const LiveChain::Link& link = chain[depth];
    PyObject** slots = compat::slots_of(link.frame);
    const int count = compat::code_of(link.frame)->co_nlocalsplus + compat::stack_size(link.frame);
    values.insert(values.end(), slots, slots + count);
    if (link.completion == Completion::push_object) values.push_back(link.completion_object.get());
  }
  bound.resize((values.size() + 63) / 64);
  for (std::size_t at = 0; at < values.size(); ++at) bound[at / 64] |= static_cast<std::uint64_t>(values[at] != nullptr) << (at % 64);
}

}  // namespace tenon::python
