// A parameter or buffer of which a compiled program keeps packed and folded copies, and the check that nobody has written it since.
#pragma once

#include <memory>

#include "core/ir/graph.h"
#include "python/guards/source.h"
#include "python/metadata/tensor_spec.h"

namespace tenon::python {

/// Of a parameter: holds as long as the tensor has the memory and the version (`_version`) that it had. Writes that torch does not count
/// stay unseen. Of a buffer: holds as long as the elements are the same, because batch norms write running statistics without counting.
/// Keeps the memory alive, not the tensor.
class FrozenTensor final : public ValueCheck {
 public:
  /// For a tensor that `may_freeze`. Throws PythonError.
  FrozenTensor(const TensorSpec& spec, PyObject* tensor);

  /// `value` has the metadata of the spec: a check of them comes first.
  bool holds(PyObject* value) const noexcept override;
  bool pin(PyObject* value, Pins& pins) const override;
  std::string expected() const override;
  std::string found(PyObject* value) const override;

  /// From now on the check always holds: the program itself writes the tensor.
  void thaw() { thawed_ = true; }
  bool thawed() const { return thawed_; }
  /// Whether somebody has written the memory: the check will not hold for the same tensor again.
  bool written() const noexcept;

  /// The elements as a constant of a graph, which keeps them alive.
  ir::Constant constant(std::string name) const;

 private:
  /// What says whether a tensor was written.
  struct State {
    const void* data = nullptr;
    std::int64_t version = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  State state_of(PyObject* tensor) const noexcept;
  bool same_elements(PyObject* tensor) const noexcept;
  bool unchanged(PyObject* tensor) const noexcept { return elements_ ? same_elements(tensor) : state_of(tensor) == state_; }

  TensorSpec spec_;
  std::shared_ptr<PyObject> alias_;  // a tensor of the same memory and version counter
  std::shared_ptr<std::vector<unsigned char>> elements_;  // of a buffer
  State state_;
  bool thawed_ = false;
};

/// Whether a capture may freeze a tensor: a parameter that has a version, or a small buffer of a module, whose size does not vary.
bool may_freeze(const TensorSpec& spec, const SourceTable& sources, SourceId source);

}  // namespace tenon::python
