#include "host/plugins/contact/crossing.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/ir/buffer.h"

namespace tenon::host {
std::string name_of(DLDataType dtype) {
  static constexpr const char* kCodes[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::string code = dtype.code < std::size(kCodes) ? kCodes[dtype.code] : fmt::format("code {}", dtype.code);
  const std::string bits = dtype.code == kDLBool && dtype.bits == 8 ? "" : std::to_string(dtype.bits);
  return code + bits + (dtype.lanes == 1 ? "" : fmt::format("x{}", dtype.lanes));
}

const DLTensor* ConstantStore::tensor(const ir::Constant& constant) {
  std::vector<std::int64_t> shape;
  for (const ir::Dim& dim : constant.type.shape) shape.push_back(dim.constant());
  const DLDataType dtype = dlpack_type(constant.type.dtype);
  const DLDevice device = ir::dlpack_device(constant.type.device);
  std::lock_guard lock(mutex_);
  for (const auto& each : entries_) {
    const Entry& e = *each;
    const bool there = e.tensor.device.device_type == device.device_type && e.tensor.device.device_id == device.device_id;
    if (there && e.tensor.data == constant.data && e.tensor.dtype.code == dtype.code && e.tensor.dtype.bits == dtype.bits && e.shape == shape) return &e.tensor;
  }
  Entry& entry = *entries_.emplace_back(std::make_unique<Entry>(Entry{{}, std::move(shape), constant.owner}));
  entry.tensor = {const_cast<void*>(constant.data), device, static_cast<std::int32_t>(entry.shape.size()), dtype, entry.shape.data(), nullptr, 0};
  return &entry.tensor;
}

Crossing::Crossing(const ir::Graph& graph, ConstantStore& constants, std::span<const std::uint32_t> origins) {
  ir::WriteOptions options;
  options.origins = origins;
  bytes_ = ir::write_buffer(graph, options);
  for (const ir::Constant& constant : graph.constants()) constants_.push_back(constants.tensor(constant));
  graph_ = {sizeof(TenonGraph), {bytes_.data(), bytes_.size()}, constants_.data(), constants_.size()};
}

}  // namespace tenon::host
