// The process's threads: one TBB arena behind every parallel loop of the host and of the plugins, or the threads of the OpenMP runtime that
// the program uses beside us.
#pragma once

#include <cstdint>

namespace tenon::host {

using LoopBody = void (*)(void* context, std::int64_t first, std::int64_t last);

/// Runs body(context, first, last) over disjoint parts of [begin, end), each of at least `grain` iterations (the last may be
/// smaller), on the process's threads and the calling one; returns when all have run. May be called from inside itself and from
/// several threads. The body must not throw. A range of at most one grain runs inline. The floating-point flags that the parts set
/// are set in the calling thread afterwards, as if it had run them all.
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, LoopBody body, void* context);

/// Threads that a loop may use, the caller included.
int thread_count();

/// Sets the number of threads; 0 means as many as regions of the program's OpenMP runtime use in the calling thread, where it is shared
/// (torch.set_num_threads sets that), else as many as the machine has (as this process may use). Loops that run keep what they have.
void set_thread_count(int count);

/// Runs loops on the threads of the program's OpenMP runtime from now on, where it has loaded one and that uses as many threads as we do:
/// two pools on the same cores keep each other from running. Not in a child after fork, where those threads do not exist.
void share_openmp_threads();

/// Parallel loop over a callable: body(first, last).
template <class Body>
void parallel_loop(std::int64_t begin, std::int64_t end, std::int64_t grain, const Body& body) {
  parallel_for(
      begin, end, grain, [](void* context, std::int64_t first, std::int64_t last) { (*static_cast<const Body*>(context))(first, last); },
      const_cast<Body*>(&body));
}

}  // namespace tenon::host
