// The state of torch's default generator.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// A copy of the state, as torch.get_rng_state gives it. Throws PythonError.
Ref generator_state();

/// Puts it back. Keeps an exception that is set.
void restore_generator(PyObject* state) noexcept;

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
