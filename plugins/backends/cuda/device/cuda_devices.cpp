#include "device/cuda_devices.h"

#include "device/cards.h"

namespace tenon::cuda {
namespace {

/// What cuMemAllocAsync gives is aligned to at least so much.
constexpr std::size_t kAlignment = 256;

CUdeviceptr address_of(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }
CUstream stream_of(void* stream) { return static_cast<CUstream>(stream); }
CUevent event_of(void* event) { return static_cast<CUevent>(event); }

}  // namespace

CudaDevices& CudaDevices::get() {
  static CudaDevices& devices = *new CudaDevices;
  return devices;
}

std::span<const DLDevice> CudaDevices::devices() const { return Cards::get().devices(); }

DeviceProperties CudaDevices::properties(DLDevice device) {
  const Card& card = Cards::get().at(device.device_id);
  return {card.name, card.memory_bytes, kAlignment, "cuda"};
}

void* CudaDevices::allocate(DLDevice device, std::size_t bytes, void* stream) {
  const InContext context(device.device_id);
  CUdeviceptr memory = 0;
  Driver::get().allocate(&memory, bytes, stream_of(stream));
  return reinterpret_cast<void*>(memory);
}

void CudaDevices::release(DLDevice device, void* memory, std::size_t, void* stream) {
  const InContext context(device.device_id);
  Driver::get().release(address_of(memory), stream_of(stream));
}

void CudaDevices::copy(const TenonDeviceCopy& copy, void* stream) {
  const Driver& driver = Driver::get();
  if (copy.from_device.device_type == kDLCPU) {
    const InContext context(copy.to_device.device_id);
    driver.copy_to_device(address_of(copy.to), copy.from, copy.bytes, stream_of(stream));
    // The driver may read pinned memory, and other memory where the card reaches it, at any time before the stream has come that far.
    return driver.stream_synchronise(stream_of(stream));
  }
  const InContext context(copy.from_device.device_id);
  if (copy.to_device.device_type == kDLCPU) return driver.copy_to_host(copy.to, address_of(copy.from), copy.bytes, stream_of(stream));
  if (copy.to_device.device_id == copy.from_device.device_id) return driver.copy_on_device(address_of(copy.to), address_of(copy.from), copy.bytes, stream_of(stream));
  Cards& cards = Cards::get();
  driver.copy_to_peer(address_of(copy.to), cards.context_of(copy.to_device.device_id), address_of(copy.from), cards.context_of(copy.from_device.device_id), copy.bytes,
                      stream_of(stream));
}

void* CudaDevices::create_stream(DLDevice device) {
  const InContext context(device.device_id);
  CUstream stream = nullptr;
  Driver::get().stream_create(&stream, kBesideDefaultStream);
  return stream;
}

void CudaDevices::destroy_stream(DLDevice device, void* stream) {
  const InContext context(device.device_id);
  Driver::get().stream_destroy(stream_of(stream));
}

void* CudaDevices::record(DLDevice device, void* stream, void* event) {
  const InContext context(device.device_id);
  const Driver& driver = Driver::get();
  CUevent used = event_of(event);
  if (!used) driver.event_create(&used, kWithoutTiming);
  const CUresult code = driver.event_record.code(used, stream_of(stream));
  if (code != kSuccess && !event) driver.event_destroy.code(used);
  driver.event_record.check(code);
  return used;
}

void CudaDevices::wait(DLDevice device, void* stream, void* event) {
  const InContext context(device.device_id);
  Driver::get().stream_wait(stream_of(stream), event_of(event), 0);
}

bool CudaDevices::query(DLDevice device, void* event) {
  const InContext context(device.device_id);
  const auto& query = Driver::get().event_query;
  const CUresult code = query.code(event_of(event));
  if (code == kNotReady) return false;
  query.check(code);
  return true;
}

void CudaDevices::synchronise(DLDevice device, void* event) {
  const InContext context(device.device_id);
  Driver::get().event_synchronise(event_of(event));
}

void CudaDevices::release_event(DLDevice device, void* event) {
  const InContext context(device.device_id);
  Driver::get().event_destroy(event_of(event));
}

}  // namespace tenon::cuda
