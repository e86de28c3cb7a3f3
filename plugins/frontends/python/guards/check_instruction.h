// The instructions of a check program: fetches of sources into registers, checks of what is there, and gates around what need not be
// looked at again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "python/guards/guard_set.h"

namespace tenon::python {

inline constexpr std::uint32_t kNoGuard = ~0u;

enum class CheckOp : std::uint8_t {
  fetch,  // value of a source into its register; fails when it is not there
  // The commonest fetches, with all they need in the instruction.
  fetch_argument,
  fetch_instance_dict,
  fetch_dict_item,
  check,  // one guard on a register
  // The commonest checks.
  check_type,
  check_identity,
  check_dict_size,
  dict_gate,  // while the dict's version is the stamped one, all fetches and checks up to `jump` hold: go there
  dict_stamp,
  type_gate,  // the same for the attributes of a type
  type_stamp,
  check_unmoved,  // the register holds the object that it held when the pins were set
};

struct CheckInstruction {
  CheckOp op;
  std::uint32_t source = 0;         // also its register
  std::uint32_t guard = kNoGuard;   // checks
  std::uint32_t jump = 0;           // gates: the instruction to go to; fetches: the parent's register
  std::uint32_t stamp = 0;          // gates and stamps: index of the stamp
  PyObject* object = nullptr;       // key of a dict item; expected type or object (borrowed from the guard or source)
  std::int64_t number = 0;          // position of an argument; expected size
};

inline bool is_fetch(CheckOp op) { return op <= CheckOp::fetch_dict_item; }

/// Whether a guard compares values of several sources.
bool is_relation(GuardKind kind);

/// The program that fetches every source that a guard or a result needs, parents first and arguments before all, and checks what hangs on
/// each before going on.
std::vector<CheckInstruction> compile_checks(const SourceTable& sources, const std::vector<Guard>& guards, std::span<const SourceId> wanted);

}  // namespace tenon::python
