#include "test_memory.h"

#include <algorithm>
#include <cstring>
#include <exception>

namespace tenon::conformance {
namespace {

constexpr std::size_t kMargin = 256;
constexpr std::byte kMark{0x5c};

}  // namespace

TestMemory::TestMemory(const DeviceUnderTest* device, std::size_t size, std::size_t misalignment, GuardedMemory::Start start)
    : device_(device && !device->is_host() ? device : nullptr), host_(size, misalignment, start) {
  if (!device_) return;
  begin_ = kMargin + misalignment;
  whole_ = begin_ + size + kMargin;
  block_ = {device_->allocate(whole_), Release{device_, whole_}};
}

void TestMemory::Release::operator()(void* block) const {
  try {
    device->release(block, bytes);
  } catch (const std::exception&) {
    // A device that does not even take memory back has failed a run before.
  }
}

void TestMemory::send() {
  if (!device_) return;
  std::vector<std::byte> bytes(whole_, kMark);
  if (size()) std::memcpy(bytes.data() + begin_, data(), size());
  device_->write(block_.get(), bytes);
}

std::vector<std::byte> TestMemory::whole_block() const {
  std::vector<std::byte> bytes(whole_);
  device_->read(block_.get(), bytes);
  return bytes;
}

bool TestMemory::margins_intact(std::span<const std::byte> block) const {
  const auto is_mark = [](std::byte b) { return b == kMark; };
  return std::ranges::all_of(block.first(begin_), is_mark) && std::ranges::all_of(block.subspan(begin_ + size()), is_mark);
}

void TestMemory::fetch() {
  if (!device_) return;
  const std::vector<std::byte> block = whole_block();
  if (size()) std::memcpy(data(), block.data() + begin_, size());
  margins_intact_ = margins_intact(block);
}

bool TestMemory::holds(std::span<const std::byte> bytes) const {
  if (!device_) return host_.intact() && std::ranges::equal(bytes, std::span(data(), size()));
  const std::vector<std::byte> block = whole_block();
  return margins_intact(block) && std::ranges::equal(bytes, std::span(block).subspan(begin_, size()));
}

}  // namespace tenon::conformance
