// Tensors over the memory that a plan has for values, and results put there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/abi/plugin.h"
#include "core/ir/device.h"
#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// An object over memory of a plan; no view of it may stay behind. The host's scalars are copies. Throws PythonError.
Ref tensor_over(TensorKind kind, ir::Device device, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void* data, bool writeable);

/// Copies a result of a library into the memory of an output, which is row-major: of a device in the order of torch's current stream. A negative
/// size depends on data. Throws a Failure where it is another tensor than was promised, or there is no memory.
void put_output(const TenonExecuteArgs& args, std::uint32_t output, PyObject* result, DType dtype, ir::Device device, std::vector<std::int64_t> shape);

/// Whose the memory of a result is.
enum class ResultMemory : std::uint8_t {
  its_own,
  shared,    // with other results
  borrowed,  // from an operand, or nobody knows
};

/// Leaves a result where torch has it, if the plan has no memory for it and it lies there as the plan expects; else puts it as `put_output` does.
void give_output(const TenonExecuteArgs& args, std::uint32_t output, const Ref& result, ResultMemory memory, DType dtype, ir::Device device, std::vector<std::int64_t> shape);

}  // namespace tenon::python
