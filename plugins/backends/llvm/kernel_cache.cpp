#include "kernel_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "machine.h"

namespace tenon::llvm_backend {

namespace {

/// Without reductions a kernel has no values that live around its loops, which is all that better register allocation would help:
/// the quick tier compiles it three times as fast and it runs within a tenth as fast. Sums and maxima would be kept on the stack there.
Tier tier_of(const codegen::Kernel& kernel) { return kernel.reductions.empty() ? Tier::quick : Tier::standard; }

}  // namespace

/// Kernels that are compiled as one module.
struct KernelCache::Batch {
  Tier tier = Tier::quick;
  std::vector<const codegen::Kernel*> kernels;
  std::vector<std::string> names, texts;
};

namespace {

const char* kind_of(Tier tier) { return tier == Tier::quick ? "quick kernel" : "kernel"; }

void stop_if_cancelled(const HostServices& host) {
  if (host.cancelled()) throw Exception(Code::cancelled, "nobody waits for the kernels any longer");
}

/// The addresses of functions of a stored object, or nothing: code that cannot be used is compiled anew.
std::vector<void*> linked(Jit& jit, const CodeStore& store, const std::string& key, const std::vector<std::string>& names) {
  const auto object = store.find_object(key);
  if (!object) return {};
  try {
    return jit.link(*object, names);
  } catch (const Exception&) {
    return {};
  }
}

}  // namespace

void KernelCache::compile(const CodeStore& store, const Batch& batch, const std::function<void(const std::string&)>& listing) {
  const ObjectCode object = jit_.compile(batch.tier, [&](llvm::Module& module) {
    for (std::size_t i = 0; i < batch.kernels.size(); ++i) codegen::emit_kernel(module, *batch.kernels[i], target(), batch.names[i]);
  }, listing);
  const auto addresses = jit_.link(object, batch.names);
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < batch.kernels.size(); ++i) known_[batch.texts[i]] = reinterpret_cast<codegen::KernelFunction>(addresses[i]);
  }
  std::string all;
  for (const std::string& text : batch.texts) all += text;
  const std::string key = store.key(kind_of(batch.tier), all) + " object";
  store.put_object(key, object);
  for (std::size_t i = 0; i < batch.kernels.size(); ++i) store.put_place(store.key(kind_of(batch.tier), batch.texts[i]), {key, batch.names[i]});
}

/// Takes what the store has of the kernels that are not known yet; each object is read once.
void KernelCache::take_stored(const CodeStore& store, const std::vector<const codegen::Kernel*>& wanted, std::span<const std::string> texts) {
  std::set<std::string> seen;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> objects;  // by key: functions and texts
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    {
      const std::lock_guard lock(mutex_);
      if (known_.contains(texts[i])) continue;
    }
    if (!seen.insert(texts[i]).second) continue;
    if (const auto place = store.find_place(store.key(kind_of(tier_of(*wanted[i])), texts[i]))) objects[place->object].emplace_back(place->function, texts[i]);
  }
  for (const auto& [key, functions] : objects) {
    std::vector<std::string> names;
    for (const auto& [name, text] : functions) names.push_back(name);
    const auto addresses = linked(jit_, store, key, names);
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < addresses.size(); ++i) known_[functions[i].second] = reinterpret_cast<codegen::KernelFunction>(addresses[i]);
  }
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
    batch.names.push_back(fmt::format("kernel{}", batch.names.size()));
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
  const CodeStore store(host, target());
  if (!listing) take_stored(store, wanted, texts);  // stored code has no text to show
  const auto threads = static_cast<std::size_t>(listing ? 1 : std::max(1, host.thread_count()));
  const auto batches = new_batches(wanted, texts, threads, listing);
  const std::vector<DType> dtypes(products.begin(), products.end());
  const auto jobs = static_cast<std::int64_t>(dtypes.size() + batches.size());
  auto work = [&](std::int64_t first, std::int64_t last) {
    for (auto job = static_cast<std::size_t>(first); job < static_cast<std::size_t>(last); ++job) {
      stop_if_cancelled(host);
      if (job < dtypes.size()) matrix_kernel(host, dtypes[job]);
      else compile(store, batches[job - dtypes.size()], listing);
    }
  };
  if (jobs > 1 && threads > 1) host.parallel_for(0, jobs, 1, work);
  else work(0, jobs);
  const std::lock_guard lock(mutex_);
  std::vector<codegen::KernelFunction> functions;
  for (const auto& text : texts) functions.push_back(known_.at(text));
  return functions;
}

std::vector<void*> KernelCache::matrix_code(const CodeStore& store, DType dtype, const MatrixKernel& kernel, const std::vector<std::string>& names) {
  const std::string key = store.key("matrix kernels", name_of(dtype));
  if (auto addresses = linked(jit_, store, key, names); !addresses.empty()) return addresses;
  const ObjectCode object = jit_.compile(Tier::tuned, [&](llvm::Module& module) {
    codegen::emit_microkernel(module, target(), dtype, kernel.tile, names[0]);
    codegen::emit_microkernel(module, target(), dtype, kernel.narrow_tile, names[1]);
    codegen::emit_transposition(module, target(), dtype, names[2]);
    codegen::emit_dot_kernel(module, target(), dtype, names[3]);
    codegen::emit_winograd(module, target(), dtype, names[4], names[5], names[6]);
  });
  store.put_object(key, object);
  return jit_.link(object, names);
}

MatrixKernel KernelCache::matrix_kernel(const HostServices& host, DType dtype) {
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
  const auto addresses = matrix_code(CodeStore(host, target()), dtype, kernel, names);
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
