#include "host/plugins/contact/given_tensor.h"

#include <fmt/format.h>

#include <limits>

#include "core/abi/dlpack_types.h"
#include "core/abi/graph_buffer.h"
#include "host/plugins/contact/plugin_call.h"

namespace tenon::host {
namespace {

constexpr std::uint32_t kDlpack = 1;  // the major version of the structs in dlpack.h

}  // namespace

std::string defect_of(const DLManagedTensorVersioned* managed, bool on_any_device) {
  if (!managed) return "is null";
  if (managed->version.major != kDlpack) return fmt::format("follows version {} of DLPack, not {}", managed->version.major, kDlpack);
  const DLTensor& tensor = managed->dl_tensor;
  if (tensor.ndim < 0 || static_cast<std::uint32_t>(tensor.ndim) > TENON_MAX_RANK) return fmt::format("has {} dimensions", tensor.ndim);
  if (tensor.ndim > 0 && !tensor.shape) return "has no shape";
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  if (!dtype) return fmt::format("has elements of no type that there is (code {}, {} bits, {} lanes)", tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  auto left = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / size_of(*dtype);
  bool empty = false;
  for (std::int32_t d = 0; d < tensor.ndim; ++d) {
    const std::int64_t size = tensor.shape[d];
    if (size < 0) return fmt::format("has a size of {} in dimension {}", size, d);
    empty = empty || size == 0;
    if (size > 0 && static_cast<std::uint64_t>(size) > left) return "is larger than memory can be";
    if (size > 0) left /= static_cast<std::uint64_t>(size);
  }
  if (!tensor.data && !empty) return "has no memory";
  if (!on_any_device && tensor.device.device_type != kDLCPU) return fmt::format("is on a device of type {}", static_cast<int>(tensor.device.device_type));
  return {};
}

void give_back(DLManagedTensorVersioned* tensor, const TenonHost* watched) {
  if (!tensor || !tensor->deleter) return;
  call_plugin(watched, "the deleter of a tensor", [&] {
    tensor->deleter(tensor);
    return TENON_OK;
  });
  take_report();
}

std::shared_ptr<const void> owner_of(DLManagedTensorVersioned* tensor, const TenonHost* watched) {
  return {tensor, [watched](const void* memory) { give_back(static_cast<DLManagedTensorVersioned*>(const_cast<void*>(memory)), watched); }};
}

std::string defect_of_given(TenonBytes buffer, const std::uint32_t* constants, std::size_t constant_count, DLManagedTensorVersioned* const* tensors,
                            std::size_t tensor_count) {
  constexpr std::size_t kMost = std::size_t{1} << 31;  // the buffer counts bytes and constants in 32 bits
  if (!buffer.data || buffer.size == 0) return "it gave a graph without a buffer";
  if (buffer.size > kMost) return fmt::format("it gave a graph whose buffer has {} bytes", buffer.size);
  if (constant_count > kMost || tensor_count > kMost) return fmt::format("it gave a graph with {} constants, of which {} are new", constant_count, tensor_count);
  if ((constant_count && !constants) || (tensor_count && !tensors)) return "it announces constants and gives none";
  return {};
}

}  // namespace tenon::host
