#include "devices.h"

#include <cstring>
#include <vector>

namespace tenon::mock {
namespace {

/// How far a stream had been given work.
struct Event {
  Stream* stream = nullptr;
  std::uint64_t count = 0;
};

Event& event_of(void* event) { return *static_cast<Event*>(event); }
bool is_host(DLDevice device) { return device.device_type == kDLCPU; }

}  // namespace

MockDevices& MockDevices::get() {
  static MockDevices& devices = *new MockDevices;
  return devices;
}

void MockDevices::fail_call(std::int64_t n, TenonCode code) {
  code_ = code;
  fails_ = n >= 0;
  calls_left_ = n;
}

void MockDevices::count_call(const char* name) {
  if (fails_ && calls_left_.fetch_sub(1) == 0) throw Failure(code_, std::string("the mock device was told to fail here: ") + name);
}

Stream& MockDevices::stream_of(DLDevice device, void* stream) {
  const std::lock_guard lock(mutex_);
  if (stream) return *streams_.at(stream);
  std::unique_ptr<Stream>& found = default_streams_[device.device_id];
  if (!found) found = std::make_unique<Stream>(lateness);
  return *found;
}

DeviceProperties MockDevices::properties(DLDevice device) { return {"mock device " + std::to_string(device.device_id), memory_.bytes(), 256, "mock"}; }

void* MockDevices::allocate(DLDevice, std::size_t bytes, void*) {
  count_call("allocate");
  return memory_.allocate(bytes);
}

void MockDevices::release(DLDevice device, void* memory, std::size_t bytes, void* stream) {
  count_call("release");
  memory_.reach(memory);
  stream_of(device, stream).give([this, memory, bytes] { memory_.release(memory, bytes); });
}

void MockDevices::copy(const TenonDeviceCopy& copy, void* stream) {
  count_call("copy");
  const bool from_host = is_host(copy.from_device), to_host = is_host(copy.to_device);
  Stream& given = stream_of(from_host ? copy.to_device : copy.from_device, stream);
  std::byte* to = to_host ? static_cast<std::byte*>(copy.to) : memory_.reach(copy.to, copy.bytes);
  if (from_host) {
    const auto* bytes = static_cast<const std::byte*>(copy.from);
    given.give([to, kept = std::vector<std::byte>(bytes, bytes + copy.bytes)] { std::memcpy(to, kept.data(), kept.size()); });
    return;
  }
  given.give([to, from = memory_.reach(copy.from, copy.bytes), bytes = copy.bytes] { std::memmove(to, from, bytes); });
}

void* MockDevices::create_stream(DLDevice) {
  count_call("create_stream");
  auto made = std::make_unique<Stream>(lateness);
  void* handle = made.get();
  const std::lock_guard lock(mutex_);
  streams_[handle] = std::move(made);
  return handle;
}

void MockDevices::destroy_stream(DLDevice, void* stream) {
  std::unique_ptr<Stream> ended;
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) throw Failure(TENON_INVALID_ARGUMENT, "no stream of the mock device");
  ended = std::move(found->second);
  streams_.erase(found);
}

void* MockDevices::record(DLDevice device, void* stream, void* event) {
  count_call("record");
  Stream& given = stream_of(device, stream);
  if (!event) event = new Event;
  event_of(event) = {&given, given.given()};
  return event;
}

void MockDevices::wait(DLDevice device, void* stream, void* event) {
  count_call("wait");
  stream_of(device, stream).give([point = event_of(event)] { point.stream->wait(point.count); });
}

bool MockDevices::query(DLDevice, void* event) {
  count_call("query");
  return event_of(event).stream->is_done(event_of(event).count);
}

void MockDevices::synchronise(DLDevice, void* event) {
  count_call("synchronise");
  event_of(event).stream->wait(event_of(event).count);
}

void MockDevices::release_event(DLDevice, void* event) { delete &event_of(event); }

void MockDevices::drain() {
  std::vector<Stream*> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [index, stream] : default_streams_) all.push_back(stream.get());
    for (const auto& [handle, stream] : streams_) all.push_back(stream.get());
  }
  for (Stream* stream : all) stream->wait(stream->given());
}

}  // namespace tenon::mock
