// The guard on a tensor whose gradient a graph computes: nothing of the program's is told of that gradient.
#pragma once

#include "python/guards/guard_set.h"

namespace tenon::python {

/// A leaf of torch's autograd graph without hooks: neither on the tensor nor on the node that would accumulate its gradient.
class LeafCheck final : public ValueCheck {
 public:
  /// Whether torch keeps hooks where we know them to be. Else no tensor may be taken for one without.
  static bool is_possible();

  bool holds(PyObject* tensor) const noexcept override;
  bool pin(PyObject* tensor, Pins& pins) const override;
  std::string expected() const override { return "a leaf without hooks"; }
  std::string found(PyObject* tensor) const override;
};

/// A leaf whose hooks are those that Python shows: `_backward_hooks` and `_post_accumulate_grad_hooks`.
class HookedLeafCheck final : public ValueCheck {
 public:
  bool holds(PyObject* tensor) const noexcept override;
  std::string expected() const override { return "a leaf with hooks of Python alone"; }
  std::string found(PyObject* tensor) const override { return holds(tensor) ? expected() : "a tensor with other hooks, or that was computed"; }
};

}  // namespace tenon::python
