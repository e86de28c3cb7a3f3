#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tenon/host_services.h"

namespace tenon::mock {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kMargin = 256;  // before and behind each block
constexpr int kMarginMark = 0xa5, kFreshMark = 0xcd, kFreedMark = 0xdd;
constexpr std::size_t kKeptPages = std::size_t{1} << 20;  // larger blocks give their pages back

std::size_t rounded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Memory::Memory(std::size_t bytes) : bytes_(bytes) {
  const int file = memfd_create("mock_device", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) throw Failure(TENON_OUT_OF_MEMORY, "no memory for the mock device");
  void* seen = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  void* own = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (seen == MAP_FAILED || own == MAP_FAILED) throw Failure(TENON_OUT_OF_MEMORY, "no addresses for the mock device");
  seen_ = static_cast<std::byte*>(seen), own_ = static_cast<std::byte*>(own);
  free_[0] = bytes;
}

Memory::~Memory() {
  munmap(seen_, bytes_);
  munmap(own_, bytes_);
}

void* Memory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t whole = rounded(bytes) + 2 * kMargin;
  const auto found = std::ranges::find_if(free_, [&](const auto& range) { return range.second >= whole; });
  if (found == free_.end()) throw Failure(TENON_OUT_OF_MEMORY, "the mock device has no " + std::to_string(bytes) + " bytes");
  const auto [offset, size] = *found;
  free_.erase(found);
  if (size > whole) free_[offset + whole] = size - whole;
  const std::size_t first = offset + kMargin;
  used_[first] = bytes;
  std::memset(own(offset), kMarginMark, whole);
  std::memset(own(first), kFreshMark, bytes);
  return seen_ + first;
}

void Memory::release(void* address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto first = static_cast<std::size_t>(static_cast<std::byte*>(address) - seen_);
  const auto found = used_.find(first);
  if (found == used_.end()) throw Failure(TENON_INVALID_ARGUMENT, "what is released is no block of the mock device");
  if (found->second != bytes) throw Failure(TENON_INVALID_ARGUMENT, "a block of " + std::to_string(found->second) + " bytes is released as " + std::to_string(bytes));
  used_.erase(found);
  std::size_t offset = first - kMargin, whole = rounded(bytes) + 2 * kMargin;
  const auto is_mark = [](std::byte b) { return b == std::byte{kMarginMark}; };
  const bool intact = std::all_of(own(offset), own(first), is_mark) && std::all_of(own(first + bytes), own(offset + whole), is_mark);
  std::memset(own(first), kFreedMark, bytes);
  // Whole pages alone: the kernel rounds the end up, and a neighbour's bytes would become zeros.
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), begin = (offset + page - 1) / page * page, end = (offset + whole) / page * page;
  if (whole > kKeptPages) madvise(own(begin), end - begin, MADV_REMOVE);
  const auto next = free_.find(offset + whole);
  if (next != free_.end()) whole += next->second, free_.erase(next);
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin() && std::prev(after)->first + std::prev(after)->second == offset)
    std::prev(after)->second += whole;
  else
    free_[offset] = whole;
  if (!intact) throw Failure(TENON_PLUGIN_FAILED, "something has written beside a block of " + std::to_string(bytes) + " bytes of the mock device");
}

std::byte* Memory::reach(const void* address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - seen_);
  const auto after = used_.upper_bound(offset);
  const bool inside = after != used_.begin() && offset + bytes <= std::prev(after)->first + std::max<std::size_t>(std::prev(after)->second, 1);
  if (!inside) throw Failure(TENON_INVALID_ARGUMENT, "an address that is given to the mock device is none of its memory that is in use");
  return own(offset);
}

std::size_t Memory::used_blocks() const {
  const std::lock_guard lock(mutex_);
  return used_.size();
}

}  // namespace tenon::mock
