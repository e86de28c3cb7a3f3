/* What profilers see of plugins: ranges of time on a thread, and machine code by name. The host's extension "profiling" (TenonHost.feature) is a
   TenonProfiling; a host without it gives null. It lasts as long as the process, and its functions are callable on every thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TenonProfiling {
  size_t struct_size;
  /* Non-zero while somebody takes ranges, or code: to be read (relaxed) before anything is made to tell it. They never move. */
  const int32_t* takes_ranges;
  const int32_t* takes_code;
  /* A range begins on this thread, inside those that have begun and not ended. Copied at once. `place` is "file:line" of the user's program, or empty. */
  void (*begin)(const char* name, const char* place);
  /* The innermost range of this thread ends. One that began before anybody listened may be ended, too. */
  void (*end)(void);
  /* Code that may run from now on: `bytes` at `code`, made of line `line` of `file` (empty where that is not known). Copied at once. */
  void (*tell_code)(const char* name, const void* code, size_t bytes, const char* file, int32_t line);
} TenonProfiling;

#ifdef __cplusplus
}
#endif
