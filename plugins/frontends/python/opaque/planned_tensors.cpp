#include "python/opaque/planned_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"
#include "python/results/array_results.h"
#include "python/results/device_results.h"
#include "python/results/torch_results.h"
#include "tenon/host_services.h"

namespace tenon::python {
namespace {

std::string text_of(DType dtype, std::span<const std::int64_t> shape) { return fmt::format("{}[{}]", name_of(dtype), fmt::join(shape, ", ")); }

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

void put_output(const TenonExecuteArgs& args, std::uint32_t output, PyObject* result, DType dtype, ir::Device device, std::vector<std::int64_t> shape) {
  auto read = read_spec(result);
  if (const auto* odd = std::get_if<std::string>(&read)) throw Failure(TENON_PLUGIN_FAILED, "it gave " + *odd);
  const TensorSpec& spec = std::get<TensorSpec>(read);
  const bool late = std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; });
  if (late) shape = spec.shape;
  if (spec.dtype != dtype || spec.shape != shape)
    throw Failure(TENON_PLUGIN_FAILED, fmt::format("it gave {} where {} was promised", text_of(spec.dtype, spec.shape), text_of(dtype, shape)));
  if (spec.device != device) throw Failure(TENON_PLUGIN_FAILED, fmt::format("it gave a tensor on {} where one on {} was promised", ir::device_text(spec.device), ir::device_text(device)));
  void* target = late ? args.call->allocate_output(args.call->self, output, shape.data(), shape.size()) : args.outputs[output];
  if (late && !target) throw Failure(TENON_OUT_OF_MEMORY, "the host gives no memory for what a call found");
  const std::size_t bytes = byte_count(dtype, shape);
  if (bytes == 0) return;
  alignas(16) unsigned char scratch[16];
  if (device.is_host() && (spec.kind == TensorKind::scalar || is_row_major(spec.shape, spec.strides))) {
    std::memcpy(target, data_of(spec, result, scratch), bytes);
    return;
  }
  Ref to = tensor_over(spec.kind, device, dtype, shape, row_major(shape), target, true);
  if (spec.kind == TensorKind::torch)
    checked(PyObject_CallMethod(to.get(), "copy_", "O", result));
  else
    checked(PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(to.get()), reinterpret_cast<PyArrayObject*>(result)));
}

}  // namespace tenon::python
