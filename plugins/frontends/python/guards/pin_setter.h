// Finds the words that stand for the guards of a check program that has just held.
#pragma once

#include "python/guards/pinned_check.h"

namespace tenon::python {

/// Walks the program once. Each source is found to be *held* (a pinned word shows that the same object has been there all the time), *placed*
/// (pinned words show only that the same address is there: another object may have taken it) or *loose* (an instruction fetches it).
/// Of a placed object nothing is assumed: what it holds is pinned too, even where its type is immutable.
class PinSetter {
 public:
  /// A source whose words have moved this often is loose from then on.
  static constexpr std::uint8_t kUnsteady = 2;

  PinSetter(PinnedCheck& check, const CheckMachine& machine, std::span<const CheckInstruction> code);
  /// Replaces all that the check had.
  void set();

 private:
  enum class Hold : std::uint8_t { loose, placed, held };

  PyObject* value(std::uint32_t source) const { return machine_.registers()[source]; }
  bool steady(std::uint32_t source) const { return check_.unsteady_[source] < kUnsteady; }
  Pins& pins() { return check_.pins_; }

  std::size_t set_gate(std::size_t at);
  bool pin_dict(const CheckInstruction& gate);
  bool pin_type_version(std::uint32_t source, std::uint32_t version);
  void keep_region(std::size_t at);

  void set_fetch(const CheckInstruction& fetch);
  bool pin_fetch(const CheckInstruction& fetch);
  bool pin_instance_dict(std::uint32_t parent, std::uint32_t source);
  bool pin_sequence_item(std::uint32_t parent, std::uint32_t source, std::int64_t index);
  bool pin_function_part(std::uint32_t parent, std::uint32_t source, std::size_t offset);
  bool pin_bound_part(std::uint32_t parent, std::uint32_t source);
  bool pin_type_attribute(std::uint32_t parent, std::uint32_t source);

  bool pin_check(const CheckInstruction& check);
  void keep_check(const CheckInstruction& check);
  bool pin_guard(const Guard& guard, std::uint32_t source);
  bool pin_length(std::uint32_t source);
  bool pin_function_parts(std::uint32_t source);
  bool pin_value_check(const Guard& guard, std::uint32_t source);
  bool pin_distinct(const Guard& guard);

  /// Pins the class of an object, unless it cannot change.
  void pin_class(std::uint32_t source);
  void pin_word(std::uint32_t source, const void* place);
  /// Pins where an object keeps the value of a source. False where that is another one.
  bool place_at(std::uint32_t source, const void* place);
  void append(const CheckInstruction& instruction);
  /// After a fetch: demands the object of this time, so that what hangs on it can be pinned.
  void demand_unmoved(std::uint32_t source);

  PinnedCheck& check_;
  const CheckMachine& machine_;
  std::span<const CheckInstruction> code_;
  std::vector<Hold> holds_;
  std::vector<bool> class_pinned_, size_pinned_;
};

}  // namespace tenon::python
