#include "device_under_test.h"

#include <algorithm>
#include <memory>

#include "backend_under_test.h"
#include "core/abi/struct_size.h"
#include "kit_host.h"

namespace tenon::conformance {
namespace {

template <class Call>
void require(const char* function, const Call& body) {
  const std::int32_t code = body();
  const auto report = take_report();
  if (code != TENON_OK) throw BackendFailure(fmt::format("{} of the table of devices failed: {}", function, report ? report->text : "without a report"));
}

bool serves(const TenonBackend& backend, DLDevice device) {
  return std::any_of(backend.devices, backend.devices + backend.device_count,
                     [&](DLDevice named) { return named.device_type == device.device_type && (named.device_id == -1 || named.device_id == device.device_id); });
}

}  // namespace

DeviceUnderTest::DeviceUnderTest(const TenonBackend& backend) {
  if (serves(backend, id_)) return;
  if (!TENON_COVERS(&backend, open_devices) || !backend.open_devices) throw BackendFailure("it does not serve the host, and brings no table of devices");
  require("open_devices", [&] { return backend.open_devices(&kit_host(), &table_); });
  if (!table_) throw BackendFailure("open_devices gave no table");
  if (table_->device_count == 0) {  // what it runs on is not there: it is asked about the host, which it does not serve
    table_ = nullptr;
    return;
  }
  const auto* end = table_->devices + table_->device_count;
  const auto* found = std::find_if(table_->devices, end, [&](DLDevice device) { return serves(backend, device); });
  if (found == end) throw BackendFailure("its table has no device that it serves");
  id_ = *found;
}

const DeviceUnderTest& DeviceUnderTest::host() {
  static const DeviceUnderTest device;
  return device;
}

void* DeviceUnderTest::allocate(std::size_t bytes) const {
  void* memory = nullptr;
  require("allocate", [&] { return table_->allocate(table_->self, id_, bytes, nullptr, &memory); });
  if (!memory) throw BackendFailure("allocate of the table of devices gave no memory");
  return memory;
}

void DeviceUnderTest::release(void* memory, std::size_t bytes) const {
  require("release", [&] { return table_->release(table_->self, id_, memory, bytes, nullptr); });
}

void DeviceUnderTest::copy(const TenonDeviceCopy& copy) const {
  require("copy", [&] { return table_->copy(table_->self, &copy, nullptr); });
  synchronise();
}

void DeviceUnderTest::write(void* to, std::span<const std::byte> bytes) const {
  if (!bytes.empty()) copy({sizeof(TenonDeviceCopy), to, bytes.data(), id_, {kDLCPU, 0}, bytes.size()});
}

void DeviceUnderTest::read(const void* from, std::span<std::byte> bytes) const {
  if (!bytes.empty()) copy({sizeof(TenonDeviceCopy), bytes.data(), from, {kDLCPU, 0}, id_, bytes.size()});
}

void DeviceUnderTest::synchronise() const {
  if (is_host()) return;
  void* event = nullptr;
  require("record", [&] { return table_->record(table_->self, id_, nullptr, &event); });
  const auto ended = [this](void* e) { table_->release_event(table_->self, id_, e); };
  const std::unique_ptr<void, decltype(ended)> owned(event, ended);
  require("synchronise", [&] { return table_->synchronise(table_->self, id_, event); });
}

}  // namespace tenon::conformance
