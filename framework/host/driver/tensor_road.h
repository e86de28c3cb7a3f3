// The convenient road: tensors in, tensors out, with every check that the fast road leaves to its driver.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/abi/dlpack.h"
#include "core/ir/graph.h"
#include "host/driver/owned_tensor.h"
#include "host/runtime/plan.h"

namespace tenon::host {

/// One call of a program with DLPack tensors: binds symbols, copies inputs of another layout, allocates outputs, writes updates.
class TensorCall {
 public:
  /// Throws (invalid_argument) for an input that does not fit, naming it, what was given and what is allowed; (unsupported) for a
  /// device or dtype that no graph has.
  TensorCall(Plan& plan, std::span<const DLTensor* const> inputs);
  TensorCall(const TensorCall&) = delete;

  void run();
  /// Hands over the outputs of kind result.
  void take_outputs(std::span<DLManagedTensorVersioned*> outputs);

 private:
  void check_input(std::size_t position);
  void bind_symbols();
  void require_bound_symbols() const;
  void check_sizes(std::size_t position) const;
  void place_input(std::size_t position);
  void check_update_target(const ir::Output& output) const;
  void allocate_outputs();
  void* allocate_output(std::uint32_t position, std::vector<std::int64_t> sizes);
  void write_updates();
  std::vector<std::int64_t> evaluated(std::span<const ir::Dim> dims) const;
  Device& device_of(const DLTensor& tensor) const { return plan_.environment().devices->get(tensor.device); }
  void wait_for_devices() const;

  Plan& plan_;
  const ir::Graph& graph_;
  std::span<const DLTensor* const> inputs_;
  std::vector<std::int64_t> symbols_;
  std::vector<bool> bound_;
  std::vector<const void*> input_pointers_;
  std::vector<TensorPointer> copies_;   // of inputs, in the layout that the program takes
  std::vector<TensorPointer> outputs_;  // of every kind
  std::vector<void*> output_pointers_;
};

}  // namespace tenon::host
