// Compiled kernels by their canonical text: equal kernels compile once a process, or not at all where the host's store has their code.
#pragma once

#include <functional>
#include <span>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "code_store.h"
#include "jit.h"
#include "loops/kernel.h"
#include "lower/kernel_emitter.h"
#include "matrix_product.h"

namespace tenon::llvm_backend {

/// Thread-safe. The new kernels of one call share a module for each thread that compiles.
class KernelCache {
 public:
  explicit KernelCache(codegen::Target target) : jit_(std::move(target)) {}

  const codegen::Target& target() const { return jit_.target(); }

  /// Compiles what is not known yet, on the host's threads. `products` are the dtypes of matrix products that will be asked for.
  /// `listing` takes the text and the code of the kernels that are compiled now.
  std::vector<codegen::KernelFunction> kernels(const HostServices& host, const std::vector<const codegen::Kernel*>& wanted, const std::set<DType>& products,
                                               const std::function<void(const std::string&)>& listing);
  /// The code of matrix products in float32 or float64.
  MatrixKernel matrix_kernel(const HostServices& host, DType dtype);

 private:
  struct Batch;
  void take_stored(const CodeStore& store, const std::vector<const codegen::Kernel*>& wanted, std::span<const std::string> texts);
  std::vector<Batch> new_batches(const std::vector<const codegen::Kernel*>& wanted, const std::vector<std::string>& texts, std::size_t threads,
                                 const std::function<void(const std::string&)>& listing);
  void compile(const CodeStore& store, const Batch& batch, const std::function<void(const std::string&)>& listing);
  std::vector<void*> matrix_code(const CodeStore& store, DType dtype, const MatrixKernel& kernel, const std::vector<std::string>& names);

  Jit jit_;
  std::mutex mutex_;
  std::unordered_map<std::string, codegen::KernelFunction> known_;
  std::mutex matrix_mutex_;
  std::map<DType, MatrixKernel> matrix_kernels_;
};

/// The cache for the machine that the process runs on, by limit of vector width in bytes (0: none). It is never destroyed: plans
/// that outlive the backend object still hold its functions.
KernelCache& kernel_cache(unsigned width);

}  // namespace tenon::llvm_backend
