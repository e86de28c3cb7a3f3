// Memory for the results whose size the plan says while it runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "python/graph/captured_graph.h"
#include "python/results/pool_block.h"

namespace tenon::python {

/// Dense strides of a result that varies.
void find_strides(const TensorOutput& output, const std::int64_t* sizes, std::int64_t* strides);

/// The sizes of a result that varies, then its strides.
void evaluate_layout(const TensorOutput& output, std::span<const std::int64_t> symbols, std::int64_t* sizes);

/// Takes the sizes that the run has found from the results that have them. `tensors` are by CapturedGraph::tensors.
void find_late_sizes(const CapturedGraph& captured, PyObject* const* tensors, std::span<std::int64_t> symbols);

/// The plan may ask without the GIL: results get memory then, and become objects afterwards.
class LateOutputs {
 public:
  struct Memory {
    std::vector<std::int64_t> given;  // sizes of the value that the graph gives
    const TensorOutput* output = nullptr;
    PoolBlock block;
    Ref tensor;                       // of a device instead: elements one after the other, one at least
    /// The sizes of the result.
    std::vector<std::int64_t> sizes_of(const TensorOutput& output) const;
  };

  LateOutputs() = default;
  LateOutputs(const LateOutputs&) = delete;
  LateOutputs& operator=(const LateOutputs&) = delete;
  ~LateOutputs() {
    if (!by_output_.empty()) release();
  }

  void expect(std::size_t count, std::span<const TensorOutput> outputs);
  const Memory& operator[](std::size_t output) const { return by_output_[output]; }

  /// Has the signature that TenonRunArgs asks for. Null when there is no memory.
  static void* allocate(void* self, std::uint32_t output, const std::int64_t* sizes, std::size_t rank) noexcept;

 private:
  void release();

  std::vector<Memory> by_output_;
};

}  // namespace tenon::python
