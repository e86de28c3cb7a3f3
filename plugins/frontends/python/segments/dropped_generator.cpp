#include "python/segments/dropped_generator.h"

namespace tenon::python {
namespace {

/// A built-in exception class by that name, which the module has not given another meaning; borrowed, or null.
PyObject* builtin_exception(const Frame& frame, PyObject* name) {
  if (PyDict_Contains(frame.globals.get(), name) != 0) return nullptr;
  PyObject* found = PyDict_GetItemWithError(frame.builtins.get(), name);
  return found && PyExceptionClass_Check(found) ? found : nullptr;
}

bool is_sequence(const std::vector<Instruction>& code, std::size_t at, std::initializer_list<Op> ops) {
  if (at + ops.size() > code.size()) return false;
  for (Op op : ops)
    if (code[at++].op != op) return false;
  return true;
}

/// Whether the handler at `target` only passes GeneratorExit on: it belongs to `except` clauses for other built-in exceptions, or tidies up
/// after such.
bool passes_exit_on(const Frame& frame, std::int32_t target) {
  const std::vector<Instruction>& code = frame.code->instructions;
  auto at = static_cast<std::size_t>(target);
  if (code[at].op == Op::cleanup_throw || is_sequence(code, at, {Op::copy, Op::pop_except, Op::reraise})) return true;
  if (code[at].op != Op::push_exc_info) return false;
  ++at;
  while (is_sequence(code, at, {Op::load_global, Op::check_exc_match, Op::pop_jump_if_false})) {
    PyObject* caught = builtin_exception(frame, frame.code->name(code[at].arg));
    if (caught == nullptr || PyErr_GivenExceptionMatches(PyExc_GeneratorExit, caught)) return false;
    at = static_cast<std::size_t>(code[at + 2].target);
  }
  return code[at].op == Op::reraise;
}

}  // namespace

bool has_work_left(const Frame& frame) {
  const Handler* handler = frame.code->handler_of(frame.current);
  while (handler != nullptr && passes_exit_on(frame, handler->target)) handler = frame.code->handler_of(handler->target);
  return handler != nullptr && frame.code->instructions[handler->target].op != Op::stop_iteration_error;
}

}  // namespace tenon::python
