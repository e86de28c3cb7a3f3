#include "kernel_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "machine.h"

namespace tenon::llvm_backend {

namespace {

/// Without inner loops a kernel has no values that live around them, which is all that better register allocation would help:
/// the quick tier compiles it three times as fast and it runs within a tenth as fast.
Tier tier_of(const codegen::Kernel& kernel) { return kernel.reductions.empty() && kernel.inner.empty() ? Tier::quick : Tier::standard; }

}  // namespace

/// Kernels that are compiled as one module.
struct KernelCache::Batch {
  Tier tier = Tier::quick;
  std::vector<const codegen::Kernel*> kernels;
  std::vector<std::string> names, texts;
};

void KernelCache::compile(const Batch& batch, const std::function<void(const std::string&)>& listing) {
  const auto addresses = jit_.compile(batch.names, batch.tier, [&](llvm::Module& module) {
    for (std::size_t i = 0; i < batch.kernels.size(); ++i) codegen::emit_kernel(module, *batch.kernels[i], target(), batch.names[i]);
  }, listing);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < batch.kernels.size(); ++i) known_[batch.texts[i]] = reinterpret_cast<codegen::KernelFunction>(addresses[i]);
}

/// Deals what is not known out to as many modules as threads; a kernel that another thread compiles at this moment is compiled twice.
std::vector<KernelCache::Batch> KernelCache::new_batches(const std::vector<const codegen::Kernel*>& wanted, const std::vector<std::string>& texts, std::size_t threads,
                                                         const std::function<void(const std::string&)>& listing) {
  const std::lock_guard lock(mutex_);
  std::set<std::string> seen;
  std::map<Tier, std::vector<Batch>> tiers;
  std::map<Tier, std::size_t> next;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (known_.contains(texts[i]) || !seen.insert(texts[i]).second) continue;
    const Tier tier = tier_of(*wanted[i]);
    auto& batches = tiers[tier];
    if (batches.size() < threads) batches.push_back({tier, {}, {}, {}});
    Batch& batch = batches[next[tier]++ % threads];
    batch.kernels.push_back(wanted[i]);
    batch.texts.push_back(texts[i]);
    batch.names.push_back(fmt::format("kernel{}", count_++));
    if (listing) listing(batch.names.back() + ": " + texts[i]);
  }
  std::vector<Batch> all;
  for (auto& [tier, batches] : tiers) std::move(batches.begin(), batches.end(), std::back_inserter(all));
  return all;
}

std::vector<codegen::KernelFunction> KernelCache::kernels(const HostServices& host, const std::vector<const codegen::Kernel*>& wanted, const std::set<DType>& products,
                                                          const std::function<void(const std::string&)>& listing) {
  std::vector<std::string> texts;
  for (const codegen::Kernel* k : wanted) texts.push_back(codegen::to_text(*k));
  const auto threads = static_cast<std::size_t>(listing ? 1 : std::max(1, host.thread_count()));
  const auto batches = new_batches(wanted, texts, threads, listing);
  const std::vector<DType> dtypes(products.begin(), products.end());
  const auto jobs = static_cast<std::int64_t>(dtypes.size() + batches.size());
  auto work = [&](std::int64_t first, std::int64_t last) {
    for (auto job = static_cast<std::size_t>(first); job < static_cast<std::size_t>(last); ++job) {
      if (job < dtypes.size()) matrix_kernel(dtypes[job]);
      else compile(batches[job - dtypes.size()], listing);
    }
  };
  if (jobs > 1 && threads > 1) host.parallel_for(0, jobs, 1, work);
  else work(0, jobs);
  const std::lock_guard lock(mutex_);
  std::vector<codegen::KernelFunction> functions;
  for (const auto& text : texts) functions.push_back(known_.at(text));
  return functions;
}

MatrixKernel KernelCache::matrix_kernel(DType dtype) {
  const std::lock_guard lock(matrix_mutex_);
  MatrixKernel& known = matrix_kernels_[dtype];
  if (known.function) return known;
  std::vector<std::string> names;
  for (const char* what : {"matrix", "narrow_matrix", "transposition", "dot", "winograd_input", "winograd_weights", "winograd_output"}) names.push_back(fmt::format("{}_{}", what, name_of(dtype)));
  MatrixKernel kernel;
  kernel.tile = codegen::tile_shape(target(), dtype), kernel.narrow_tile = codegen::narrow_tile_shape(target(), dtype);
  kernel.transposed_rows = codegen::transposed_rows(target(), dtype);
  kernel.dot_tile = codegen::dot_shape(target());
  kernel.dtype = dtype;
  const auto addresses = jit_.compile(names, Tier::tuned, [&](llvm::Module& module) {
    codegen::emit_microkernel(module, target(), dtype, kernel.tile, names[0]);
    codegen::emit_microkernel(module, target(), dtype, kernel.narrow_tile, names[1]);
    codegen::emit_transposition(module, target(), dtype, names[2]);
    codegen::emit_dot_kernel(module, target(), dtype, names[3]);
    codegen::emit_winograd(module, target(), dtype, names[4], names[5], names[6]);
  });
  kernel.function = reinterpret_cast<codegen::MicroKernel>(addresses[0]);
  kernel.narrow = reinterpret_cast<codegen::MicroKernel>(addresses[1]);
  kernel.transposition = reinterpret_cast<codegen::Transposition>(addresses[2]);
  kernel.dot = reinterpret_cast<codegen::DotKernel>(addresses[3]);
  kernel.winograd_input = reinterpret_cast<codegen::WinogradInput>(addresses[4]);
  kernel.winograd_weights = reinterpret_cast<codegen::WinogradWeights>(addresses[5]);
  kernel.winograd_output = reinterpret_cast<codegen::WinogradOutput>(addresses[6]);
  return known = kernel;
}

KernelCache& kernel_cache(unsigned width) {
  static std::mutex mutex;
  static auto& caches = *new std::map<unsigned, std::unique_ptr<KernelCache>>;
  const std::lock_guard lock(mutex);
  auto& cache = caches[width];
  if (!cache) cache = std::make_unique<KernelCache>(detect_machine(width));
  return *cache;
}

}  // namespace tenon::llvm_backend
