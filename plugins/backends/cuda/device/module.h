// Code on a card.
#pragma once

#include <string>

#include "driver/driver.h"

namespace tenon::cuda {

/// PTX that the driver has compiled for a card. Work that runs it is waited for before the code goes.
class Module {
 public:
  /// Throws a Failure with the compiler's own words.
  Module(int ordinal, const std::string& ptx);
  ~Module();
  Module(const Module&) = delete;

  CUfunction function(const std::string& name) const;

 private:
  int ordinal_;
  CUmodule module_ = nullptr;
};

}  // namespace tenon::cuda
