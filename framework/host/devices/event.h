// One point of a stream, which somebody may wait for.
#pragma once

#include <utility>

#include "host/devices/device.h"

namespace tenon::host {

class Event {
 public:
  Event() = default;
  /// Marks how far the stream has been given work. Throws.
  Event(Device& device, void* stream) : device_(&device), event_(device.record(stream)) {}
  Event(Event&& other) noexcept : device_(std::exchange(other.device_, nullptr)), event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_) device_->release_event(event_);
  }

  /// Whether it marks a point.
  bool is_marked() const { return device_ != nullptr; }
  /// Returns when the point is reached. Throws when the work before it failed.
  void wait() const {
    if (event_) device_->wait_for(event_);
  }
  /// Has later work of a stream, of this device or another that it reaches, wait for the point.
  void hold_up(Device& device, void* stream) const {
    if (event_) device.hold_up(stream, event_);
  }

 private:
  Device* device_ = nullptr;
  void* event_ = nullptr;
};

/// Returns when what the stream was given has run. A device that fails to say so twice is lost, since it might still write to memory of the
/// host that is about to be given back. Throws then.
void drain(Device& device, void* stream);

}  // namespace tenon::host
