// A base class for the devices of a backend in C++: their memory, copies and streams. A backend class gives its devices by
// `static tenon::Devices& open_devices(tenon::HostServices)`: one object a process, which is never destroyed.
#pragma once

#include <cstring>
#include <span>
#include <string>

#include "core/abi/device.h"
#include "core/abi/struct_size.h"
#include "tenon/entry_guard.h"

namespace tenon {

/// What a plugin says of a device.
struct DeviceProperties {
  std::string name;  // at most 127 bytes are used
  std::uint64_t memory_bytes = 0;
  std::size_t alignment = 64;
  std::string kind = {};  // the word that people have for devices of its kind; at most 31 bytes are used
};

/// The functions of TenonDeviceTable; core/abi/device.h says what each must do. Throw to fail: a Failure with TENON_OUT_OF_MEMORY,
/// TENON_DEVICE_LOST or another code. Called on any thread, on several at once.
class Devices {
 public:
  virtual ~Devices() = default;

  /// Stays the same.
  virtual std::span<const DLDevice> devices() const = 0;
  virtual DeviceProperties properties(DLDevice device) = 0;

  virtual void* allocate(DLDevice device, std::size_t bytes, void* stream) = 0;
  virtual void release(DLDevice device, void* memory, std::size_t bytes, void* stream) = 0;
  virtual void copy(const TenonDeviceCopy& copy, void* stream) = 0;

  virtual void* create_stream(DLDevice device) = 0;
  virtual void destroy_stream(DLDevice device, void* stream) = 0;

  /// Gives the event: `event`, or a new one where that is null.
  virtual void* record(DLDevice device, void* stream, void* event) = 0;
  virtual void wait(DLDevice device, void* stream, void* event) = 0;
  /// Whether the event is reached.
  virtual bool query(DLDevice device, void* event) = 0;
  virtual void synchronise(DLDevice device, void* event) = 0;
  virtual void release_event(DLDevice device, void* event) = 0;
};

namespace detail {

/// The table of one Devices object, which outlives it not.
class DeviceTable {
 public:
  DeviceTable(HostServices host, Devices& devices) : host_(host), devices_(devices) {
    const std::span<const DLDevice> known = devices.devices();
    table_ = {sizeof table_, this, known.data(), known.size(), &properties, &allocate, &release, &copy, &create_stream, &destroy_stream, &record, &wait, &query,
              &synchronise, &release_event};
  }

  const TenonDeviceTable* get() const { return &table_; }

 private:
  template <class Body>
  static std::int32_t call(void* self, Body&& body) noexcept {
    auto& table = *static_cast<DeviceTable*>(self);
    return guarded(table.host_.table(), [&] { body(table.devices_); });
  }

  static std::int32_t properties(void* self, DLDevice device, TenonDeviceProperties* into) noexcept {
    return call(self, [&](Devices& d) {
      const DeviceProperties told = d.properties(device);
      std::memset(into->name, 0, sizeof into->name);
      told.name.copy(into->name, sizeof into->name - 1);
      into->memory_bytes = told.memory_bytes;
      into->alignment = told.alignment;
      if (!TENON_COVERS(into, kind)) return;  // of a host that is older
      std::memset(into->kind, 0, sizeof into->kind);
      told.kind.copy(into->kind, sizeof into->kind - 1);
    });
  }
  static std::int32_t allocate(void* self, DLDevice device, std::size_t bytes, void* stream, void** memory) noexcept {
    return call(self, [&](Devices& d) { *memory = d.allocate(device, bytes, stream); });
  }
  static std::int32_t release(void* self, DLDevice device, void* memory, std::size_t bytes, void* stream) noexcept {
    return call(self, [&](Devices& d) { d.release(device, memory, bytes, stream); });
  }
  static std::int32_t copy(void* self, const TenonDeviceCopy* copy, void* stream) noexcept {
    return call(self, [&](Devices& d) { d.copy(*copy, stream); });
  }
  static std::int32_t create_stream(void* self, DLDevice device, void** stream) noexcept {
    return call(self, [&](Devices& d) { *stream = d.create_stream(device); });
  }
  static std::int32_t destroy_stream(void* self, DLDevice device, void* stream) noexcept {
    return call(self, [&](Devices& d) { d.destroy_stream(device, stream); });
  }
  static std::int32_t record(void* self, DLDevice device, void* stream, void** event) noexcept {
    return call(self, [&](Devices& d) { *event = d.record(device, stream, *event); });
  }
  static std::int32_t wait(void* self, DLDevice device, void* stream, void* event) noexcept {
    return call(self, [&](Devices& d) { d.wait(device, stream, event); });
  }
  static std::int32_t query(void* self, DLDevice device, void* event) noexcept {
    bool reached = false;
    const std::int32_t code = call(self, [&](Devices& d) { reached = d.query(device, event); });
    return code != TENON_OK || reached ? code : TENON_NOT_READY;
  }
  static std::int32_t synchronise(void* self, DLDevice device, void* event) noexcept {
    return call(self, [&](Devices& d) { d.synchronise(device, event); });
  }
  static std::int32_t release_event(void* self, DLDevice device, void* event) noexcept {
    return call(self, [&](Devices& d) { d.release_event(device, event); });
  }

  HostServices host_;
  Devices& devices_;
  TenonDeviceTable table_{};
};

}  // namespace detail
}  // namespace tenon
