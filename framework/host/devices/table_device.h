// A device of a backend's table, with the driver's allocator and streams where it brings some.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/device.h"
#include "host/devices/device.h"
#include "host/plugins/registry/registry.h"
#include "tenon/host.h"

namespace tenon::host {

class TableDevice final : public Device {
 public:
  /// The table and the plugin live as long as the device. With a driver, memory and the current stream come from it. Throws (plugin_failed)
  /// for a table that does not know the device.
  TableDevice(const Plugin& plugin, const TenonDeviceTable& table, DLDevice id, const TenonDriverDevice* driver);
  ~TableDevice() override;

  const std::string& plugin() const { return plugin_.name; }
  const TenonDeviceProperties& properties() const { return properties_; }
  bool has_driver() const { return driver_ != nullptr; }
  /// Has memory and the current stream come from the driver from now on; false where memory has been given already.
  bool take_driver(const TenonDriverDevice& driver);

  void* current_stream() override;
  void require_usable() const override;
  void lose(const std::string& why) override;
  std::uint64_t memory_bytes() const override { return properties_.memory_bytes; }
  void* allocate(std::size_t bytes, void* stream) override;
  void release(void* memory, std::size_t bytes, void* stream) noexcept override;
  void copy(void* to, DLDevice to_device, const void* from, DLDevice from_device, std::size_t bytes, void* stream) override;
  bool reaches(const Device& other) const override;
  void* record(void* stream) override;
  void hold_up(void* stream, void* event) override;
  void wait_for(void* event) override;
  void release_event(void* event) noexcept override;

 private:
  template <class Call>
  std::int32_t call(const char* function, const Call& body) const;
  /// Throws what the plugin reported.
  [[noreturn]] void fail(std::int32_t code, const char* function);

  const Plugin& plugin_;
  const TenonDeviceTable& table_;
  TenonDeviceProperties properties_{};
  std::atomic<const TenonDriverDevice*> driver_{nullptr};  // &given_driver_, once it is filled
  TenonDriverDevice given_driver_{};
  std::atomic<bool> has_given_memory_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::vector<void*> idle_events_;
  std::string lost_;
  std::atomic<bool> is_lost_{false};
};

}  // namespace tenon::host
