#include "host/devices/table_device.h"

#include <algorithm>

#include "host/diagnostics/failure.h"
#include "host/plugins/contact/plugin_call.h"
#include "host/plugins/registry/backend_instance.h"

namespace tenon::host {
namespace {

constexpr std::size_t kMostIdleEvents = 64;

/// A letter, then letters, digits and "_".
bool is_word(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return is_letter(text.front()) && std::ranges::all_of(text, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

TableDevice::TableDevice(const Plugin& plugin, const TenonDeviceTable& table, DLDevice id, const TenonDriverDevice* driver)
    : Device(id), plugin_(plugin), table_(table) {
  if (driver) take_driver(*driver);
  properties_.struct_size = sizeof properties_;
  if (const std::int32_t code = call("properties", [&] { return table_.properties(table_.self, id, &properties_); }); code != TENON_OK) fail(code, "properties");
  properties_.name[sizeof properties_.name - 1] = 0;
  properties_.kind[sizeof properties_.kind - 1] = 0;
  if (const std::string_view kind = properties_.kind; !kind.empty()) {
    if (!is_word(kind)) throw Failure(Code::plugin_failed, TENON_PHASE_EXECUTE, plugin_.name, fmt::format("it calls the kind of {} '{}', which is no word", name(), kind));
    set_name(fmt::format("{}:{}", kind, id.device_id));
  }
}

TableDevice::~TableDevice() {
  for (void* event : idle_events_) call("release_event", [&] { return table_.release_event(table_.self, id(), event); });
}

template <class Call>
std::int32_t TableDevice::call(const char* function, const Call& body) const {
  take_report();
  return call_plugin(plugin_.watched(), function, body);
}

void TableDevice::lose(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = why;
  is_lost_.store(true, std::memory_order_release);
}

void TableDevice::fail(std::int32_t code, const char* function) {
  const Error why = plugin_error(code, function);
  const std::string text = fmt::format("device {} ({}): {}", name(), function, why.message);
  if (why.code == Code::device_lost) lose(text);
  throw Failure(why.code, TENON_PHASE_EXECUTE, plugin_.name, text);
}

void TableDevice::require_usable() const {
  if (!is_lost_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  throw Failure(Code::device_lost, TENON_PHASE_EXECUTE, plugin_.name, lost_);
}

bool TableDevice::take_driver(const TenonDriverDevice& driver) {
  const std::lock_guard lock(mutex_);
  if (has_given_memory_ || driver_) return false;
  given_driver_ = driver;
  driver_ = &given_driver_;
  return true;
}

void* TableDevice::current_stream() {
  const TenonDriverDevice* driver = driver_;
  return driver && driver->current_stream ? driver->current_stream(driver->context, id()) : nullptr;
}

void* TableDevice::allocate(std::size_t bytes, void* stream) {
  bytes = std::max<std::size_t>(bytes, 1);
  void* memory = nullptr;
  if (!has_given_memory_) {
    const std::lock_guard lock(mutex_);  // who brings a driver now is too late
    has_given_memory_ = true;
  }
  if (const TenonDriverDevice* driver = driver_) {
    memory = driver->allocate(driver->context, id(), bytes, stream);
    if (!memory) throw Exception(Code::out_of_memory, fmt::format("the driver gives no memory for {} bytes on {}", bytes, name()));
    return memory;
  }
  if (const std::int32_t code = call("allocate", [&] { return table_.allocate(table_.self, id(), bytes, stream, &memory); }); code != TENON_OK) fail(code, "allocate");
  if (!memory) throw Failure(Code::plugin_failed, TENON_PHASE_EXECUTE, plugin_.name, fmt::format("device {} says that it has given memory, and has given none", name()));
  return memory;
}

void TableDevice::release(void* memory, std::size_t bytes, void* stream) noexcept {
  if (!memory) return;
  bytes = std::max<std::size_t>(bytes, 1);
  if (const TenonDriverDevice* driver = driver_) return driver->release(driver->context, id(), memory, bytes, stream);
  call("release", [&] { return table_.release(table_.self, id(), memory, bytes, stream); });
}

void TableDevice::copy(void* to, DLDevice to_device, const void* from, DLDevice from_device, std::size_t bytes, void* stream) {
  if (bytes == 0) return;
  const TenonDeviceCopy copy{sizeof copy, to, from, to_device, from_device, bytes};
  if (const std::int32_t code = call("copy", [&] { return table_.copy(table_.self, &copy, stream); }); code != TENON_OK) fail(code, "copy");
}

bool TableDevice::reaches(const Device& other) const {
  const auto* beside = dynamic_cast<const TableDevice*>(&other);
  return beside && &beside->table_ == &table_;
}

void* TableDevice::record(void* stream) {
  void* event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_events_.empty()) event = idle_events_.back(), idle_events_.pop_back();
  }
  if (const std::int32_t code = call("record", [&] { return table_.record(table_.self, id(), stream, &event); }); code != TENON_OK) {
    if (event) release_event(event);
    fail(code, "record");
  }
  return event;
}

void TableDevice::hold_up(void* stream, void* event) {
  if (const std::int32_t code = call("wait", [&] { return table_.wait(table_.self, id(), stream, event); }); code != TENON_OK) fail(code, "wait");
}

void TableDevice::wait_for(void* event) {
  if (const std::int32_t code = call("synchronise", [&] { return table_.synchronise(table_.self, id(), event); }); code != TENON_OK) fail(code, "synchronise");
}

void TableDevice::release_event(void* event) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (idle_events_.size() < kMostIdleEvents) return idle_events_.push_back(event);
  }
  call("release_event", [&] { return table_.release_event(table_.self, id(), event); });
}

}  // namespace tenon::host
