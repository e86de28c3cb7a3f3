// The state of torch's default generator.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// A copy of the state: that of the host, and where each card's generator is. Throws PythonError.
Ref generator_state();
/// Of the cards alone, which takes a tenth of the time.
Ref generator_state_of_cards();

/// Puts it back. Keeps an exception that is set.
void restore_generator(PyObject* state) noexcept;

/// Whether torch records the calls of this thread, with what they draw, for launching them again (torch.cuda.graph). Throws PythonError.
bool draws_are_captured();

/// Puts torch's generator back to where it was: what runs on twins must not advance it.
class KeptGenerator {
 public:
  KeptGenerator() : state_(generator_state()) {}
  ~KeptGenerator() { restore_generator(state_.get()); }
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;

 private:
  Ref state_;
};

}  // namespace tenon::python
