// The OpenMP runtime that the program has loaded beside us (PyTorch brings one), through the interface of GCC's, which all have.
#pragma once

namespace tenon::host {

/// Its threads wait for the next region on their cores, for milliseconds: threads of another pool do not get to run meanwhile. Loops that
/// come between its regions run on its threads.
class OpenMp {
 public:
  /// Finds the runtime among the libraries whose symbols are global, once there is one; null when there is none.
  static const OpenMp* find();

  /// Threads that its regions use; regions of another number would make it start and stop threads.
  int thread_count() const { return max_threads_(); }
  /// True inside of a region: a further one has one thread.
  bool in_region() const { return in_parallel_() != 0; }
  /// Calls body(thread) on each thread of a region, numbered from 0, and waits for all.
  template <class Body>
  void run(int threads, const Body& body) const {
    struct Region {
      const OpenMp& runtime;
      const Body& body;
    } region{*this, body};
    parallel_([](void* data) { static_cast<Region*>(data)->body(static_cast<Region*>(data)->runtime.thread_number_()); }, &region, static_cast<unsigned>(threads), 0);
  }

 private:
  void (*parallel_)(void (*)(void*), void*, unsigned threads, unsigned flags) = nullptr;  // GOMP_parallel, the ABI of GCC's libgomp
  int (*max_threads_)() = nullptr;
  int (*in_parallel_)() = nullptr;
  int (*thread_number_)() = nullptr;
};

}  // namespace tenon::host
