// The loop: one instruction after the other, and the search for a handler when one raises.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/compat/real_frame.h"
#include "python/compat/waiting_signals.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/exception_text.h"
#include "python/heap/finalizers.h"
#include "python/objects/object_type.h"

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

void Evaluator::push_frame(std::unique_ptr<Frame> frame) {
  const auto made = static_cast<int>(frames_.size() - kept_frames_);
  if (frames_.size() >= kDeepestChain || made >= compat::frames_left()) throw GraphBreak("a recursion deeper than the evaluator follows");
  frames_.push_back(std::move(frame));
}

Ref Evaluator::run(std::size_t base) {
  NestedRun nested(*this, base);
  const std::size_t results = stopped_.size();
  while (stopped_.size() == results) {
    try {
      while (stopped_.size() == results) {
        step();
        if (nested_ == 1 && instructions_ % kInstructionsBetweenSignals == 0 && compat::run_waiting_handlers()) throw Interrupted{};
        if (!last_references_.empty() && !frames_.empty()) require_all_alive();
      }
    } catch (const PythonError&) {
      require_no_stand_in_in_text();
      if (interrupted() || !somebody_handles(base)) {
        if (interrupted() && base == 0) throw;
        Ref exception = compat::take_exception();
        if (base > 0) {  // whoever started this run may handle it
          while (frames_.size() > base) frames_.pop_back();
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
      for (std::size_t at = handler->depth; f.kept && at < f.stack.size(); ++at) require_no_effect_of_drop(f.stack[at]);
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
        for (const Slot& slot : *slots) require_no_effect_of_drop(slot);
    frames_.pop_back();
  }
}

Ref Evaluator::call_now(PyObject* callable, Arguments arguments) {
  const std::size_t base = frames_.size();
  std::optional<NestedRun> in_c;  // with no frame around it, what the callable calls back has C code outside of it
  if (base == 0) in_c.emplace(*this, base);
  if (std::optional<Ref> result = call(callable, std::move(arguments), Completion::stop)) return std::move(*result);
  in_c.reset();
  // A loop in C (map, reduce, a sort by key) is one instruction that calls the same code over and over.
  if (options_.leave_loops && base > 0 && frames_.size() > base) {
    const DecodedCode* code = frames_.back()->code.get();
    loops_.goes_back(code, -1 - static_cast<std::int32_t>(heap_.now), heap_.now, recorder_.recorded());
  }
  return run(base);
}

Ref Evaluator::call_now(PyObject* callable, std::initializer_list<PyObject*> objects) {
  Arguments arguments;
  for (PyObject* object : objects) arguments.values.push_back(Ref::borrow(object));
  return call_now(callable, std::move(arguments));
}

/// Whether the frames of an exception's traceback hold what runs code when it goes, as a generator does inside a `try`.
bool Evaluator::frames_hold_finalizers(PyObject* exception) const {
  const auto is_evaluated = [&](PyObject* code) { return std::ranges::any_of(frames_, [&](const auto& f) { return f->code->object.is(code); }); };
  Ref at = Ref::steal(PyException_GetTraceback(exception));
  if (!at || !PyTraceBack_Check(at.get())) return false;  // `with_traceback(None)` leaves None
  for (auto* traceback = reinterpret_cast<PyTracebackObject*>(at.get()); traceback != nullptr; traceback = traceback->tb_next) {
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(traceback->tb_frame)));
    if (is_evaluated(code.get())) continue;
    Ref locals = checked(PyFrame_GetLocals(traceback->tb_frame)), values = checked(PyMapping_Values(locals.get()));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i)
      if (Py_TYPE(PyList_GET_ITEM(values.get(), i))->tp_finalize != nullptr) return true;
  }
  return false;
}

/// An older object whose last reference may go here must go for real, in its turn among the other effects of the program.
void Evaluator::require_no_finalizer(const Slot& dropped) {
  PyObject* object = dropped.object.get();
  if (object == nullptr) return;
  if (PyExceptionInstance_Check(object) && !heap_.is_born(object) && (frames_hold_finalizers(object) || end_runs_code(object)))
    throw GraphBreak(fmt::format("a {} is let go, and with it what has a finalizer", Py_TYPE(object)->tp_name));
  if (Py_TYPE(object)->tp_finalize == nullptr) return;
  if (dropped.pending || heap_.source_of(object)) throw GraphBreak(fmt::format("a {}, which has a finalizer, is let go", Py_TYPE(object)->tp_name));
}

/// Breaks where the program has let go what only its frames held, which goes for real when the segment ends, after all its other effects.
void Evaluator::require_all_alive() {
  if (PyObject* gone = last_references_.gone(heap_)) throw GraphBreak(fmt::format("a {} is let go, and code may run at its end", Py_TYPE(gone)->tp_name));
}

/// Likewise one to which a weak reference looks, from a frame that holds it for real. Modules hold C functions.
void Evaluator::require_not_watched(const Slot& dropped) {
  PyObject* object = dropped.object.get();
  if (object == nullptr || !frame().kept || !PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) || PyType_Check(object) || PyModule_Check(object) || PyCFunction_Check(object)) return;
  const bool older = dropped.pending || heap_.source_of(object);
  if (older && *reinterpret_cast<PyObject**>(PyObject_GET_WEAKREFS_LISTPTR(object)) != nullptr)
    throw GraphBreak(fmt::format("a {} with weak references is let go", Py_TYPE(object)->tp_name));
}

/// The innermost frame returns.
void Evaluator::finish(Ref result) {
  if (frame().kept && frames_.size() > 1)
    for (const Slot& local : frame().locals) require_no_effect_of_drop(local);
  if (frame().kept) ends_.push_back(frame().current);
  std::unique_ptr<Frame> done = std::move(frames_.back());
  frames_.pop_back();
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
      require_no_effect_of_drop(f.stack.back());
      f.stack.pop_back();
      return;
    case Op::push_null: f.stack.emplace_back(); return;
    case Op::copy: f.stack.push_back(f.stack[f.stack.size() - i.arg]); return;
    case Op::swap: std::swap(f.stack.back(), f.stack[f.stack.size() - i.arg]); return;
    case Op::end_for: f.stack.pop_back(); return;
    case Op::end_send: f.stack.erase(f.stack.end() - 2); return;
    case Op::load_const: push(Ref::borrow(f.code->constant(i.arg))); return;
    case Op::load_fast: op_load_fast(f, i); return;
    case Op::load_fast_and_clear: f.stack.push_back(std::exchange(f.locals[i.arg], {})); return;
    case Op::store_fast:
      require_no_effect_of_drop(f.locals[i.arg]);
      f.locals[i.arg] = pop_slot();
      return;
    case Op::delete_fast:
      if (!f.locals[i.arg].object) op_load_fast(f, i);  // raises
      require_no_effect_of_drop(f.locals[i.arg]);
      f.locals[i.arg] = {};
      return;
    case Op::to_bool: {
      Ref value = pop();
      push(Ref::borrow(truth_for_jump(f, value.get(), f.code->instructions[f.next], f.next + 1) ? Py_True : Py_False));
      return;
    }
    case Op::binary_op: {
      Ref right = pop(), left = pop();
      push(binary(i.arg, left.get(), right.get()));
      return;
    }
    case Op::compare_op: {
      Ref right = pop(), left = pop();
      expect_truth(f);
      push(compare(i.arg, left.get(), right.get()));
      recorder_.truth_to_come.reset();
      return;
    }
    case Op::is_op: op_is(f, i); return;
    case Op::contains_op: {
      Ref container = pop(), item = pop();
      push(Ref::borrow(contains(container.get(), item.get()) != (i.arg != 0) ? Py_True : Py_False));
      return;
    }
    case Op::unary_negative:
    case Op::unary_positive:
    case Op::unary_invert:
    case Op::unary_not: op_unary(f, i); return;
    case Op::load_attr: {
      Ref owner = pop();
      push(load_attribute(owner.get(), f.code->name(i.arg)));
      return;
    }
    case Op::load_method: {
      Ref owner = pop();
      if (!(i.flags & kSelfAfter)) f.stack.emplace_back();
      push(load_attribute(owner.get(), f.code->name(i.arg)));
      if (i.flags & kSelfAfter) f.stack.emplace_back();
      return;
    }
    case Op::load_super_attr: op_load_super_attr(f, i); return;
    case Op::store_attr: {
      Ref owner = pop(), value = pop();
      store_attribute(owner.get(), f.code->name(i.arg), value.get());
      return;
    }
    case Op::binary_subscr: {
      Ref key = pop(), container = pop();
      push(load_item(container.get(), key.get()));
      return;
    }
    case Op::store_subscr: {
      Ref key = pop(), container = pop(), value = pop();
      store_item(container.get(), key.get(), value.get());
      return;
    }
    case Op::binary_slice:
    case Op::store_slice: op_slice(f, i); return;
    case Op::jump: jump(f, i.target); return;
    case Op::pop_jump_if_true:
    case Op::pop_jump_if_false:
    case Op::pop_jump_if_none:
    case Op::pop_jump_if_not_none:
    case Op::jump_if_true_or_pop:
    case Op::jump_if_false_or_pop: op_jump_if(f, i); return;
    case Op::get_iter: {
      step_over_varying(f);
      Ref iterable = pop();
      push(iterator_of(iterable.get(), true));
      return;
    }
    case Op::for_iter: op_for_iter(f, i); return;
    case Op::kw_names: f.keyword_names = Ref::borrow(f.code->constant(i.arg)); return;
    case Op::call:
      expect_truth(f);
      op_call(f, i.arg, std::exchange(f.keyword_names, {}));
      recorder_.truth_to_come.reset();
      return;
    case Op::call_kw: {
      Ref given = pop();
      op_call(f, i.arg, std::move(given));
      return;
    }
    case Op::call_function_ex: op_call_function_ex(f, i); return;
    case Op::make_function: op_make_function(f, i); return;
    case Op::set_function_attribute: op_set_function_attribute(f, i); return;
    case Op::return_value: {
      Ref result = pop();
      finish(std::move(result));
      return;
    }
    case Op::return_const: finish(Ref::borrow(f.code->constant(i.arg))); return;
    case Op::return_generator: op_return_generator(f); return;
    case Op::yield_value: op_yield(f); return;
    case Op::send: op_send(f, i); return;
    case Op::get_yield_from_iter: {
      Ref iterable = pop();
      push(iterator_of(iterable.get()));
      return;
    }
    case Op::build_tuple:
    case Op::build_list:
    case Op::build_set:
    case Op::build_map:
    case Op::build_const_key_map:
    case Op::build_string:
    case Op::build_slice: op_build(f, i); return;
    case Op::list_append:
    case Op::set_add:
    case Op::map_add:
    case Op::list_extend:
    case Op::set_update:
    case Op::dict_update:
    case Op::dict_merge:
    case Op::list_to_tuple: op_extend(f, i); return;
    case Op::unpack_sequence:
    case Op::unpack_ex: op_unpack(f, i); return;
    case Op::format_value:
    case Op::format_simple:
    case Op::format_with_spec:
    case Op::convert_value: op_format(f, i); return;
    case Op::get_len:
    case Op::match_mapping:
    case Op::match_sequence:
    case Op::match_keys:
    case Op::match_class: op_match(f, i); return;
    case Op::push_exc_info:
    case Op::pop_except:
    case Op::check_exc_match:
    case Op::reraise:
    case Op::with_except_start:
    case Op::stop_iteration_error: op_exception(f, i); return;
    case Op::raise_varargs: op_raise(f, i); return;
    case Op::before_with: op_before_with(f); return;
    case Op::cleanup_throw: op_cleanup_throw(); return;
    case Op::delete_attr: {
      Ref owner = pop();
      delete_attribute(owner.get(), f.code->name(i.arg));
      return;
    }
    case Op::delete_subscr: {
      Ref key = pop(), container = pop();
      store_item(container.get(), key.get(), nullptr);
      return;
    }
    default: dispatch_names(f, i); return;
  }
}

}  // namespace tenon::python
