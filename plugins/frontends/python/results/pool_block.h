// Memory of the host's page-warm pool that knows its own size, as deleters need it.
#pragma once

#include <cstddef>

namespace tenon::python {

/// One block of pool memory, to be given back by `release`.
struct PoolBlock {
  void* data = nullptr;     // 64-byte aligned
  void* context = nullptr;  // for `release`
};

/// Takes a block of at least `bytes`; `data` is null when there is no memory. Callable without the GIL.
PoolBlock take_pool_block(std::size_t bytes);

/// Gives a block back. Has the signature of a c10 deleter; may run on any thread, without the GIL.
void release_pool_block(void* context);

/// Takes memory that is given back by its address alone; null when there is none.
void* take_addressed_memory(std::size_t bytes);

/// Gives it back. Both may run on any thread, without the GIL.
void release_addressed_memory(void* data);

/// The bytes that were asked for.
std::size_t bytes_of_addressed_memory(void* data);

}  // namespace tenon::python
