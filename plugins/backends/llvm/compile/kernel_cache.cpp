#include "kernel_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "background.h"
#include "core/base/error.h"
#include "machine.h"
#include "tenon/profiling.h"

namespace tenon::llvm_backend {

namespace {

/// The tier of a kernel's first code. The quick tier compiles three times as fast. What has no values that live around its loops runs within a tenth as
/// fast there; sums and maxima are kept on the stack, so that reductions run up to half as fast: for the calls until their code is exchanged that costs
/// less than waiting for it.
Tier first_tier(bool swap) { return swap ? Tier::quick : Tier::standard; }

/// Kernels of a module that is compiled in the background: few, so that none waits long.
constexpr std::size_t kBackgroundBatch = 8;

/// Functions of the quick tier are known by their names, in the store too.
constexpr std::string_view kQuickName = "quick";

std::string function_name(Tier tier, std::size_t number) { return fmt::format("{}{}", tier == Tier::quick ? kQuickName : "kernel", number); }

constexpr const char* kKernelKind = "kernel";

}  // namespace

/// Bytes of the text of the kernels of one module that somebody waits for: LLVM cannot be stopped in a module, and this takes it about 25 ms.
constexpr std::size_t kMostText = 24 << 10;

/// Kernels that are compiled as one module.
struct KernelCache::Batch {
  Tier tier = Tier::quick;
  std::vector<const codegen::Kernel*> kernels;
  std::vector<std::string> names, texts;
  std::size_t bytes = 0;  // of the texts

  void add(const codegen::Kernel& kernel, std::string text) {
    names.push_back(function_name(tier, kernels.size()));
    kernels.push_back(&kernel);
    bytes += text.size();
    texts.push_back(std::move(text));
  }
};

/// Takes code for a kernel that somebody still wants; who improves it in the background may come late.
void KernelCache::publish(const HostServices& host, const std::string& text, const LinkedCode& linked, std::size_t function) {
  const auto found = known_.find(text);
  if (found == known_.end()) return;
  found->second.code->memory.push_back(linked.memory);
  found->second.code->function.store(reinterpret_cast<KernelFunction>(linked.functions[function]), std::memory_order_release);
  if (const auto& name = found->second.name) Profiling(host).tell_code(name->name, linked.functions[function], linked.sizes[function], name->file, name->line);
}

/// The entries of kernels, some perhaps without code yet. They stay while they are held.
KernelCache::Codes KernelCache::entries(Texts texts) {
  const std::lock_guard lock(mutex_);
  if (known_.size() > most_known_) drop_idle();
  Codes codes;
  for (const std::string& text : texts) codes.push_back(known_[text].code);
  return codes;
}

void KernelCache::name(const KernelRequest& request, Texts texts) {
  if (request.names.empty()) return;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < texts.size(); ++i) known_[texts[i]].name = request.names[i];
}

void KernelCache::look_for_idle() {
  const std::lock_guard lock(mutex_);
  if (++let_go_ > most_idle_) drop_idle();
}

void KernelCache::drop_idle() {
  let_go_ = 0;
  std::erase_if(known_, [](const auto& entry) { return entry.second.code.use_count() == 1; });
  most_known_ = known_.size() + most_idle_;
}

void KernelCache::compile(const HostServices& host, const Batch& batch, const std::function<void(const std::string&)>& listing) {
  const codegen::CodeStore store = code_store(host, target());
  const ObjectCode object = jit_.compile(batch.tier, [&](llvm::Module& module) {
    for (std::size_t i = 0; i < batch.kernels.size(); ++i) emit_kernel(module, *batch.kernels[i], target(), batch.names[i]);
  }, listing);
  const LinkedCode linked = link(object, batch.names);
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < batch.kernels.size(); ++i) publish(host, batch.texts[i], linked, i);
  }
  std::string all;
  for (const std::string& text : batch.texts) all += text;
  const std::string key = store.key(batch.tier == Tier::quick ? "quick kernel" : kKernelKind, all) + " object";
  store.put_object(key, object);
  for (std::size_t i = 0; i < batch.kernels.size(); ++i) store.put_place(store.key(kKernelKind, batch.texts[i]), {key, batch.names[i]});
}

/// Compiles them at the standard tier when there is time for it; calls enter the new code from then on, and the store has it.
void KernelCache::improve_later(const HostServices& host, const std::vector<const codegen::Kernel*>& kernels) {
  for (std::size_t first = 0; first < kernels.size(); first += kBackgroundBatch) {
    std::vector<codegen::Kernel> own;
    for (std::size_t i = first; i < std::min(kernels.size(), first + kBackgroundBatch); ++i) own.push_back(*kernels[i]);
    run_in_background([this, host, own = std::move(own)] {
      Batch batch{Tier::standard, {}, {}, {}};
      for (const codegen::Kernel& kernel : own)
        if (std::string text = codegen::to_text(kernel); is_held(text)) batch.add(kernel, std::move(text));
      if (batch.kernels.empty()) return;
      compile(host, batch, {});
      if (host.log_enabled("compile"))
        host.log(TENON_INFO, fmt::format("better code of {} kernels took the place of quick code", batch.kernels.size()), "compile");
    });
  }
}

/// Takes what the store has of the kernels that are not known yet; each object is read once.
void KernelCache::take_stored(const HostServices& host, const KernelRequest& request, Texts texts, const Codes& codes) {
  const codegen::CodeStore store = code_store(host, target());
  std::set<std::string> seen;
  std::map<std::string, std::vector<std::size_t>> objects;  // by key: which of the kernels
  std::vector<std::string> functions(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (codes[i]->function || !seen.insert(texts[i]).second) continue;
    const auto place = store.find_place(store.key(kKernelKind, texts[i]));
    if (!place) continue;
    if (place->function.starts_with(kQuickName) && first_tier(request.swap_tiers) != Tier::quick) continue;
    functions[i] = place->function;
    objects[place->object].push_back(i);
  }
  std::vector<const codegen::Kernel*> quick;
  for (const auto& [key, kernels] : objects) {
    std::vector<std::string> names;
    for (std::size_t i : kernels) names.push_back(functions[i]);
    const LinkedCode code = linked(store, key, names);
    const std::lock_guard lock(mutex_);
    for (std::size_t k = 0; k < code.functions.size(); ++k) {
      publish(host, texts[kernels[k]], code, k);
      if (names[k].starts_with(kQuickName) && request.swap_tiers) quick.push_back(request.kernels[kernels[k]]);
    }
  }
  improve_later(host, quick);
}

/// Deals what is not known out to as many modules as threads, or to more small ones; a kernel that another thread compiles at this moment is compiled twice.
std::vector<KernelCache::Batch> KernelCache::new_batches(const KernelRequest& request, Texts texts, const Codes& codes, std::size_t threads) {
  const Tier tier = first_tier(request.swap_tiers);
  std::set<std::string> seen;
  std::vector<Batch> open(threads, {tier, {}, {}, {}}), all;
  std::size_t next = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (codes[i]->function || !seen.insert(texts[i]).second) continue;
    Batch& batch = open[next++ % threads];
    batch.add(*request.kernels[i], texts[i]);
    if (request.listing) request.listing(batch.names.back() + ": " + texts[i]);
    if (batch.bytes > kMostText) all.push_back(std::exchange(batch, {tier, {}, {}, {}}));
  }
  std::ranges::copy_if(open, std::back_inserter(all), [](const Batch& batch) { return !batch.kernels.empty(); });
  return all;
}

std::vector<std::shared_ptr<const KernelCode>> KernelCache::kernels(const HostServices& host, const KernelRequest& asked) {
  KernelRequest request = asked;
  if (request.listing) request.swap_tiers = false;  // what is shown is what runs
  std::vector<std::string> texts;
  for (const codegen::Kernel* k : request.kernels) {
    stop_if_cancelled(host);
    texts.push_back(codegen::to_text(*k));
  }
  const Codes codes = entries(texts);
  name(request, texts);
  if (!request.listing) take_stored(host, request, texts, codes);  // stored code has no text to show
  const auto threads = static_cast<std::size_t>(request.listing ? 1 : std::max(1, host.thread_count()));
  const auto batches = new_batches(request, texts, codes, threads);
  const std::vector<MatrixParts::value_type> parts(request.products.begin(), request.products.end());
  const auto jobs = static_cast<std::int64_t>(parts.size() + batches.size());
  std::size_t total = parts.size();
  for (const Batch& batch : batches) total += batch.kernels.size();
  std::atomic<std::size_t> done{0};
  auto work = [&](std::int64_t first, std::int64_t last) {
    for (auto job = static_cast<std::size_t>(first); job < static_cast<std::size_t>(last); ++job) {
      stop_if_cancelled(host);
      if (job < parts.size()) prepare(host, parts[job].first, parts[job].second);
      else compile(host, batches[job - parts.size()], request.listing);
      host.progress(done += job < parts.size() ? 1 : batches[job - parts.size()].kernels.size(), total);
    }
  };
  if (jobs > 1 && threads > 1) host.parallel_for(0, jobs, 1, work);
  else work(0, jobs);
  if (request.swap_tiers) {
    for (const Batch& batch : batches) improve_later(host, batch.kernels);
    improve_later(host, left_quick(request.kernels, texts));
  }
  return {codes.begin(), codes.end()};
}

/// Whether somebody holds a kernel's code now that better code is due. Else that is made when somebody does again.
bool KernelCache::is_held(const std::string& text) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(text);
  if (found == known_.end()) return false;
  found->second.left_quick = found->second.code.use_count() == 1;
  return !found->second.left_quick;
}

/// The kernels that are held again, of which no better code was made. They are not given again.
std::vector<const codegen::Kernel*> KernelCache::left_quick(std::span<const codegen::Kernel* const> kernels, Texts texts) {
  const std::lock_guard lock(mutex_);
  std::vector<const codegen::Kernel*> left;
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (std::exchange(known_[texts[i]].left_quick, false)) left.push_back(kernels[i]);
  return left;
}

std::size_t KernelCache::size() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

MatrixKernel KernelCache::matrix_kernel(const HostServices& host, DType dtype, const MatrixParts& parts) {
  return matrices_ ? matrices_->matrix_kernel(host, dtype, parts) : matrix_code_.kernel(host, dtype, parts);
}

void KernelCache::prepare(const HostServices& host, DType dtype, MatrixPart part) {
  if (matrices_) return matrices_->prepare(host, dtype, part);
  matrix_code_.prepare(host, dtype, part);
}

KernelCache& kernel_cache(unsigned width, bool quiet_comparisons) {
  KernelCache* const matrices = quiet_comparisons ? &kernel_cache(width) : nullptr;  // they compare no numbers
  static std::mutex mutex;
  static auto& caches = *new std::map<std::pair<unsigned, bool>, std::unique_ptr<KernelCache>>;
  const std::lock_guard lock(mutex);
  auto& cache = caches[{width, quiet_comparisons}];
  if (cache) return *cache;
  Target target = detect_machine(width);
  target.quiet_comparisons = quiet_comparisons;
  cache = std::make_unique<KernelCache>(std::move(target), matrices);
  return *cache;
}

}  // namespace tenon::llvm_backend
