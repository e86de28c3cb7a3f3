// No static object of this library is ever destroyed. Threads of the program, or of the library itself, may be in it while the process
// exits: the objects that they use would be destroyed before anything that was registered earlier could wait for them.
#include <dlfcn.h>

/// Takes the place of the C library's in this library alone: registers what std::atexit is given, which comes without an object.
extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*function)(void*), void* object, void* library) {
  if (object) return 0;
  using Register = int (*)(void (*)(void*), void*, void*);
  const auto next = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "__cxa_atexit"));
  return next ? next(function, object, library) : -1;
}
