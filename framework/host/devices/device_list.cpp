#include "host/devices/device_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/abi/struct_size.h"
#include "host/diagnostics/failure.h"
#include "host/plugins/contact/plugin_call.h"
#include "host/plugins/registry/backend_instance.h"

namespace tenon::host {
namespace {

constexpr std::size_t kMostDevices = 1024;

/// What is wrong with a table; empty when nothing is.
std::string defect_of(const TenonDeviceTable* table) {
  if (!table) return "it says that it has opened its devices, and gives no table";
  if (!TENON_COVERS(table, release_event)) return fmt::format("its table of devices has {} bytes; the host needs {}", table->struct_size, TENON_SIZE_THROUGH(TenonDeviceTable, release_event));
  if (table->device_count > kMostDevices) return fmt::format("it says that it has {} devices", table->device_count);
  if (table->device_count && !table->devices) return "it announces devices and names none";
  const std::pair<const char*, bool> functions[] = {{"properties", table->properties}, {"allocate", table->allocate}, {"release", table->release}, {"copy", table->copy},
                                                    {"create_stream", table->create_stream}, {"destroy_stream", table->destroy_stream}, {"record", table->record},
                                                    {"wait", table->wait}, {"query", table->query}, {"synchronise", table->synchronise}, {"release_event", table->release_event}};
  for (const auto& [name, there] : functions)
    if (!there) return fmt::format("the function \"{}\" of its table of devices is null", name);
  for (std::size_t i = 0; i < table->device_count; ++i)
    if (is_host(table->devices[i])) return "its table of devices names the host";
  return {};
}

}  // namespace

void DeviceList::open(const Plugin& plugin) {
  const TenonBackend& backend = *plugin.descriptor->backend;
  if (!TENON_COVERS(&backend, open_devices) || !backend.open_devices) return;
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(opened_, &plugin) != opened_.end()) return;
  opened_.push_back(&plugin);
  const TenonDeviceTable* table = nullptr;
  take_report();
  const std::int32_t code = call_plugin(plugin.watched(), "open_devices", [&] { return backend.open_devices(plugin.table, &table); });
  std::string problem = code == TENON_OK ? defect_of(table) : plugin_error(code, "open_devices").message;
  if (problem.empty() && table->device_count == 0) {
    const std::optional<Report> why = take_report();
    why_none_[plugin.name] = why && !why->text.empty() ? why->text : "it does not say why";
  }
  for (std::size_t i = 0; problem.empty() && i < table->device_count; ++i) {
    const DLDevice id = table->devices[i];
    if (find(id)) continue;
    const auto driver = std::ranges::find_if(drivers_, [&](const TenonDriverDevice& d) { return same_device(d.device, id); });
    try {
      devices_.push_back(std::make_unique<TableDevice>(plugin, *table, id, driver == drivers_.end() ? nullptr : &*driver));
    } catch (const Exception& refused) {
      problem = refused.what();
    }
  }
  if (problem.empty()) return;
  why_none_[plugin.name] = problem;
  const std::string text = fmt::format("the devices of backend '{}' cannot be used: {}", plugin.name, problem);
  events_.emit({{"kind", "devices_failed"}, {"phase", "create"}, {"backend", plugin.name}, {"text", text}});
  events_.warn_once("plugins", text);
}

void DeviceList::set_driver(const TenonDriverDevice& driver) {
  const std::lock_guard lock(mutex_);
  if (const auto open = std::ranges::find_if(devices_, [&](const auto& known) { return same_device(known->id(), driver.device); }); open != devices_.end())
    TENON_USER_CHECK((*open)->take_driver(driver), "the driver's functions for {} come too late: its memory is in use", (*open)->name());
  std::erase_if(drivers_, [&](const TenonDriverDevice& d) { return same_device(d.device, driver.device); });
  drivers_.push_back(driver);
}

Device* DeviceList::find(DLDevice device) {
  if (is_host(device)) return &host();
  const auto found = std::ranges::find_if(devices_, [&](const auto& known) { return same_device(known->id(), device); });
  return found == devices_.end() ? nullptr : found->get();
}

Device& DeviceList::get(DLDevice device) {
  const std::lock_guard lock(mutex_);
  if (Device* found = find(device)) return *found;
  refuse(number_text(device));
}

Device& DeviceList::named(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const std::string whole = name.find(':') == std::string_view::npos ? fmt::format("{}:0", name) : std::string(name);
  if (whole == host().name() + ":0") return host();
  for (const auto& device : devices_)
    if (whole == device->name() || whole == number_text(device->id())) return *device;
  refuse(name);
}

void DeviceList::refuse(std::string_view name) const {
  std::string known = host().name();
  for (const auto& device : devices_) known += ", " + device->name();
  throw Exception(Code::not_found, fmt::format("no backend that is loaded brings the memory of {}; there is: {}", name, known));
}

std::string DeviceList::name_of(DLDevice device) const {
  const std::lock_guard lock(mutex_);
  for (const auto& open : devices_)
    if (open->id().device_type == device.device_type && *open->properties().kind) return fmt::format("{}:{}", open->properties().kind, device.device_id);
  return number_text(device);
}

std::vector<std::string> DeviceList::words_of(const Plugin& plugin) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> words;
  for (const auto& device : devices_)
    if (device->plugin() == plugin.name) words.push_back(fmt::format("brings {}: {}", device->name(), device->properties().name));
  if (const auto why = why_none_.find(plugin.name); why != why_none_.end()) words.push_back("brings no device: " + why->second);
  return words;
}

nlohmann::json DeviceList::describe() const {
  const std::lock_guard lock(mutex_);
  nlohmann::json all = nlohmann::json::array();
  for (const auto& device : devices_) {
    const TenonDeviceProperties& properties = device->properties();
    all.push_back({{"device", device->name()}, {"plugin", device->plugin()}, {"name", properties.name}, {"memory_bytes", properties.memory_bytes},
                   {"alignment", properties.alignment}, {"driver", device->has_driver()}});
  }
  return all;
}

}  // namespace tenon::host
