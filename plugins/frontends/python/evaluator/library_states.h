// State of libraries and of the module warnings that the program changes while it is captured.
#pragma once

#include <string>
#include <vector>

#include "python/heap/heap.h"
#include "python/segments/warning_state.h"

namespace tenon::python {

class Evaluator;

/// Asks no other part.
class LibraryStates {
 public:
  LibraryStates(Evaluator& core, Heap& heap) : core_(core), heap_(heap) {}

  /// The program has changed state of a library by `setter(now)`: if another one is left at the end than was found, every call sets it there.
  void set(Ref setter, Ref before, Ref now);
  /// What such a call has set it to, borrowed; null where none has.
  PyObject* now(PyObject* setter) const;
  /// Adds what is left of such changes to the journal. Breaks before a mode that is still entered.
  void finish();
  /// The program has entered a mode of a library through `owner`, by a context that was born here: it must leave it before the segment ends,
  /// unless `enter` is a function that enters it after the graph, given the owner.
  void enter_mode(Ref owner, Ref context, Ref enter = {}) { modes_.push_back({std::move(owner), std::move(context), std::move(enter)}); }
  /// The context of the mode that was entered last, through `owner`; empty for another one, which was entered before the segment.
  Ref leave_mode(PyObject* owner);
  bool is_in_mode() const { return !modes_.empty(); }
  /// Breaks before a call that a library makes while the graph runs, and that may warn, where what the program has done to the module warnings
  /// is done after the graph, or where the program holds the list that records it.
  void require_warnings_in_order(const std::string& function);

 private:
  Evaluator& core_;
  Heap& heap_;
  struct State {
    Ref setter, found, left;
  };
  std::vector<State> states_;
  struct Mode {
    Ref owner, context, enter;
  };
  std::vector<Mode> modes_;  // entered and not left, innermost last
  const WarningState warnings_at_start_;
};

}  // namespace tenon::python
