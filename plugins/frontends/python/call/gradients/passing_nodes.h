// Nodes of torch's autograd graph that compute nothing: gradients go on from them as they are, or not at all.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "python/library/torch_node.h"
#include "python/objects/sequences.h"

namespace tenon::python {

/// Hands gradients on as they are.
class HandingBody final : public NodeBody {
 public:
  const char* name() const override { return "HandOnBackward"; }
  std::vector<TorchRef> apply(const NodeRun&, std::span<void* const> given) override {
    std::vector<TorchRef> handed;
    for (void* tensor : given) handed.push_back(TorchRef::borrow(tensor));
    return handed;
  }
  Ref apply_to_others(PyObject*, const std::vector<Ref>& given) override { return tuple_of(given); }
};

/// Of a gradient that torch does not differentiate.
class RefusingBody final : public NodeBody {
 public:
  explicit RefusingBody(std::string message) : message_(std::move(message)) {}
  const char* name() const override { return "RefusingBackward"; }
  std::vector<TorchRef> apply(const NodeRun&, std::span<void* const>) override { throw std::runtime_error(message_); }
  Ref apply_to_others(PyObject*, const std::vector<Ref>&) override {
    throw std::runtime_error(message_);
  }

 private:
  const std::string message_;
};

/// Hands a gradient on to two.
class HandingBothBody final : public NodeBody {
 public:
  const char* name() const override { return "HandOnBackward"; }
  std::vector<TorchRef> apply(const NodeRun&, std::span<void* const> given) override { return {TorchRef::borrow(given[0]), TorchRef::borrow(given[0])}; }
  Ref apply_to_others(PyObject*, const std::vector<Ref>& given) override { return tuple_of(std::vector<Ref>{given[0], given[0]}); }
};

}  // namespace tenon::python
