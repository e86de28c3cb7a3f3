#include "python/evaluator/jumps.h"

#include <optional>

#include "python/evaluator/evaluator.h"

namespace tenon::python {
namespace {

/// Whether an `except` of the same code looks at what an instruction raises.
bool is_handled(const DecodedCode& code, std::int32_t at) {
  const Handler* handler = code.handler_of(at);
  if (handler == nullptr) return false;
  constexpr std::int32_t kLongest = 24;  // of what comes before the class is asked for
  for (std::int32_t i = handler->target; i < handler->target + kLongest && static_cast<std::size_t>(i) < code.instructions.size(); ++i) {
    const Op op = code.instructions[i].op;
    if (op == Op::check_exc_match || op == Op::pop_except) return true;
    if (op == Op::with_except_start || op == Op::reraise) return false;
  }
  return false;
}

/// Whether what begins at an instruction comes to nothing but an exception that leaves the code, without a branch.
bool raises(const DecodedCode& code, std::int32_t at) {
  constexpr int kLongest = 96;  // with a message
  for (int steps = 0; steps < kLongest && static_cast<std::size_t>(at) < code.instructions.size(); ++steps, ++at) {
    switch (code.instructions[at].op) {
      case Op::raise_varargs: return !is_handled(code, at);
      case Op::jump: at = code.instructions[at].target - 1; break;
      case Op::pop_jump_if_true:
      case Op::pop_jump_if_false:
      case Op::pop_jump_if_none:
      case Op::pop_jump_if_not_none:
      case Op::jump_if_true_or_pop:
      case Op::jump_if_false_or_pop:
      case Op::for_iter:
      case Op::yield_value:
      case Op::return_value:
      case Op::return_const:
      case Op::reraise: return false;
      default: break;
    }
  }
  return false;
}

/// The truth with which a jump goes on, where the other way does nothing but raise.
std::optional<bool> truth_without_exception(const DecodedCode& code, const Instruction& jump, std::int32_t after) {
  const bool jumps_if = jump.op == Op::pop_jump_if_true || jump.op == Op::jump_if_true_or_pop;
  if (!jumps_if && jump.op != Op::pop_jump_if_false && jump.op != Op::jump_if_false_or_pop) return std::nullopt;
  const bool raises_there = raises(code, jump.target);
  if (raises_there == raises(code, after)) return std::nullopt;
  return raises_there != jumps_if;
}

}  // namespace

bool Jumps::truth_for_jump(const Frame& f, PyObject* value, const Instruction& jump, std::int32_t after) {
  if (heap_.traits(value).role == Recorder::Role::stand_in && !recorder_.truth_of(value))
    if (const auto assumed = truth_without_exception(*f.code, jump, after); assumed && recorder_.assume(value, *assumed)) return *assumed;
  return core_.operators().truth(value);
}

void Jumps::expect_truth(const Frame& f) {
  const std::vector<Instruction>& all = f.code->instructions;
  auto at = static_cast<std::size_t>(f.next);
  if (at < all.size() && all[at].op == Op::to_bool) ++at;
  recorder_.truth_to_come = at + 1 < all.size() ? truth_without_exception(*f.code, all[at], static_cast<std::int32_t>(at + 1)) : std::nullopt;
}

void Jumps::op_jump_if(Frame& f, const Instruction& i) {
  Ref value = core_.pop();
  bool jump = false;
  switch (i.op) {
    case Op::pop_jump_if_none: jump = value.is(Py_None); break;
    case Op::pop_jump_if_not_none: jump = !value.is(Py_None); break;
    case Op::pop_jump_if_true:
    case Op::jump_if_true_or_pop: jump = truth_for_jump(f, value.get(), i, f.next); break;
    default: jump = !truth_for_jump(f, value.get(), i, f.next); break;
  }
  const bool keeps = i.op == Op::jump_if_true_or_pop || i.op == Op::jump_if_false_or_pop;
  if (jump && keeps) core_.push(std::move(value));
  if (jump) this->jump(f, i.target);
}

void Jumps::jump(Frame& f, std::int32_t target) {
  if (target <= f.current && options_.leave_loops) core_.loops().unrolled().goes_back(f.code.get(), target, heap_.now, recorder_.recorded());
  f.next = target;
}

}  // namespace tenon::python
