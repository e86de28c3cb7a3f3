// Code on a card.
#pragma once

#include <string>

#include "driver/driver.h"

namespace tenon::cuda {

/// Kernels on a card, from machine code (a cubin) or from PTX, which the driver compiles. Work that runs it is waited for before the code goes.
class Module {
 public:
  /// Throws a Failure with the compiler's own words.
  Module(int ordinal, const std::string& image);
  ~Module();
  Module(const Module&) = delete;

  /// For launches that give each block so many bytes of shared memory.
  CUfunction function(const std::string& name, unsigned shared_bytes = 0) const;

 private:
  int ordinal_;
  CUmodule module_ = nullptr;
};

}  // namespace tenon::cuda
