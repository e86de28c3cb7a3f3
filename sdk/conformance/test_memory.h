// Memory that a backend is given: where its device reaches it, and a copy of it that the kit reads.
#pragma once

#include <memory>
#include <vector>

#include "device_under_test.h"
#include "guarded_memory.h"

namespace tenon::conformance {

/// On the host the two are one. On a device the block lies between margins that show whether someone wrote beside it; `send` and `fetch`
/// carry the bytes over.
class TestMemory {
 public:
  /// `device` null: the host.
  explicit TestMemory(const DeviceUnderTest* device, std::size_t size, std::size_t misalignment = 0, GuardedMemory::Start start = GuardedMemory::Start::aligned);

  /// The kit's copy.
  std::byte* data() { return host_.data(); }
  const std::byte* data() const { return host_.data(); }
  std::size_t size() const { return host_.size(); }
  void fill(std::byte value) { host_.fill(value); }

  /// What the backend is given.
  void* address() const { return device_ ? static_cast<std::byte*>(block_.get()) + begin_ : const_cast<std::byte*>(host_.data()); }

  /// Brings the kit's copy to the device, with fresh margins.
  void send();
  /// Brings the device's bytes to the kit's copy.
  void fetch();
  /// Whether the block, where the backend reaches it, holds these bytes, and those around it are as they were.
  bool holds(std::span<const std::byte> bytes) const;
  /// Whether the bytes around the block were as they had been when it was fetched last.
  bool intact() const { return host_.intact() && margins_intact_; }

 private:
  /// The device's block with its margins.
  std::vector<std::byte> whole_block() const;
  bool margins_intact(std::span<const std::byte> block) const;

  const DeviceUnderTest* device_;
  GuardedMemory host_;
  std::size_t begin_ = 0, whole_ = 0;  // of the device's block
  struct Release {
    const DeviceUnderTest* device;
    std::size_t bytes;
    void operator()(void* block) const;
  };
  std::unique_ptr<void, Release> block_{nullptr, Release{}};
  bool margins_intact_ = true;
};

}  // namespace tenon::conformance
