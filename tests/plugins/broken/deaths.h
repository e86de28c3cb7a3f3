// Some ways in which a plugin can take its process along; all of them are in ../faults.
#pragma once

#include <unistd.h>

#include <cstdlib>

namespace deaths {

inline volatile int one = 1;

inline void abort() { std::abort(); }
inline void exit() { std::exit(0); }
inline void hang() {
  while (one) usleep(1000);
}
inline void segfault() { *reinterpret_cast<volatile int*>(0x10) = one; }

}  // namespace deaths
