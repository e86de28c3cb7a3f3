// What code of the program's reads that runs after the call that it was captured in, and that must be the same then.
#pragma once

#include <memory>

#include "python/guards/check_program.h"

namespace tenon::python {

/// The GIL must be held, also at its end.
class LaterCheck {
 public:
  /// Of what `guards` says is read again, or kept; null where that is nothing.
  static std::shared_ptr<LaterCheck> of(const SourceTable& sources, const GuardSet& guards);

  /// What is not the same now; nothing where all is.
  std::optional<GuardFailure> failure();
  /// Whether there is anything to compare.
  bool compares() const { return compares_; }
  /// Whose code reads it.
  const std::vector<Ref>& readers() const { return readers_; }
  /// Whose code keeps tensors by itself.
  const std::vector<Ref>& keepers() const { return keepers_; }
  /// Visits every object that is held, for the garbage collector.
  int traverse(visitproc visit, void* arg) const;

 private:
  LaterCheck(CheckProgram program, bool compares, const GuardSet& guards) : program_(std::move(program)), compares_(compares), readers_(guards.readers()), keepers_(guards.keepers()) {}

  CheckProgram program_;
  const bool compares_;
  const std::vector<Ref> readers_, keepers_;
};

}  // namespace tenon::python
