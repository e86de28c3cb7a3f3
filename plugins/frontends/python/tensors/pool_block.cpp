#include "python/tensors/pool_block.h"

#include <cstdlib>
#include <new>

#include "tenon/host.h"

namespace tenon::python {
namespace {

// In front of the data of a small block; beside a large one, so that a large block keeps its size class and page alignment.
struct alignas(64) Header {
  void* memory;
  std::size_t bytes;
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

}  // namespace tenon::python
