#include "kernel_cache.h"

#include <fmt/format.h>

#include "machine.h"

namespace tenon::llvm_backend {

namespace {

/// Without reductions a kernel has no values that live around its loops, which is all that better register allocation would help:
/// the quick tier compiles it three times as fast and it runs within a tenth as fast.
Tier tier_of(const codegen::Kernel& kernel) { return kernel.reductions.empty() ? Tier::quick : Tier::standard; }

}  // namespace

struct KernelCache::Batch {
  std::vector<const codegen::Kernel*> kernels;
  std::vector<std::string> names, texts;
};

void KernelCache::compile(const Batch& batch, Tier tier, const std::function<void(const std::string&)>& listing) {
  if (batch.kernels.empty()) return;
  const auto addresses = jit_.compile(batch.names, tier, [&](llvm::Module& module) {
    for (std::size_t i = 0; i < batch.kernels.size(); ++i) codegen::emit_kernel(module, *batch.kernels[i], target(), batch.names[i]);
  }, listing);
  for (std::size_t i = 0; i < batch.kernels.size(); ++i) known_[batch.texts[i]] = reinterpret_cast<codegen::KernelFunction>(addresses[i]);
}

std::vector<codegen::KernelFunction> KernelCache::kernels(const std::vector<const codegen::Kernel*>& wanted,
                                                          const std::function<void(const std::string&)>& listing) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  std::map<Tier, Batch> batches;
  for (const codegen::Kernel* k : wanted) {
    texts.push_back(codegen::to_text(*k));
    if (!known_.try_emplace(texts.back(), nullptr).second) continue;
    Batch& batch = batches[tier_of(*k)];
    batch.kernels.push_back(k);
    batch.texts.push_back(texts.back());
    batch.names.push_back(fmt::format("kernel{}", count_++));
    if (listing) listing(batch.names.back() + ": " + texts.back());
  }
  try {
    for (const auto& [tier, batch] : batches) compile(batch, tier, listing);
  } catch (...) {
    std::erase_if(known_, [](const auto& entry) { return !entry.second; });
    throw;
  }
  std::vector<codegen::KernelFunction> functions;
  for (const auto& text : texts) functions.push_back(known_.at(text));
  return functions;
}

codegen::MicroKernel KernelCache::microkernel(DType dtype) {
  const std::lock_guard lock(mutex_);
  auto& known = microkernels_[dtype];
  if (!known) {
    const std::string name = fmt::format("matrix_{}", name_of(dtype));
    const auto addresses = jit_.compile({name}, Tier::tuned, [&](llvm::Module& module) { codegen::emit_microkernel(module, target(), dtype, name); });
    known = reinterpret_cast<codegen::MicroKernel>(addresses[0]);
  }
  return known;
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
