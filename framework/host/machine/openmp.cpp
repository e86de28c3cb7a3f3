#include "host/machine/openmp.h"

#include <dlfcn.h>

namespace tenon::host {
namespace {

template <class Function>
bool look_up(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

}  // namespace

const OpenMp* OpenMp::find() {
  OpenMp candidate;
  const bool complete = look_up(candidate.parallel_, "GOMP_parallel") && look_up(candidate.max_threads_, "omp_get_max_threads") &&
                        look_up(candidate.in_parallel_, "omp_in_parallel") && look_up(candidate.thread_number_, "omp_get_thread_num");
  if (!complete) return nullptr;
  static const OpenMp kept = candidate;
  return &kept;
}

}  // namespace tenon::host
