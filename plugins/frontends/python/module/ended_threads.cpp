// What happens to a thread that wants the interpreter's lock when the interpreter has ended.
//
// CPython 3.11 to 3.13 ends such a thread with pthread_exit, wherever it is: below any call of Python's, and below whatever gives the lock
// away. That unwinds its stack, and destructors would drop references without the lock, and free what its caller frees, too. Here the
// thread waits for ever instead, as under later versions, at the innermost function of this library that would be unwound.
#include <Python.h>
#include <dlfcn.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdlib>

namespace {

using Personality = _Unwind_Reason_Code (*)(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception*, _Unwind_Context*);

/// The C++ library's, which unwinds the functions of all other libraries.
Personality next_personality() {
  static const auto found = reinterpret_cast<Personality>(dlsym(RTLD_NEXT, "__gxx_personality_v0"));
  if (!found) std::abort();
  return found;
}

}  // namespace

/// Takes the place of the C++ library's in this library alone.
extern "C" __attribute__((visibility("hidden"))) _Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                                                         _Unwind_Exception* exception, _Unwind_Context* context) {
  while ((actions & _UA_FORCE_UNWIND) != 0 && !Py_IsInitialized()) pause();
  return next_personality()(version, actions, kind, exception, context);
}
