// The check of a call as long as nothing that the guards read has moved: words of memory are compared, and only what varies from call to
// call is evaluated.
//
// Once all guards have held, each that rests on what outlives a call is replaced by words whose sameness implies it (`Pins`): the version
// of a dict for all that is read of it, the slot that holds a `__dict__`, the type of an object, an item of a list, the metadata of a tensor.
// What has no such word, or has kept moving, stays an instruction. A word that differs proves nothing: the whole program decides, and the
// pins are set anew.
#pragma once

#include <span>

#include "python/guards/check_machine.h"
#include "python/guards/pins.h"

namespace tenon::python {

class PinnedCheck {
 public:
  /// `moved`: the pins say nothing of this call, and are gone.
  enum class Outcome : std::uint8_t { holds, fails, moved };

  bool is_set() const { return set_; }
  /// Checks a call. No Python code, no allocation. The machine's registers are those of the run after which the pins were set.
  Outcome run(CheckMachine& machine, const CallArguments& call) noexcept;
  /// Hears that `code` has just held for the values in the machine's registers, and sets the pins when that promises to pay.
  void note_held(const CheckMachine& machine, std::span<const CheckInstruction> code) noexcept;
  /// Forgets the pins; whoever runs the machine by another way must.
  void drop() noexcept { set_ = false; }

  int traverse(visitproc visit, void* arg) const;

 private:
  friend class PinSetter;

  /// Words, then instructions, which may rest on them.
  struct Stage {
    std::size_t words_end, code_begin, code_end;
  };
  /// The objects that must be pairwise different: those that are pinned, sorted, and the sources of the others.
  struct Distinct {
    std::vector<PyObject*> pinned;
    std::vector<std::uint32_t> others;
    std::vector<PyObject*> seen;  // the others when last looked at
    bool hold(PyObject* const* registers) noexcept;
  };

  Outcome moved(std::uint32_t source) noexcept;

  Pins pins_;
  std::vector<Stage> stages_;
  std::vector<CheckInstruction> code_;
  std::vector<CheckInstruction> late_;  // checks of objects whose metadata are in a block: they come after the blocks
  Distinct distinct_;
  std::vector<Ref> kept_;               // immutable values that are pinned by their addresses
  std::vector<std::uint8_t> unsteady_;  // by source: how often its words have moved
  std::uint32_t misses_ = 0, hits_ = 0, wait_ = 1;
  bool set_ = false;
};

}  // namespace tenon::python
