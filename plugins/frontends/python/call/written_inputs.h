// The inputs that a graph writes: in a call they may share memory with no other input.
#pragma once

#include <Python.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "python/metadata/tensor_spec.h"

namespace tenon::python {

/// Remembers where the inputs were when they last stood apart: most calls find them there again.
class WrittenInputs {
 public:
  using ObjectOf = std::function<PyObject*(std::uint32_t input)>;

  void add(std::uint32_t input) { written_.push_back(input); }
  bool empty() const { return written_.empty(); }

  /// Whether the written inputs stand apart from all others that are no scalars, and from tensors that share them until a write. Objects
  /// match their specs. The GIL must be held; leaves no exception set.
  bool stand_apart(std::span<const TensorSpec> specs, const ObjectOf& object_of) noexcept;

 private:
  bool have_moved(std::span<const TensorSpec> specs, const ObjectOf& object_of);
  bool ranges_touch(std::span<const TensorSpec> specs, const ObjectOf& object_of) const;
  bool any_shares(std::span<const TensorSpec> specs, const ObjectOf& object_of) const;

  std::vector<std::uint32_t> written_;
  std::vector<const void*> first_;  // elements of the inputs, when they stood apart; empty: not yet
};

}  // namespace tenon::python
