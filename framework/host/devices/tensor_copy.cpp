#include "host/devices/tensor_copy.h"

#include <algorithm>
#include <exception>

#include "core/memory/row_major.h"
#include "host/devices/host_memory.h"
#include "host/machine/memory_pool.h"
#include "host/machine/strided_copy.h"

namespace tenon::host {
namespace {

/// Bytes of a device, brought to the host.
PoolBlock brought(const PlacedTensor& from, std::size_t bytes) {
  PoolBlock copy(bytes);
  from.device.copy(copy.data(), HostMemory::get().id(), from.data, from.device.id(), bytes, from.stream);
  drain(from.device, from.stream);
  return copy;
}

void copy_through_host(const PlacedTensor& to, const PlacedTensor& from, std::span<const std::int64_t> sizes, std::size_t element_bytes) {
  const std::size_t to_bytes = extent_bytes(sizes, to.strides, element_bytes);
  PoolBlock source, target;
  const std::byte* source_data = from.data;
  std::byte* target_data = to.data;
  if (!from.device.is_host()) source = brought(from, extent_bytes(sizes, from.strides, element_bytes)), source_data = source.data();
  if (!to.device.is_host()) {
    // What lies between the elements stays as it is.
    target = is_row_major(sizes, to.strides) ? PoolBlock(to_bytes) : brought(to, to_bytes);
    target_data = target.data();
  }
  strided_copy(target_data, to.strides, source_data, from.strides, sizes, element_bytes);
  if (!to.device.is_host()) to.device.copy(to.data, to.device.id(), target_data, HostMemory::get().id(), to_bytes, to.stream);
}

}  // namespace

void copy_tensor(const PlacedTensor& to, const PlacedTensor& from, std::span<const std::int64_t> sizes, std::size_t element_bytes) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return;
  if (to.device.is_host() && from.device.is_host()) return strided_copy(to.data, to.strides, from.data, from.strides, sizes, element_bytes);
  if (!is_row_major(sizes, to.strides) || !is_row_major(sizes, from.strides)) return copy_through_host(to, from, sizes, element_bytes);
  const std::size_t bytes = extent_bytes(sizes, to.strides, element_bytes);
  const PlacedTensor& worker = from.device.is_host() ? to : from;
  const auto copy = [&] { worker.device.copy(to.data, to.device.id(), from.data, from.device.id(), bytes, worker.stream); };
  if (&to.device == &from.device || from.device.is_host() || to.device.is_host()) return copy();
  if (!from.device.reaches(to.device)) return copy_through_host(to, from, sizes, element_bytes);
  // The copy runs in the order of the source's stream: it begins when the target is free, and what follows there waits for it.
  Event(to.device, to.stream).hold_up(from.device, from.stream);
  copy();
  try {
    Event(from.device, from.stream).hold_up(to.device, to.stream);
  } catch (const std::exception&) {
    drain(from.device, from.stream);  // the target's stream knows nothing of what is still written there
    throw;
  }
}

void copy_bytes(Device& to_device, void* to, Device& from_device, const void* from, std::size_t bytes) {
  const std::int64_t sizes[] = {static_cast<std::int64_t>(bytes)}, strides[] = {1};
  const PlacedTensor target{to_device, static_cast<std::byte*>(to), strides, to_device.current_stream()};
  copy_tensor(target, {from_device, static_cast<std::byte*>(const_cast<void*>(from)), strides, from_device.current_stream()}, sizes, 1);
  for (Device* device : {&to_device, &from_device}) drain(*device, device->current_stream());
}

}  // namespace tenon::host
