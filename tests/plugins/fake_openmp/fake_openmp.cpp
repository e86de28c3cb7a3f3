// An OpenMP runtime of two threads, by the interface of GCC's. It counts its regions, and its second thread comes as late as it is told.
#include <atomic>
#include <chrono>
#include <thread>

namespace {
thread_local int t_number = 0, t_depth = 0;
}

extern "C" {

std::atomic<int> fake_openmp_regions{0}, fake_openmp_late_ms{0};

void GOMP_parallel(void (*body)(void*), void* data, unsigned, unsigned) {
  ++fake_openmp_regions;
  const auto run = [&](int number) {
    t_number = number, ++t_depth;
    body(data);
    --t_depth;
  };
  std::thread second([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(fake_openmp_late_ms));
    run(1);
  });
  run(0);
  second.join();
}
int omp_get_max_threads() { return 2; }
int omp_in_parallel() { return t_depth > 0; }
int omp_get_thread_num() { return t_number; }
}
