// Memory, copies and streams of the cards, as the host asks for them.
#pragma once

#include "tenon/device.h"

namespace tenon::cuda {

class CudaDevices : public Devices {
 public:
  static CudaDevices& get();

  std::span<const DLDevice> devices() const override;
  DeviceProperties properties(DLDevice device) override;
  void* allocate(DLDevice device, std::size_t bytes, void* stream) override;
  void release(DLDevice device, void* memory, std::size_t bytes, void* stream) override;
  void copy(const TenonDeviceCopy& copy, void* stream) override;
  void* create_stream(DLDevice device) override;
  void destroy_stream(DLDevice device, void* stream) override;
  void* record(DLDevice device, void* stream, void* event) override;
  void wait(DLDevice device, void* stream, void* event) override;
  bool query(DLDevice device, void* event) override;
  void synchronise(DLDevice device, void* event) override;
  void release_event(DLDevice device, void* event) override;
};

}  // namespace tenon::cuda
