#include "kernel_cache.h"

#include <fmt/format.h>

#include "machine.h"

namespace tenon::llvm_backend {

std::vector<codegen::KernelFunction> KernelCache::kernels(const std::vector<const codegen::Kernel*>& wanted,
                                                          const std::function<void(const std::string&)>& listing) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts, names, new_texts;
  std::vector<const codegen::Kernel*> fresh;
  for (const codegen::Kernel* k : wanted) {
    texts.push_back(codegen::to_text(*k));
    if (!known_.try_emplace(texts.back(), nullptr).second) continue;
    fresh.push_back(k);
    new_texts.push_back(texts.back());
    names.push_back(fmt::format("kernel{}", count_++));
    if (listing) listing(names.back() + ": " + texts.back());
  }
  if (!fresh.empty()) {
    try {
      const auto addresses = jit_.compile(names, Tier::standard, [&](llvm::Module& module) {
        for (std::size_t i = 0; i < fresh.size(); ++i) codegen::emit_kernel(module, *fresh[i], target(), names[i]);
      }, listing);
      for (std::size_t i = 0; i < fresh.size(); ++i) known_[new_texts[i]] = reinterpret_cast<codegen::KernelFunction>(addresses[i]);
    } catch (...) {
      for (const auto& text : new_texts) known_.erase(text);
      throw;
    }
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
