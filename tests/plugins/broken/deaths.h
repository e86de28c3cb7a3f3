// The ways in which a plugin can take its process along.
#pragma once

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

namespace deaths {

inline volatile int one = 1;

inline void throw_exception() {
  if (one) throw std::runtime_error("the plugin is broken");
}
inline void throw_int() {
  if (one) throw 42;
}
inline void abort() { std::abort(); }
inline void exit() { std::exit(0); }
inline void loop() {
  while (one) usleep(1000);
}
inline void segfault() { *reinterpret_cast<volatile int*>(0x10) = one; }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winfinite-recursion"
__attribute__((noinline)) inline int descend(volatile char* outer) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(*outer + 1);
  return descend(frame) + frame[0];
}
#pragma GCC diagnostic pop
inline void overflow_stack() {
  volatile char start = 0;
  descend(&start);
}

}  // namespace deaths
