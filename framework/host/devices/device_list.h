// The devices of a session: the host, and those that its backends have opened.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "host/devices/host_memory.h"
#include "host/devices/table_device.h"
#include "host/diagnostics/events.h"

namespace tenon::host {

/// Thread-safe. Devices live as long as the list.
class DeviceList {
 public:
  explicit DeviceList(Events& events) : events_(events) {}

  /// Opens the devices of a backend plugin, once. One that is there already, from another plugin, stays. What fails is an event and a warning.
  void open(const Plugin& plugin);
  /// Has memory and streams of a device come from the driver. Throws (invalid_argument) once the device has given memory.
  void set_driver(const TenonDriverDevice& driver);

  /// Throws (not_found), saying which devices there are.
  Device& get(DLDevice device);
  /// By the word of its kind and its number ("cuda:1"; the first without a number), or by DLPack's number ("device9:0"). Throws likewise.
  Device& named(std::string_view name);
  /// How messages name it, whether it is open or not.
  std::string name_of(DLDevice device) const;
  static Device& host() { return HostMemory::get(); }

  /// What an open plugin brings, in words: its devices, or why there is none.
  std::vector<std::string> words_of(const Plugin& plugin) const;
  /// [{device, plugin, name, memory_bytes, alignment, driver}]
  nlohmann::json describe() const;

 private:
  // With the lock.
  Device* find(DLDevice device);  // null for one that nobody has opened
  [[noreturn]] void refuse(std::string_view name) const;

  Events& events_;
  mutable std::mutex mutex_;
  std::vector<const Plugin*> opened_;
  std::map<std::string, std::string> why_none_;  // by plugin that brings no device: what it says of that
  std::vector<std::unique_ptr<TableDevice>> devices_;
  std::vector<TenonDriverDevice> drivers_;
};

}  // namespace tenon::host
