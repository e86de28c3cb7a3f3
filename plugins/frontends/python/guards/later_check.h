// What code of the program's reads that runs after the call that it was captured in, and that must be the same then.
#pragma once

#include <memory>

#include "python/guards/check_program.h"

namespace tenon::python {

/// The GIL must be held, also at its end.
class LaterCheck {
 public:
  /// Of what `guards` says is read again; null where that is nothing.
  static std::shared_ptr<LaterCheck> of(const SourceTable& sources, const GuardSet& guards);

  /// What is not the same now; nothing where all is.
  std::optional<GuardFailure> failure();
  /// Whose code reads it.
  const std::vector<Ref>& readers() const { return readers_; }
  /// Visits every object that is held, for the garbage collector.
  int traverse(visitproc visit, void* arg) const;

 private:
  LaterCheck(CheckProgram program, std::vector<Ref> readers) : program_(std::move(program)), readers_(std::move(readers)) {}

  CheckProgram program_;
  std::vector<Ref> readers_;
};

}  // namespace tenon::python
