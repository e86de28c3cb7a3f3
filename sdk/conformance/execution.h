// One run of a compiled group on given inputs, with everything checked that a backend could get wrong beside the values.
#pragma once

#include <memory>
#include <vector>

#include "backend_under_test.h"
#include "test_graph.h"
#include "test_inputs.h"

namespace tenon::conformance {

/// An output of a run.
struct TestOutput {
  std::unique_ptr<TestMemory> memory;  // null when the backend gave its own
  DLManagedTensorVersioned* given = nullptr;
  ops::TensorView view;                // of what the kit reads
  std::vector<std::byte> brought;      // from a device, where the backend gave its own
};

/// The outputs of one run; they belong to this object.
class Execution {
 public:
  /// Runs. The outputs' memory holds garbage beforehand. Throws BackendFailure when the backend fails, writes outside of its outputs
  /// or workspace, changes an input, or leaves an output without memory.
  Execution(const CompiledGroup& group, const TestGraph& graph, const std::vector<TestInput>& inputs);
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  ~Execution();

  /// Compares with the values that the definitions give; throws BackendFailure with the first difference.
  void require_equal(const std::vector<ops::HostTensor>& expected, double tolerance) const;

 private:
  static void* allocate_output(void* self, std::uint32_t index, const std::int64_t* sizes, std::size_t rank);
  static std::int32_t give_output(void* self, std::uint32_t index, DLManagedTensorVersioned* tensor);

  void prepare_outputs(const std::vector<std::int64_t>& symbols);
  void place(std::size_t index, std::vector<std::int64_t> shape);
  void take_given(std::size_t index);
  void require_untouched(const TestMemory& workspace, const std::vector<TestInput>& inputs) const;

  const TestGraph& graph_;
  std::vector<TestOutput> outputs_;
};

}  // namespace tenon::conformance
