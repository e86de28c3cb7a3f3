// The device that a backend is tested on: the host, or one of its own whose memory the kit reaches by the backend's table.
#pragma once

#include <cstddef>
#include <span>

#include "core/abi/plugin.h"
#include "core/ir/device.h"

namespace tenon::conformance {

/// Every function throws BackendFailure, with the backend's own words. Work is given to the default stream.
class DeviceUnderTest {
 public:
  /// The host where the backend serves it, else the first device of its table that it serves. Throws where there is none.
  explicit DeviceUnderTest(const TenonBackend& backend);
  static const DeviceUnderTest& host();

  bool is_host() const { return !table_; }
  DLDevice id() const { return id_; }
  ir::Device in_graphs() const { return ir::device_of(id_); }

  void* allocate(std::size_t bytes) const;
  void release(void* memory, std::size_t bytes) const;
  /// Both return when the bytes are there.
  void write(void* to, std::span<const std::byte> bytes) const;
  void read(const void* from, std::span<std::byte> bytes) const;
  /// Returns when all work has run; throws what it failed with.
  void synchronise() const;

 private:
  DeviceUnderTest() = default;
  void copy(const TenonDeviceCopy& copy) const;

  DLDevice id_{kDLCPU, 0};
  const TenonDeviceTable* table_ = nullptr;
};

}  // namespace tenon::conformance
