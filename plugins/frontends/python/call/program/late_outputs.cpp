#include "python/call/program/late_outputs.h"

#include <algorithm>
#include <new>

#include "python/objects/gil.h"
#include "python/results/device_results.h"

namespace tenon::python {

constexpr std::size_t kLargestElement = 16;

void find_strides(const TensorOutput& output, const std::int64_t* sizes, std::int64_t* strides) {
  std::int64_t step = 1;
  for (std::size_t k = output.order.size(); k-- > 0;) {
    const auto d = static_cast<std::size_t>(output.order[k]);
    strides[d] = step;
    step *= std::max<std::int64_t>(sizes[d], 1);
  }
}

void evaluate_layout(const TensorOutput& output, std::span<const std::int64_t> symbols, std::int64_t* sizes) {
  const std::size_t rank = output.varying_shape.size();
  for (std::size_t d = 0; d < rank; ++d) {
    const ir::Dim& dim = output.varying_shape[d];
    const SymbolId symbol = dim.is_constant() ? SymbolId() : dim.as_symbol();
    sizes[d] = symbol ? symbols[symbol.value] : dim.evaluate(symbols);
  }
  find_strides(output, sizes, sizes + rank);
}

void find_late_sizes(const CapturedGraph& captured, PyObject* const* tensors, std::span<std::int64_t> symbols) {
  for (std::size_t i = 0; i < captured.tensors.size(); ++i) {
    const TensorOutput& output = captured.tensors[i];
    for (std::uint32_t d = 0; output.late && d < output.varying_shape.size(); ++d)
      if (const SymbolId symbol = output.varying_shape[d].as_symbol()) read_extent(tensors[i], d, symbols[symbol.value]);
  }
}

/// The graph gives a result that is not row-major with its dimensions in their order in memory; one of complex numbers it gives as it is.
std::vector<std::int64_t> LateOutputs::Memory::sizes_of(const TensorOutput& output) const {
  if (output.lies_in_rows() || is_complex(output.dtype)) return given;
  std::vector<std::int64_t> sizes(given.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) sizes[static_cast<std::size_t>(output.order[k])] = given[k];
  return sizes;
}

void LateOutputs::expect(std::size_t count, std::span<const TensorOutput> outputs) {
  by_output_.resize(count);
  for (const TensorOutput& output : outputs)
    if (output.late) by_output_[output.index].output = &output;
}

void LateOutputs::release() {
  for (const Memory& memory : by_output_)
    if (memory.block.data) release_pool_block(memory.block.context);
}

namespace {

void* allocate_on_device(LateOutputs::Memory& memory) noexcept {
  const GilHeld gil;
  std::int64_t count = 1;
  for (const std::int64_t size : memory.given) count *= size;
  count = std::max<std::int64_t>(count, 1);
  const std::int64_t stride = 1;
  void* data = nullptr;
  memory.tensor = Ref::steal(new_device_tensor(memory.output->device, memory.output->dtype, {&count, 1}, {&stride, 1}, data));
  if (!memory.tensor) PyErr_Clear();
  return memory.tensor ? data : nullptr;
}

}  // namespace

void* LateOutputs::allocate(void* self, std::uint32_t output, const std::int64_t* sizes, std::size_t rank) noexcept {
  Memory& memory = static_cast<LateOutputs*>(self)->by_output_[output];
  if (memory.block.data) release_pool_block(memory.block.context);
  memory.block = {};
  try {
    memory.given.assign(sizes, sizes + rank);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (memory.output && !memory.output->device.is_host()) return allocate_on_device(memory);
  std::size_t bytes = kLargestElement;
  for (std::size_t d = 0; d < rank; ++d) bytes *= static_cast<std::size_t>(sizes[d]);
  memory.block = take_pool_block(bytes);
  return memory.block.data;
}

}  // namespace tenon::python
