// The driver's library, opened when it is first asked for.
#pragma once

#include <string>

#include "driver/functions.h"

namespace tenon::cuda {

/// One function of the driver. A call throws a Failure where the function fails, with the driver's own words.
template <class... Parameters>
class DriverFunction {
 public:
  explicit DriverFunction(const char* name) : name_(name) {}

  void operator()(Parameters... arguments) const { check(function_(arguments...)); }
  /// What the function gave: for those whose failures are answers.
  CUresult code(Parameters... arguments) const { return function_(arguments...); }
  void check(CUresult code) const;

  /// Whether the library has it.
  bool find(void* library);
  bool is_there() const { return function_ != nullptr; }

 private:
  const char* name_;
  CUresult (*function_)(Parameters...) = nullptr;
};

/// One a process; it is never closed.
class Driver {
 public:
  /// Opens libcuda.so.1 and initialises it, once. Where that fails, `why_not` says why, and nothing may be called.
  static const Driver& get();

  const std::string& why_not() const { return why_not_; }
  /// The versions of CUDA that it knows, up to: 13000 is 13.0.
  int version() const { return version_; }
  std::string words_of(CUresult code) const;

#define TENON_CUDA_MEMBER(member, name, ...) DriverFunction<__VA_ARGS__> member{#name};
  TENON_CUDA_FUNCTIONS(TENON_CUDA_MEMBER)
  TENON_CUDA_NEWER_FUNCTIONS(TENON_CUDA_MEMBER)  // ask them whether they are there
#undef TENON_CUDA_MEMBER

 private:
  Driver();
  std::string open();

  int version_ = 0;  // before what opening gives, which sets it
  std::string why_not_;
};

/// Throws the Failure that a code of the driver stands for.
[[noreturn]] void throw_failure(const char* function, CUresult code);

template <class... Parameters>
void DriverFunction<Parameters...>::check(CUresult code) const {
  if (code != kSuccess) throw_failure(name_, code);
}

}  // namespace tenon::cuda
