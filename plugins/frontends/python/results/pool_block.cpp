#include "python/results/pool_block.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>

#include "tenon/host.h"

namespace tenon::python {
namespace {

// In front of the data of a small block; beside a large one, so that a large block keeps its size class and page alignment.
struct alignas(64) Header {
  void* memory;
  std::size_t bytes;  // of the block
  bool separate;
};

constexpr std::size_t kLargeBytes = std::size_t{1} << 20;

PoolBlock take_large(std::size_t bytes) {
  void* memory = tenon_pool_allocate(bytes);
  if (!memory) return {};
  auto* header = new (std::nothrow) Header{memory, bytes, true};
  if (header) return {memory, header};
  tenon_pool_release(memory, bytes);
  return {};
}

/// The headers of large blocks by the address of their memory.
class LargeBlocks {
 public:
  static LargeBlocks& instance() {
    static auto* const blocks = new LargeBlocks();  // outlives static destructors: arrays may be freed at exit
    return *blocks;
  }
  void add(void* data, Header* header) {
    const std::lock_guard lock(mutex_);
    headers_.emplace(data, header);
  }
  Header* find(void* data, bool forget) {
    const std::lock_guard lock(mutex_);
    const auto found = headers_.find(data);
    if (found == headers_.end()) return nullptr;
    Header* header = found->second;
    if (forget) headers_.erase(found);
    return header;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, Header*> headers_;
};

/// `forget`: the block is about to be given back.
Header* header_at(void* data, bool forget) {
  constexpr std::uintptr_t kPage = 4096;  // at whose multiples large blocks begin
  if (reinterpret_cast<std::uintptr_t>(data) % kPage == 0)
    if (Header* header = LargeBlocks::instance().find(data, forget)) return header;
  return static_cast<Header*>(data) - 1;
}

}  // namespace

PoolBlock take_pool_block(std::size_t bytes) {
  if (bytes >= kLargeBytes) return take_large(bytes);
  const std::size_t all = bytes + sizeof(Header);
  void* memory = tenon_pool_allocate(all);
  if (!memory) return {};
  auto* header = new (memory) Header{memory, all, false};
  return {header + 1, header};
}

void release_pool_block(void* context) {
  auto* header = static_cast<Header*>(context);
  const Header copy = *header;  // the header of a small block goes with the block
  if (copy.separate) delete header;
  tenon_pool_release(copy.memory, copy.bytes);
}

void* take_addressed_memory(std::size_t bytes) {
  const PoolBlock block = take_pool_block(bytes);
  if (!block.data || !static_cast<Header*>(block.context)->separate) return block.data;
  try {
    LargeBlocks::instance().add(block.data, static_cast<Header*>(block.context));
    return block.data;
  } catch (const std::bad_alloc&) {
    release_pool_block(block.context);
    return nullptr;
  }
}

void release_addressed_memory(void* data) { release_pool_block(header_at(data, true)); }

std::size_t bytes_of_addressed_memory(void* data) {
  const Header* header = header_at(data, false);
  return header->separate ? header->bytes : header->bytes - sizeof(Header);
}

}  // namespace tenon::python
