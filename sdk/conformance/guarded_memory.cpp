#include "guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace tenon::conformance {
namespace {

constexpr std::uintptr_t kAlignment = 64;
constexpr std::byte kPattern{0x5c};

std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::byte* map(std::size_t bytes) {
  void* mapping = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(mapping);
}

}  // namespace

void GuardedMemory::Unmap::operator()(std::byte* mapping) const { munmap(mapping, bytes); }

GuardedMemory::GuardedMemory(std::size_t size, std::size_t misalignment, Start start) : mapping_(nullptr, Unmap{0}), size_(size) {
  const std::size_t page = page_size();
  const std::size_t inside = (size + misalignment + kAlignment + page - 1) / page * page;
  const std::size_t whole = inside + 2 * page;
  mapping_ = {map(whole), Unmap{whole}};
  begin_ = mapping_.get() + page;
  end_ = begin_ + inside;
  if (mprotect(begin_, inside, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  std::fill(begin_, end_, kPattern);
  start_ = end_ - size;
  if (start == Start::page_end) return;
  start_ -= misalignment;
  start_ -= reinterpret_cast<std::uintptr_t>(start_) % kAlignment;
  start_ += misalignment;
}

void GuardedMemory::fill(std::byte value) { std::fill_n(start_, size_, value); }

bool GuardedMemory::intact() const {
  const auto is_pattern = [](std::byte b) { return b == kPattern; };
  return std::all_of(begin_, start_, is_pattern) && std::all_of(start_ + size_, end_, is_pattern);
}

}  // namespace tenon::conformance
