// Tensors from one layout or device to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "host/devices/event.h"

namespace tenon::host {

/// A tensor's memory as a copy needs it: strides in elements, not negative where the device is not the host.
struct PlacedTensor {
  Device& device;
  std::byte* data;
  std::span<const std::int64_t> strides;
  void* stream;  // of the device
};

/// Copies elements of 1, 2, 4, 8 or 16 bytes. Row-major tensors go in one copy, in the order of the stream; between devices that know nothing
/// of each other, and between layouts of which one is a device's, bytes go through the host, and the caller is held up until they have.
void copy_tensor(const PlacedTensor& to, const PlacedTensor& from, std::span<const std::int64_t> sizes, std::size_t element_bytes);

/// Copies bytes and waits until they are there, on the devices' current streams.
void copy_bytes(Device& to_device, void* to, Device& from_device, const void* from, std::size_t bytes);

}  // namespace tenon::host
