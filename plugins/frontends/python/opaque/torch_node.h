// A node of the catalogue as torch computes it: the function that its op's entry names, and that function's arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ops/foreign/foreign_call.h"
#include "python/objects/ref.h"

namespace tenon::python {

class TorchNode {
 public:
  /// Nothing where no function of torch's means just this node. `graph` is not needed afterwards. The GIL must be held.
  static std::optional<TorchNode> of(const ir::Graph& graph, ir::NodeId node);
  /// Both gradients of a convolution by one call, of its weight, input and gradient; the input's comes first. Nothing where the nodes are not these.
  static std::optional<TorchNode> of_both(const ir::Graph& graph, ir::NodeId of_input, ir::NodeId of_weight);

  /// Gives the results, in the node's order. `operands` by position, those that are literals left out of account. Throws PythonError.
  std::vector<Ref> run(std::span<const Ref> operands, std::span<const std::int64_t> symbols) const;
  /// Lets the function write its one result into a tensor that is there, of the right sizes and dtype. False where it cannot: nothing is said then
  /// of what the tensor holds.
  bool run_into(std::span<const Ref> operands, std::span<const std::int64_t> symbols, PyObject* target) const;

  const std::string& function() const { return name_; }
  PyObject* callable() const { return callable_.get(); }

  /// A tuple and a dict.
  struct Arguments {
    Ref positional, keyword;
  };
  /// What the function is called with; objects of any type may stand for the operands. `dtype_of_numbers`: of tensors without dimensions, in the host's
  /// memory, in the places of numbers; null where numbers stay numbers. Throws PythonError.
  Arguments arguments(std::span<const Ref> operands, std::span<const std::int64_t> symbols, PyObject* dtype_of_numbers = nullptr) const;

 private:
  /// What the function gives. `target`: where it is to write that, or null.
  Ref answer(std::span<const Ref> operands, std::span<const std::int64_t> symbols, PyObject* target) const;
  /// Calls again, with tensors for numbers, where the function takes no numbers.
  Ref answer_with_tensors(std::span<const Ref> operands, std::span<const std::int64_t> symbols) const;
  Ref argument(const ops::ForeignArgument& argument, bool device, std::span<const Ref> operands, std::span<const std::int64_t> symbols) const;

  std::string name_;
  Ref callable_;
  ops::ForeignCall call_;
  std::vector<ir::ValueId> operands_;  // as the call names them
  mutable bool takes_target_ = true;   // until it was seen not to; with the GIL
  mutable bool takes_numbers_ = true;  // likewise: torch.maximum takes tensors alone
};

}  // namespace tenon::python
