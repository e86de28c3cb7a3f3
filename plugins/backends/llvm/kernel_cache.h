// Compiled kernels by their canonical text: equal kernels compile once a process, or not at all where the host's store has their code.
#pragma once

#include <functional>
#include <span>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "code_store.h"
#include "jit.h"
#include "kernel_run.h"
#include "loops/kernel.h"
#include "lower/kernel_emitter.h"
#include "matrix_code.h"

namespace tenon::llvm_backend {

/// What a program needs of the cache.
struct KernelRequest {
  std::span<const codegen::Kernel* const> kernels;
  const MatrixParts& products;  // what matrix products will be asked for
  const std::function<void(const std::string&)>& listing;  // takes the text and the code of the kernels that are compiled now
  bool swap_tiers = true;  // start with quick code, which better code replaces from the background
};

/// Thread-safe. The new kernels of one call share a module for each thread that compiles.
class KernelCache {
 public:
  /// With another cache, matrix kernels are that one's.
  explicit KernelCache(codegen::Target target, KernelCache* matrices = nullptr) : jit_(std::move(target)), matrix_code_(jit_), matrices_(matrices) {}

  const codegen::Target& target() const { return jit_.target(); }

  /// Compiles what is not known yet, on the host's threads. The code lives as long as the cache.
  std::vector<const KernelCode*> kernels(const HostServices& host, const KernelRequest& request);
  /// The code of matrix products in float32 or float64: the parts of that dtype.
  MatrixKernel matrix_kernel(const HostServices& host, DType dtype, const MatrixParts& parts);

 private:
  struct Batch;
  using Texts = std::span<const std::string>;
  void take_stored(const HostServices& host, const KernelRequest& request, Texts texts);
  std::vector<Batch> new_batches(const KernelRequest& request, Texts texts, std::size_t threads);
  void compile(const HostServices& host, const Batch& batch, const std::function<void(const std::string&)>& listing);
  void improve_later(const HostServices& host, const std::vector<const codegen::Kernel*>& kernels);
  void publish(const std::string& text, void* address);
  void prepare(const HostServices& host, DType dtype, MatrixPart part);

  Jit jit_;
  MatrixCode matrix_code_;
  KernelCache* const matrices_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<KernelCode>> known_;
};

/// The cache for the machine that the process runs on, by limit of vector width in bytes (0: none) and by how NaNs compare. It is never destroyed: plans
/// that outlive the backend object still hold its functions.
KernelCache& kernel_cache(unsigned width, bool quiet_comparisons = false);

}  // namespace tenon::llvm_backend
