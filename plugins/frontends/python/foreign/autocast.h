// torch's autocast: what it makes of a call, and running without it.
#pragma once

#include "python/foreign/foreign_names.h"
#include "python/library/torch_state.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// What autocast, as it is on, makes of one call. Nothing, where both are empty.
struct AutocastVerdict {
  Ref casts;         // a list, by tensor of the arguments in the order of StandIns::among: the dtype to cast it to, or None
  Ref call, result;  // instead: a function that calls it under autocast, and what it gives for the twins
  Ref parts;         // instead: a function of the same arguments that does the same by calls of which autocast casts arguments at most
};

/// Whether autocast may change what a function computes. False for what has no rule of its own and works element by element, on metadata,
/// or (`random`) on random numbers.
bool autocast_may_change(const ForeignFunction& function, bool random, TorchState::Autocast of);

/// Asks torch, on twins of the arguments. Throws PythonError where the call raises on them.
AutocastVerdict judge_autocast(PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, TorchState::Autocast of);

/// Switches autocast off for this thread while it lives: graphs hold their casts.
class WithoutAutocast {
 public:
  explicit WithoutAutocast(const TorchState& state);
  ~WithoutAutocast();
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  const bool cpu_, cuda_;  // whether it was on
};

}  // namespace tenon::python
