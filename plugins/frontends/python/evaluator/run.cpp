// The loop: one instruction after the other, and the search for a handler when one raises.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/compat/real_frame.h"
#include "python/compat/waiting_signals.h"
#include "python/evaluator/evaluator.h"
#include "python/heap/finalizers.h"
#include "python/objects/object_type.h"
#include "python/segments/exception_text.h"

namespace tenon::python {
namespace {

constexpr std::size_t kDeepestChain = 400;  // frames; a recursion deeper than this is left to Python
constexpr int kDeepestNesting = 60;         // runs of the loop within each other
constexpr std::size_t kInstructionsBetweenSignals = 8;

}  // namespace

/// Counts how deep the loop is nested, and drops the frames that an error or a break left behind.
struct NestedRun {
  Evaluator& evaluator;
  std::size_t base;
  NestedRun(Evaluator& evaluator, std::size_t base) : evaluator(evaluator), base(base) {
    if (++evaluator.nested_ > kDeepestNesting) {
      --evaluator.nested_;
      throw GraphBreak("calls from C code nested too deeply");
    }
  }
  ~NestedRun() { --evaluator.nested_; }
};

Evaluator::Evaluator(Recorder& recorder, Heap& heap, const CaptureOptions& options) : recorder_(recorder), heap_(heap), options_(options) {
  recorder_.before_it_may_warn = [this](const std::string& function) { library_states_.require_warnings_in_order(function); };
}

void Evaluator::push_frame(std::unique_ptr<Frame> frame) {
  const auto made = static_cast<int>(frames_.size() - kept_frames_);
  if (frames_.size() >= kDeepestChain || made >= compat::frames_left()) throw GraphBreak("a recursion deeper than the evaluator follows", "a loop in place of the recursion is followed");
  if (options_.plain) frame->work_before = recorder_.array_work(), frame->nodes_before = recorder_.recorded();
  frames_.push_back(std::move(frame));
}

std::unique_ptr<Frame> Evaluator::take_frame() {
  std::unique_ptr<Frame> taken = std::move(frames_.back());
  frames_.pop_back();
  if (!options_.plain) return taken;
  if (recorder_.array_work() > taken->work_before) options_.plain->note_work(taken->code->object.get());
  else if (may_be_plain(*taken, frames_.size())) returned_.push_back({taken->code->object, taken->nodes_before, recorder_.recorded()});
  return taken;
}

bool Evaluator::may_be_plain(const Frame& frame, std::size_t depth) const {
  constexpr int kNone = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR, kPassesOn = CO_VARARGS | CO_VARKEYWORDS;
  const int flags = frame.code->code()->co_flags;
  return depth > 0 && !frame.kept && !frame.generator && (flags & kNone) == 0 && (flags & kPassesOn) != kPassesOn && recorder_.recorded() > frame.nodes_before;
}

Ref Evaluator::first_to_record() const {
  if (!returned_.empty()) return returned_.front().code;
  for (std::size_t depth = frames_.size(); depth-- > 0;)
    if (may_be_plain(*frames_[depth], depth)) return frames_[depth]->code->object;
  return {};
}

Ref Evaluator::recorded_in(std::size_t node) const {
  const auto found = std::ranges::find_if(returned_.rbegin(), returned_.rend(), [&](const Recording& r) { return r.begin <= node && node < r.end; });
  return found == returned_.rend() ? Ref() : found->code;
}

/// Those that a break has left tell what they have done, too.
Evaluator::~Evaluator() {
  while (!frames_.empty()) take_frame();
}

void Evaluator::mark_position() {
  if (frames_.empty()) return;
  const Frame& f = *frames_.back();
  recorder_.position = {f.code->code(), 2 * f.instruction().unit};
}

Ref Evaluator::run(std::size_t base) {
  NestedRun nested(*this, base);
  const std::size_t results = stopped_.size();
  while (stopped_.size() == results) {
    try {
      while (stopped_.size() == results) {
        step();
        if (nested_ == 1 && instructions_ % kInstructionsBetweenSignals == 0 && compat::run_waiting_handlers()) throw Interrupted{};
        if (dropped_.watches() && !frames_.empty()) dropped_.require_all_alive();
      }
    } catch (const PythonError&) {
      require_no_stand_in_in_text();
      if (interrupted() || !somebody_handles(base)) {
        if (interrupted() && base == 0) throw;
        Ref exception = compat::take_exception();
        if (base > 0) {  // whoever started this run may handle it
          while (frames_.size() > base) take_frame();
          compat::set_exception(std::move(exception));
          throw;
        }
        throw UnhandledException(fmt::format("the call raises {}", type_and_text(exception.get())));
      }
      unwind();
    }
  }
  Ref result = std::move(stopped_.back());
  stopped_.pop_back();
  return result;
}

/// Breaks the graph where C code complains of what stands for something else: of that it might not, or in other words.
void Evaluator::require_no_stand_in_in_text() {
  Ref exception = compat::take_exception();
  PyObject* arguments = reinterpret_cast<PyBaseExceptionObject*>(exception.get())->args;
  PyObject* text = PyTuple_GET_SIZE(arguments) > 0 ? PyTuple_GET_ITEM(arguments, 0) : nullptr;
  const char* chars = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (text && !chars) PyErr_Clear();
  if (chars && std::strstr(chars, kStandInSuffix)) throw GraphBreak("an operation raises " + type_and_text(exception.get()));
  compat::set_exception(std::move(exception));
}

/// Whether the exception that is set comes from outside of the program: the user wants it to stop.
bool Evaluator::interrupted() const {
  if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) return false;
  const Op op = frames_.empty() ? Op::nop : frames_.back()->instruction().op;
  return op != Op::raise_varargs && op != Op::reraise;
}

bool Evaluator::somebody_handles(std::size_t base) const {
  for (std::size_t depth = frames_.size(); depth > base; --depth) {
    const Frame& frame = *frames_[depth - 1];
    if (frame.code->handler_of(frame.current) != nullptr) return true;
  }
  return false;
}

/// Gives the exception that is set to the innermost handler. There is one.
void Evaluator::unwind() {
  Ref exception = compat::take_exception();
  heap_.raised(exception.get());
  while (true) {
    Frame& f = frame();
    if (const Handler* handler = f.code->handler_of(f.current)) {
      for (std::size_t at = handler->depth; f.kept && at < f.stack.size(); ++at) dropped_.require_no_effect_of_drop(f.stack[at]);
      f.stack.resize(handler->depth);
      if (handler->push_lasti) push(checked(PyLong_FromLong(f.instruction().unit)));
      push(exception);
      f.keyword_names = {};
      f.next = handler->target;
      return;
    }
    if (f.kept) ends_.push_back(f.current);
    if (f.kept)  // the traceback of a real exception holds the frame, and what is in it, until that goes
      for (const std::vector<Slot>* slots : {&f.locals, &f.stack})
        for (const Slot& slot : *slots) dropped_.require_no_effect_of_drop(slot);
    take_frame();
  }
}

Ref Evaluator::call_now(PyObject* callable, Arguments arguments) {
  const std::size_t base = frames_.size();
  std::optional<NestedRun> in_c;  // with no frame around it, what the callable calls back has C code outside of it
  if (base == 0) in_c.emplace(*this, base);
  if (std::optional<Ref> result = calls_.call(callable, std::move(arguments), Completion::stop)) return std::move(*result);
  in_c.reset();
  // A loop in C (map, reduce, a sort by key) is one instruction that calls the same code over and over.
  if (options_.leave_loops && base > 0 && frames_.size() > base) {
    const DecodedCode* code = frames_.back()->code.get();
    loops_.unrolled().goes_back(code, -1 - static_cast<std::int32_t>(heap_.now), heap_.now, recorder_.recorded());
  }
  return run(base);
}

Ref Evaluator::call_now(PyObject* callable, std::initializer_list<PyObject*> objects) {
  Arguments arguments;
  for (PyObject* object : objects) arguments.values.push_back(Ref::borrow(object));
  return call_now(callable, std::move(arguments));
}

/// The innermost frame returns.
void Evaluator::finish(Ref result) {
  if (frame().kept && frames_.size() > 1)
    for (const Slot& local : frame().locals) dropped_.require_no_effect_of_drop(local);
  if (frame().kept) ends_.push_back(frame().current);
  const std::unique_ptr<Frame> done = take_frame();
  switch (done->completion) {
    case Completion::push: push(std::move(result)); break;
    case Completion::discard: break;
    case Completion::push_object:
      require_nothing_given(result);
      push(std::move(done->completion_object));
      break;
    case Completion::stop: stopped_.push_back(std::move(result)); break;
  }
}

std::vector<Ref> Evaluator::pop_many(int count) {
  std::vector<Ref> objects(count);
  for (int i = count; i-- > 0;) objects[i] = pop();
  return objects;
}

void Evaluator::step() {
  Frame& f = frame();
  if (nested_ == 1) {
    if (heap_.now + 1 == options_.stop_before) throw StopHere{};
    ++heap_.now;
  }
  f.current = f.next++;
  ++instructions_;
  const Instruction& i = f.code->instructions[f.current];
  switch (i.op) {
    case Op::unsupported: throw GraphBreak(fmt::format("bytecode instruction number {} is not evaluated", i.arg));
    case Op::nop: return;
    case Op::pop_top:
      dropped_.require_no_effect_of_drop(f.stack.back());
      f.stack.pop_back();
      return;
    case Op::push_null: f.stack.emplace_back(); return;
    case Op::copy: f.stack.push_back(f.stack[f.stack.size() - i.arg]); return;
    case Op::swap: std::swap(f.stack.back(), f.stack[f.stack.size() - i.arg]); return;
    case Op::end_for: f.stack.pop_back(); return;
    case Op::end_send: f.stack.erase(f.stack.end() - 2); return;
    case Op::load_const: push(Ref::borrow(f.code->constant(i.arg))); return;
    case Op::load_fast: variables_.op_load_fast(f, i); return;
    case Op::load_fast_and_clear: f.stack.push_back(std::exchange(f.locals[i.arg], {})); return;
    case Op::store_fast:
      dropped_.require_no_effect_of_drop(f.locals[i.arg]);
      f.locals[i.arg] = pop_slot();
      return;
    case Op::delete_fast:
      if (!f.locals[i.arg].object) variables_.op_load_fast(f, i);  // raises
      dropped_.require_no_effect_of_drop(f.locals[i.arg]);
      f.locals[i.arg] = {};
      return;
    case Op::to_bool: {
      Ref value = pop();
      push(Ref::borrow(jumps_.truth_for_jump(f, value.get(), f.code->instructions[f.next], f.next + 1) ? Py_True : Py_False));
      return;
    }
    case Op::binary_op: {
      Ref right = pop(), left = pop();
      push(operators_.binary(i.arg, left.get(), right.get()));
      return;
    }
    case Op::compare_op: {
      Ref right = pop(), left = pop();
      jumps_.expect_truth(f);
      push(operators_.compare(i.arg, left.get(), right.get()));
      recorder_.truth_to_come.reset();
      return;
    }
    case Op::is_op: operators_.op_is(f, i); return;
    case Op::contains_op: {
      Ref container = pop(), item = pop();
      push(Ref::borrow(items_.contains(container.get(), item.get()) != (i.arg != 0) ? Py_True : Py_False));
      return;
    }
    case Op::unary_negative:
    case Op::unary_positive:
    case Op::unary_invert:
    case Op::unary_not: operators_.op_unary(f, i); return;
    case Op::load_attr: {
      Ref owner = pop();
      push(attributes_.load(owner.get(), f.code->name(i.arg)));
      return;
    }
    case Op::load_method: {
      Ref owner = pop();
      if (!(i.flags & kSelfAfter)) f.stack.emplace_back();
      push(attributes_.load(owner.get(), f.code->name(i.arg)));
      if (i.flags & kSelfAfter) f.stack.emplace_back();
      return;
    }
    case Op::load_super_attr: attributes_.op_load_super_attr(f, i); return;
    case Op::store_attr: {
      Ref owner = pop(), value = pop();
      attributes_.store(owner.get(), f.code->name(i.arg), value.get());
      return;
    }
    case Op::binary_subscr: {
      Ref key = pop(), container = pop();
      push(items_.load(container.get(), key.get()));
      return;
    }
    case Op::store_subscr: {
      Ref key = pop(), container = pop(), value = pop();
      items_.store(container.get(), key.get(), value.get());
      return;
    }
    case Op::binary_slice:
    case Op::store_slice: items_.op_slice(f, i); return;
    case Op::jump: jumps_.jump(f, i.target); return;
    case Op::pop_jump_if_true:
    case Op::pop_jump_if_false:
    case Op::pop_jump_if_none:
    case Op::pop_jump_if_not_none:
    case Op::jump_if_true_or_pop:
    case Op::jump_if_false_or_pop: jumps_.op_jump_if(f, i); return;
    case Op::get_iter: {
      loops_.step_over_varying(f);
      Ref iterable = pop();
      push(iteration_.iterator_of(iterable.get(), true));
      return;
    }
    case Op::for_iter: iteration_.op_for_iter(f, i); return;
    case Op::kw_names: f.keyword_names = Ref::borrow(f.code->constant(i.arg)); return;
    case Op::call:
      jumps_.expect_truth(f);
      calls_.op_call(f, i.arg, std::exchange(f.keyword_names, {}));
      recorder_.truth_to_come.reset();
      return;
    case Op::call_kw: {
      Ref given = pop();
      calls_.op_call(f, i.arg, std::move(given));
      return;
    }
    case Op::call_function_ex: calls_.op_call_function_ex(f, i); return;
    case Op::make_function: functions_.op_make_function(f, i); return;
    case Op::set_function_attribute: functions_.op_set_function_attribute(f, i); return;
    case Op::return_value: {
      Ref result = pop();
      finish(std::move(result));
      return;
    }
    case Op::return_const: finish(Ref::borrow(f.code->constant(i.arg))); return;
    case Op::return_generator: generators_.op_return_generator(f); return;
    case Op::yield_value: generators_.op_yield(f); return;
    case Op::send: generators_.op_send(f, i); return;
    case Op::get_yield_from_iter: {
      Ref iterable = pop();
      push(iteration_.iterator_of(iterable.get()));
      return;
    }
    case Op::build_tuple:
    case Op::build_list:
    case Op::build_set:
    case Op::build_map:
    case Op::build_const_key_map:
    case Op::build_string:
    case Op::build_slice: building_.op_build(f, i); return;
    case Op::list_append:
    case Op::set_add:
    case Op::map_add:
    case Op::list_extend:
    case Op::set_update:
    case Op::dict_update:
    case Op::dict_merge:
    case Op::list_to_tuple: building_.op_extend(f, i); return;
    case Op::unpack_sequence:
    case Op::unpack_ex: building_.op_unpack(f, i); return;
    case Op::format_value:
    case Op::format_simple:
    case Op::format_with_spec:
    case Op::convert_value: texts_.op_format(f, i); return;
    case Op::get_len:
    case Op::match_mapping:
    case Op::match_sequence:
    case Op::match_keys:
    case Op::match_class: building_.op_match(f, i); return;
    case Op::push_exc_info:
    case Op::pop_except:
    case Op::check_exc_match:
    case Op::reraise:
    case Op::with_except_start:
    case Op::stop_iteration_error: exceptions_.op_exception(f, i); return;
    case Op::raise_varargs: exceptions_.op_raise(f, i); return;
    case Op::before_with: exceptions_.op_before_with(f); return;
    case Op::cleanup_throw: generators_.op_cleanup_throw(); return;
    case Op::delete_attr: {
      Ref owner = pop();
      attributes_.remove(owner.get(), f.code->name(i.arg));
      return;
    }
    case Op::delete_subscr: {
      Ref key = pop(), container = pop();
      items_.store(container.get(), key.get(), nullptr);
      return;
    }
    default: variables_.op(f, i); return;
  }
}

}  // namespace tenon::python
