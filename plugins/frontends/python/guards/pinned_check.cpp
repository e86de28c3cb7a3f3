#include "python/guards/pinned_check.h"

#include <algorithm>

#include "python/guards/pin_setter.h"

namespace tenon::python {
namespace {

// After the n-th miss the pins are set anew at the 2^n-th call that holds, at most this many.
constexpr std::uint32_t kLongestWaitBits = 6;
// This many calls without a miss, and the next miss counts as the first.
constexpr std::uint32_t kCalmCalls = 256;

}  // namespace

bool PinnedCheck::Distinct::hold(PyObject* const* registers) noexcept {
  bool as_before = true;
  for (std::size_t at = 0; at < others.size(); ++at) as_before &= seen[at] == registers[others[at]];
  if (as_before) return true;
  for (std::size_t at = 0; at < others.size(); ++at) {
    PyObject* value = registers[others[at]];
    for (std::size_t earlier = 0; earlier < at; ++earlier)
      if (registers[others[earlier]] == value) return false;
    if (std::binary_search(pinned.begin(), pinned.end(), value)) return false;
  }
  for (std::size_t at = 0; at < others.size(); ++at) seen[at] = registers[others[at]];
  return true;
}

PinnedCheck::Outcome PinnedCheck::run(CheckMachine& machine, const CallArguments& call) noexcept {
  std::size_t word = 0;
  for (const Stage& stage : stages_) {
    if (const std::uint32_t source = pins_.first_moved(word, stage.words_end); source != Pins::kHeld) [[unlikely]] return moved(source);
    word = stage.words_end;
    const std::span<const CheckInstruction> code{code_.data() + stage.code_begin, stage.code_end - stage.code_begin};
    const std::uint32_t at = machine.run(code, call, true);
    if (at == code.size()) continue;
    return code[at].op == CheckOp::check_unmoved ? moved(code[at].source) : Outcome::fails;
  }
  if (!distinct_.hold(machine.registers())) return Outcome::fails;
  if (const std::uint32_t source = pins_.first_moved_late(); source != Pins::kHeld) [[unlikely]] return moved(source);
  if (!late_.empty() && machine.run(late_, call, true) < late_.size()) return Outcome::fails;
  if (misses_ > 0 && ++hits_ == kCalmCalls) misses_ = hits_ = 0;
  return Outcome::holds;
}

PinnedCheck::Outcome PinnedCheck::moved(std::uint32_t source) noexcept {
  set_ = false;
  hits_ = 0;
  if (unsteady_[source] < PinSetter::kUnsteady) ++unsteady_[source];
  wait_ = 1u << std::min(misses_++, kLongestWaitBits);
  return Outcome::moved;
}

void PinnedCheck::note_held(const CheckMachine& machine, std::span<const CheckInstruction> code) noexcept {
  if (wait_ > 0) {
    --wait_;
    return;
  }
  try {
    unsteady_.resize(machine.sources().size());
    PinSetter(*this, machine, code).set();
    set_ = true;
  } catch (const std::bad_alloc&) {
    wait_ = 1u << kLongestWaitBits;
  }
}

int PinnedCheck::traverse(visitproc visit, void* arg) const {
  for (const Ref& kept : kept_) Py_VISIT(kept.get());
  return 0;
}

}  // namespace tenon::python
