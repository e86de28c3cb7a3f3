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

#include "stored_code.h"
#include "core/base/error.h"
#include "jit.h"
#include "launch/kernel_run.h"
#include "loops/kernel.h"
#include "vectors/kernel_emitter.h"
#include "matrix_code.h"

namespace tenon::llvm_backend {

/// What profilers call the code of a kernel, and the line of the user's program that it is of, where that is known.
struct CodeName {
  std::string name, file;
  int line = 0;
};

/// What a program needs of the cache.
struct KernelRequest {
  std::span<const codegen::Kernel* const> kernels;
  const MatrixParts& products;  // what matrix products will be asked for
  const std::function<void(const std::string&)>& listing;  // takes the text and the code of the kernels that are compiled now
  bool swap_tiers = true;  // start with quick code, which better code replaces from the background
  std::vector<std::shared_ptr<const CodeName>> names = {};  // by kernel, for profilers; else empty
};

/// Throws Exception (cancelled) when nobody waits for the current compile any more.
inline void stop_if_cancelled(const HostServices& host) {
  if (host.cancelled()) throw Exception(Code::cancelled, "nobody waits for the kernels any longer");
}

/// Thread-safe. The new kernels of one call share a module for each thread that compiles. Code that nobody holds any more is kept for the
/// next program that needs it, up to a number of kernels, but no better code is made of it.
class KernelCache {
 public:
  /// With another cache, matrix kernels are that one's. `most_idle`: kernels that nobody holds.
  explicit KernelCache(Target target, KernelCache* matrices = nullptr, std::size_t most_idle = 256)
      : jit_(std::move(target)), matrix_code_(jit_), matrices_(matrices), most_idle_(most_idle), most_known_(most_idle) {}

  const Target& target() const { return jit_.target(); }

  /// Compiles what is not known yet, on the host's threads.
  std::vector<std::shared_ptr<const KernelCode>> kernels(const HostServices& host, const KernelRequest& request);
  /// Drops code that nobody holds, where there may be much of it. To be called when kernels have been let go.
  void look_for_idle();
  /// How many kernels it knows now.
  std::size_t size() const;
  /// The code of matrix products in float32 or float64: the parts of that dtype.
  MatrixKernel matrix_kernel(const HostServices& host, DType dtype, const MatrixParts& parts);

 private:
  struct Batch;
  struct Entry {
    std::shared_ptr<KernelCode> code = std::make_shared<KernelCode>();
    bool left_quick = false;  // nobody held it when better code was due
    std::shared_ptr<const CodeName> name = nullptr;  // null: no profiler has asked
  };
  using Codes = std::vector<std::shared_ptr<KernelCode>>;
  using Texts = std::span<const std::string>;
  Codes entries(Texts texts);
  void drop_idle();
  bool is_held(const std::string& text);
  std::vector<const codegen::Kernel*> left_quick(std::span<const codegen::Kernel* const> kernels, Texts texts);
  void take_stored(const HostServices& host, const KernelRequest& request, Texts texts, const Codes& codes);
  std::vector<Batch> new_batches(const KernelRequest& request, Texts texts, const Codes& codes, std::size_t threads);
  void compile(const HostServices& host, const Batch& batch, const std::function<void(const std::string&)>& listing);
  void improve_later(const HostServices& host, const std::vector<const codegen::Kernel*>& kernels);
  void name(const KernelRequest& request, Texts texts);
  void publish(const HostServices& host, const std::string& text, const LinkedCode& linked, std::size_t function);
  void prepare(const HostServices& host, DType dtype, MatrixPart part);

  Jit jit_;
  MatrixCode matrix_code_;
  KernelCache* const matrices_;
  const std::size_t most_idle_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> known_;
  std::size_t most_known_;    // from here on those that nobody holds are dropped
  std::size_t let_go_ = 0;    // how often somebody has let go of kernels since the last drop
};

/// The cache for the machine that the process runs on, by limit of vector width in bytes (0: none) and by how NaNs compare. It is never destroyed: plans
/// that outlive the backend object still hold its functions.
KernelCache& kernel_cache(unsigned width, bool quiet_comparisons = false);

}  // namespace tenon::llvm_backend
