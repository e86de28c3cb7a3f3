#include "python/guards/check_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/compat/collection.h"
#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/guards/object_checks.h"
#include "python/guards/pinned_check.h"
#include "python/guards/special_methods.h"

namespace tenon::python {
namespace {

/// The guards of a capture, with those that are kept apart.
std::vector<Guard> all_guards(const GuardSet& set) {
  std::vector<Guard> guards = set.all();
  if (set.distinct().size() > 1) {
    guards.push_back({.kind = GuardKind::distinct, .source = set.distinct().front(), .expected = {}, .key = {}, .other = {}, .others = set.distinct(), .check = {}, .numbers = {}});
  }
  if (set.numbers()) {
    guards.push_back({.kind = GuardKind::numbers, .source = set.numbers()->some_source(), .expected = {}, .key = {}, .other = {}, .others = {}, .check = {}, .numbers = set.numbers()});
  }
  return guards;
}

std::size_t stamp_count(const std::vector<CheckInstruction>& code) {
  std::size_t count = 0;
  for (const CheckInstruction& instruction : code) count = std::max<std::size_t>(count, instruction.stamp + 1);
  return count;
}

}  // namespace

struct CheckProgram::Body {
  std::size_t positional;
  Ref keyword_names;
  std::vector<CheckInstruction> code;
  CheckMachine machine;
  PinnedCheck pinned;

  bool signature_fits(const CallArguments& call) const noexcept {
    return call.positional == positional && checks::same_names(call.keyword_names, keyword_names.get());
  }
  GuardFailure failure(const CheckInstruction& at) const;
  GuardFailure failure_of_identity(const Guard& guard) const;
  GuardFailure equal_pair(const Guard& guard) const;
};

/// Objects whose texts are the same are told apart by their addresses.
GuardFailure CheckProgram::Body::failure_of_identity(const Guard& guard) const {
  PyObject* value = machine.registers()[guard.source.value];
  const std::string source = machine.sources().describe(guard.source), words = python::describe(machine.sources(), guard);
  if (guard.kind == GuardKind::same_object) return {source, words, "the same object as " + machine.sources().describe(guard.other), "another one: " + shown(value)};
  if (guard.kind == GuardKind::different_object) return {source, words, "another object than " + machine.sources().describe(guard.other), "the same: " + shown(value)};
  GuardFailure result{source, words, shown(guard.expected.get()), shown(value)};
  if (result.expected == result.found) {
    result.expected += fmt::format(" at {}", static_cast<const void*>(guard.expected.get()));
    result.found += fmt::format(" at {}", static_cast<const void*>(value));
  }
  return result;
}

/// Which two of the objects that were different ones are one now.
GuardFailure CheckProgram::Body::equal_pair(const Guard& guard) const {
  PyObject* const* values = machine.registers();
  for (std::size_t i = 0; i < guard.others.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (PyObject* value = values[guard.others[i].value]; value != nullptr && value == values[guard.others[j].value]) {
        const std::string one = machine.sources().describe(guard.others[j]), other = machine.sources().describe(guard.others[i]);
        return {other, fmt::format("{} is not {}", other, one), "another object than " + one, "the same: " + shown(value)};
      }
  return {machine.sources().describe(guard.source), python::describe(machine.sources(), guard), "different objects", "one of them twice"};
}

/// A function as a guard on its parts sees it: where its code is.
static std::string place_of_code(PyObject* code) {
  if (code == nullptr || !PyCode_Check(code)) return "no function";
  auto* parts = reinterpret_cast<PyCodeObject*>(code);
  return fmt::format("{} of {}:{}", name_text(parts->co_name), name_text(parts->co_filename), parts->co_firstlineno);
}

GuardFailure CheckProgram::Body::failure(const CheckInstruction& at) const {
  if (at.guard == kNoGuard) return {machine.sources().describe({at.source}), "is there", "a value", "nothing"};
  const Guard& guard = machine.guards()[at.guard];
  if (guard.kind == GuardKind::numbers)
    if (auto failed = guard.numbers->failure(machine.registers())) return *failed;
  PyObject* value = machine.registers()[guard.source.value];
  GuardFailure result{machine.sources().describe(guard.source), python::describe(machine.sources(), guard), shown(guard.expected.get()), shown(value)};
  switch (guard.kind) {
    case GuardKind::value_check:
      result.expected = guard.check->expected();
      result.found = guard.check->found(value);
      break;
    case GuardKind::type_is:
      result.expected = reinterpret_cast<PyTypeObject*>(guard.expected.get())->tp_name;
      result.found = Py_TYPE(value)->tp_name;
      break;
    case GuardKind::length:
      result.expected = std::to_string(guard.number);
      result.found = std::to_string(checks::length_of(value));
      break;
    case GuardKind::type_attribute:
      result.found = shown(compat::type_lookup(reinterpret_cast<PyTypeObject*>(value), guard.key.get()));
      break;
    case GuardKind::special_methods:
      if (const auto changed = changed_special_method(reinterpret_cast<PyTypeObject*>(value), guard.expected.get())) {
        result.guard = fmt::format("{}.{} is {}", result.source, name_text(changed->name), shown(changed->expected));
        result.expected = shown(changed->expected);
        result.found = shown(changed->found);
      }
      break;
    case GuardKind::base_order: result.found = shown(reinterpret_cast<PyTypeObject*>(value)->tp_mro); break;
    case GuardKind::identity:
    case GuardKind::same_object:
    case GuardKind::different_object: return failure_of_identity(guard);
    case GuardKind::distinct: return equal_pair(guard);
    case GuardKind::function_parts:
      result.expected = place_of_code(PyTuple_GET_ITEM(guard.expected.get(), 0));
      result.found = place_of_code(value && PyFunction_Check(value) ? PyFunction_GET_CODE(value) : nullptr);
      if (result.expected == result.found) result.found = "the same code with other defaults, or another function of it";
      break;
    default: break;
  }
  return result;
}

CheckProgram::CheckProgram(SourceTable sources, const GuardSet& set, const CallArguments& captured, std::span<const SourceId> wanted)
    : CheckProgram(std::move(sources), all_guards(set), captured, wanted) {}

CheckProgram::CheckProgram(SourceTable sources, std::vector<Guard> guards) : CheckProgram(std::move(sources), std::move(guards), CallArguments(), {}) {}

CheckProgram::CheckProgram(SourceTable sources, std::vector<Guard> guards, const CallArguments& captured, std::span<const SourceId> wanted) {
  std::vector<CheckInstruction> code = compile_checks(sources, guards, wanted);
  const std::size_t stamps = stamp_count(code);
  guards.shrink_to_fit(), code.shrink_to_fit();
  body_.reset(new Body{captured.positional, Ref::borrow(captured.keyword_names), std::move(code), CheckMachine(std::move(sources), std::move(guards), stamps), {}});
}
CheckProgram::CheckProgram(CheckProgram&&) noexcept = default;
CheckProgram& CheckProgram::operator=(CheckProgram&&) noexcept = default;
CheckProgram::~CheckProgram() = default;

bool CheckProgram::check(const CallArguments& call) noexcept {
  Body& body = *body_;
  if (!body.signature_fits(call)) return false;
  body.machine.let_go();
  const compat::WithoutCollection quiet(compat::kCollectsAtAllocations && body.machine.makes_objects());
  const compat::SignalsWait waiting(body.machine.may_run_python());  // exceptions of comparisons are dropped
  if (body.pinned.is_set()) {
    const PinnedCheck::Outcome outcome = body.pinned.run(body.machine, call);
    if (outcome == PinnedCheck::Outcome::fails) body.machine.let_go();
    if (outcome != PinnedCheck::Outcome::moved) [[likely]] return outcome == PinnedCheck::Outcome::holds;
  }
  if (body.machine.run(body.code, call, true) < body.code.size()) {
    body.machine.let_go();
    return false;
  }
  body.pinned.note_held(body.machine, body.code);
  return true;
}

std::uint32_t CheckProgram::slot(SourceId source) const { return source.value; }

int CheckProgram::traverse(visitproc visit, void* arg) const {
  Py_VISIT(body_->keyword_names.get());
  if (int stopped = body_->pinned.traverse(visit, arg)) return stopped;
  return body_->machine.traverse(visit, arg);
}

PyObject* const* CheckProgram::values() const { return body_->machine.registers(); }

void CheckProgram::let_go() noexcept { body_->machine.let_go(); }

std::optional<GuardFailure> CheckProgram::explain(const CallArguments& call) {
  Body& body = *body_;
  if (!body.signature_fits(call)) {
    return GuardFailure{"the arguments", "same number and names", fmt::format("{} positional, {} by name", body.positional, body.keyword_names ? PyTuple_GET_SIZE(body.keyword_names.get()) : 0),
                        fmt::format("{} positional, {} by name", call.positional, call.keyword_count())};
  }
  body.pinned.drop();  // its registers are overwritten
  body.machine.let_go();
  const std::uint32_t at = body.machine.run(body.code, call, false);
  std::optional<GuardFailure> failure;
  if (at < body.code.size()) failure = body.failure(body.code[at]);
  body.machine.let_go();
  return failure;
}

std::vector<std::string> CheckProgram::describe() const {
  std::vector<std::string> lines;
  for (const Guard& guard : body_->machine.guards()) {
    if (guard.kind != GuardKind::numbers) lines.push_back(python::describe(body_->machine.sources(), guard));
    else for (std::string& line : guard.numbers->describe()) lines.push_back(std::move(line));
  }
  return lines;
}

std::size_t CheckProgram::guard_count() const { return body_->machine.guards().size(); }

}  // namespace tenon::python
