// Runs the instructions of a check program over the values of a call.
#pragma once

#include <span>

#include "python/guards/check_instruction.h"

namespace tenon::python {

/// The values of one call as vectorcall gives them: positional ones, then keywords.
struct CallArguments {
  PyObject* const* values = nullptr;
  std::size_t positional = 0;
  PyObject* keyword_names = nullptr;  // tuple of str, or null

  std::size_t keyword_count() const { return keyword_names ? static_cast<std::size_t>(PyTuple_GET_SIZE(keyword_names)) : 0; }
  std::size_t count() const { return positional + keyword_count(); }
};

/// The version that a dict or type had when what hangs on it was checked.
struct Stamp {
  const void* object = nullptr;
  std::uint64_t version = 0;
};

/// Sources, guards, and what the last run found. Runs no Python code and allocates nothing while everything holds. The GIL must be held.
class CheckMachine {
 public:
  CheckMachine(SourceTable sources, std::vector<Guard> guards, std::size_t stamps);

  /// Lets go of what the last run had to keep alive.
  void let_go() noexcept {
    while (!temporaries_.empty()) {  // one by one: code may run at their end that comes here again
      const Ref last = std::move(temporaries_.back());
      temporaries_.pop_back();
    }
  }
  /// The index of the instruction that failed, or the number of instructions. With `gates` false nothing is taken on trust.
  std::uint32_t run(std::span<const CheckInstruction> code, const CallArguments& call, bool gates) noexcept;

  const SourceTable& sources() const { return sources_; }
  const Source& source(std::uint32_t id) const { return sources_[SourceId{id}]; }
  const std::vector<Guard>& guards() const { return guards_; }
  const Stamp& stamp(std::uint32_t at) const { return stamps_[at]; }
  /// Whether a run may make objects that the garbage collector tracks.
  bool makes_objects() const { return makes_objects_; }
  /// Whether keys are compared by Python code.
  bool may_run_python() const { return holds_values_; }
  /// What each source gave, by its number: borrowed, and kept between runs for what a gate skips.
  PyObject* const* registers() const { return registers_.data(); }

  int traverse(visitproc visit, void* arg) const;

 private:
  PyObject* keep(PyObject* fresh) noexcept;
  std::optional<std::int64_t> index_at(const ChosenPlace& place) const noexcept;
  PyObject* chosen_item(PyObject* parent, const ChosenPlace& place) const noexcept;
  PyObject* item_of_number(PyObject* dict, const ChosenPlace& place) const noexcept;
  /// Whether the dict has the number as a key; neither where it is no dict.
  bool has_number(PyObject* dict, const ChosenPlace& place, bool present) const noexcept;
  PyObject* fetch(const Source& wanted, const CallArguments& call) noexcept;
  bool distinct_holds(const Guard& guard) noexcept;
  bool holds(const Guard& guard) noexcept;
  bool gate_holds(const CheckInstruction& gate) const noexcept;
  void set_stamp(const CheckInstruction& at) noexcept;
  /// Whether a fetch finds its value, or a check holds.
  bool step(const CheckInstruction& now, const CallArguments& call) noexcept;

  SourceTable sources_;
  std::vector<Guard> guards_;
  std::vector<Stamp> stamps_;
  std::vector<PyObject*> registers_;
  std::vector<Ref> temporaries_;         // values that nobody else keeps alive
  std::vector<PyObject*> distinct_;      // scratch
  std::vector<PyObject*> seen_distinct_;  // addresses that were pairwise different when last looked at
  bool trust_versions_;
  bool makes_objects_ = false;
  bool holds_values_ = false;  // keys are compared by Python code, which may drop what was fetched before
};

}  // namespace tenon::python
