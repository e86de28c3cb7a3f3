#include "host/devices/host_memory.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/error.h"
#include "host/machine/memory_pool.h"

namespace tenon::host {

HostMemory& HostMemory::get() {
  static HostMemory& memory = *new HostMemory;
  return memory;
}

std::uint64_t HostMemory::memory_bytes() const {
  static const std::uint64_t bytes = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 1L)) * static_cast<std::uint64_t>(std::max(sysconf(_SC_PAGESIZE), 1L));
  return bytes;
}

void* HostMemory::allocate(std::size_t bytes, void*) {
  void* memory = pool_allocate(bytes);
  if (!memory) throw Exception(Code::out_of_memory, fmt::format("no memory for {} bytes", bytes));
  return memory;
}

void HostMemory::release(void* memory, std::size_t bytes, void*) noexcept { pool_release(memory, bytes); }

}  // namespace tenon::host
