// The guards of a segment as a linear program over the arguments of a call: the check that every compiled call starts with.
#pragma once

#include <optional>
#include <span>

#include "python/guards/check_machine.h"

namespace tenon::python {

/// Fetches each source once, in an order in which parents come first, and checks what hangs on it before going on.
/// Runs no Python code and allocates nothing while everything holds. The GIL must be held.
class CheckProgram {
 public:
  CheckProgram(SourceTable sources, const GuardSet& guards, const CallArguments& captured, std::span<const SourceId> wanted);
  /// Of guards to which no argument leads.
  CheckProgram(SourceTable sources, std::vector<Guard> guards);
  CheckProgram(CheckProgram&&) noexcept;
  CheckProgram& operator=(CheckProgram&&) noexcept;
  ~CheckProgram();

  /// Whether all guards hold for this call. Afterwards `values()` holds the objects found (borrowed).
  bool check(const CallArguments& call) noexcept;

  /// Where the value of a source that was `wanted` is found in `values()`.
  std::uint32_t slot(SourceId source) const;
  PyObject* const* values() const;
  /// Lets go of values that only the check keeps alive: no call may lengthen the life of what the program drops after it.
  void let_go() noexcept;

  /// Evaluates the guards one by one in the slow way and names the first that fails.
  std::optional<GuardFailure> explain(const CallArguments& call);

  /// All guards in words.
  std::vector<std::string> describe() const;
  std::size_t guard_count() const;
  /// Visits every object that is held, for the garbage collector.
  int traverse(visitproc visit, void* arg) const;

 private:
  CheckProgram(SourceTable sources, std::vector<Guard> guards, const CallArguments& captured, std::span<const SourceId> wanted);

  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace tenon::python
