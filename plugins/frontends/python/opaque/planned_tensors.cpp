#include "python/opaque/planned_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "core/abi/dlpack_types.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/results/array_results.h"
#include "python/results/device_results.h"
#include "python/results/torch_results.h"
#include "tenon/host_services.h"

namespace tenon::python {
namespace {

std::string text_of(DType dtype, std::span<const std::int64_t> shape) { return fmt::format("{}[{}]", name_of(dtype), fmt::join(shape, ", ")); }

/// Whether sizes depend on data.
bool is_late(std::span<const std::int64_t> shape) {
  return std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; });
}

}  // namespace

Ref tensor_over(TensorKind kind, ir::Device device, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void* data, bool writeable) {
  if (!device.is_host()) return device_tensor_over(device, dtype, shape, strides, data);
  switch (kind) {
    case TensorKind::torch: return torch_tensor_over(*known_torch_library(), dtype, shape, strides, data);
    case TensorKind::array: return array_over(dtype, shape, strides, data, writeable);
    case TensorKind::scalar: break;
  }
  return Ref::steal(new_array_scalar(dtype, data));
}

namespace {

/// Throws a Failure where the result is another tensor than was promised. Negative sizes of `shape` depend on data.
TensorSpec promised_spec(PyObject* result, DType dtype, ir::Device device, const std::vector<std::int64_t>& shape) {
  auto read = read_spec(result);
  if (const auto* odd = std::get_if<std::string>(&read)) throw Failure(TENON_PLUGIN_FAILED, "it gave " + *odd);
  TensorSpec& spec = std::get<TensorSpec>(read);
  if (spec.dtype != dtype || (!is_late(shape) && spec.shape != shape))
    throw Failure(TENON_PLUGIN_FAILED, fmt::format("it gave {} where {} was promised", text_of(spec.dtype, spec.shape), text_of(dtype, shape)));
  if (spec.device != device) throw Failure(TENON_PLUGIN_FAILED, fmt::format("it gave a tensor on {} where one on {} was promised", ir::device_text(spec.device), ir::device_text(device)));
  return std::move(spec);
}

void put(const TenonExecuteArgs& args, std::uint32_t output, PyObject* result, const TensorSpec& spec, bool late) {
  const std::vector<std::int64_t>& shape = spec.shape;
  const std::size_t bytes = byte_count(spec.dtype, shape);
  const bool asks = late || (bytes > 0 && !args.outputs[output]);
  void* target = asks ? args.call->allocate_output(args.call->self, output, shape.data(), shape.size()) : args.outputs[output];
  if (asks && !target) throw Failure(TENON_OUT_OF_MEMORY, "the host gives no memory for what a call found");
  if (bytes == 0) return;
  alignas(16) unsigned char scratch[16];
  if (spec.device.is_host() && (spec.kind == TensorKind::scalar || is_row_major(spec.shape, spec.strides))) {
    std::memcpy(target, data_of(spec, result, scratch), bytes);
    return;
  }
  Ref to = tensor_over(spec.kind, spec.device, spec.dtype, shape, row_major(shape), target, true);
  if (spec.kind == TensorKind::torch)
    checked(PyObject_CallMethod(to.get(), "copy_", "O", result));
  else
    checked(PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(to.get()), reinterpret_cast<PyArrayObject*>(result)));
}

/// A tensor that the host keeps until nobody reads it any more.
struct KeptTensor {
  DLManagedTensorVersioned managed{};
  std::vector<std::int64_t> sizes;
  Ref tensor;

  static void drop(DLManagedTensorVersioned* self) noexcept {
    if (!Py_IsInitialized()) return;  // what Python held is gone with it
    const GilHeld gil;
    delete static_cast<KeptTensor*>(self->manager_ctx);
  }
};

DLManagedTensorVersioned* kept_tensor(const Ref& tensor, const TensorSpec& spec, bool read_only) {
  auto* kept = new KeptTensor{{}, spec.shape, tensor};
  auto* data = const_cast<void*>(data_of(spec, tensor.get(), nullptr));
  kept->managed.version = {1, 0};
  kept->managed.manager_ctx = kept;
  kept->managed.deleter = &KeptTensor::drop;
  kept->managed.flags = read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  kept->managed.dl_tensor = {data, ir::dlpack_device(spec.device), static_cast<std::int32_t>(spec.shape.size()), dlpack_type(spec.dtype), kept->sizes.data(), nullptr, 0};
  return &kept->managed;
}

}  // namespace

void put_output(const TenonExecuteArgs& args, std::uint32_t output, PyObject* result, DType dtype, ir::Device device, std::vector<std::int64_t> shape) {
  put(args, output, result, promised_spec(result, dtype, device, shape), is_late(shape));
}

void give_output(const TenonExecuteArgs& args, std::uint32_t output, const Ref& result, ResultMemory memory, DType dtype, ir::Device device, std::vector<std::int64_t> shape) {
  const TensorSpec spec = promised_spec(result.get(), dtype, device, shape);
  const bool stays = !args.outputs[output] && !is_late(shape) && byte_count(dtype, shape) > 0 && memory != ResultMemory::borrowed && spec.kind == TensorKind::torch &&
                     is_row_major(spec.shape, spec.strides) && !is_copied_on_write(spec, result.get());
  if (!stays) return put(args, output, result.get(), spec, is_late(shape));
  args.call->give_output(args.call->self, output, kept_tensor(result, spec, memory == ResultMemory::shared));  // what is wrong with it the host notes
}

}  // namespace tenon::python
