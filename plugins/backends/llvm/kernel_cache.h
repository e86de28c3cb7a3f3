// Compiled kernels by their canonical text: equal kernels compile once a process.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "jit.h"
#include "loops/kernel.h"
#include "lower/kernel_emitter.h"
#include "matrix/microkernel.h"

namespace tenon::llvm_backend {

/// Thread-safe. The new kernels of one call share a module, or two.
class KernelCache {
 public:
  explicit KernelCache(codegen::Target target) : jit_(std::move(target)) {}

  const codegen::Target& target() const { return jit_.target(); }

  /// `listing` takes the text and the code of the kernels that are compiled now.
  std::vector<codegen::KernelFunction> kernels(const std::vector<const codegen::Kernel*>& wanted,
                                               const std::function<void(const std::string&)>& listing);
  codegen::MicroKernel microkernel(DType dtype);

 private:
  struct Batch;
  void compile(const Batch& batch, Tier tier, const std::function<void(const std::string&)>& listing);

  Jit jit_;
  std::mutex mutex_;
  std::unordered_map<std::string, codegen::KernelFunction> known_;
  std::map<DType, codegen::MicroKernel> microkernels_;
  std::size_t count_ = 0;
};

/// The cache for the machine that the process runs on, by limit of vector width in bytes (0: none). It is never destroyed: plans
/// that outlive the backend object still hold its functions.
KernelCache& kernel_cache(unsigned width);

}  // namespace tenon::llvm_backend
