#include "running.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "catch.h"
#include "core/base/error.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/memory/row_major.h"

namespace tenon::llvm_test {
namespace {

std::vector<std::string> logged;
std::mutex log_mutex;

void keep_log(void*, std::int32_t, const char*, const char* text) {
  const std::lock_guard lock(log_mutex);
  logged.emplace_back(text);
}
std::int32_t wants_log(void*, const char*) { return 1; }

void* take_memory(void*, std::size_t bytes) { return std::aligned_alloc(64, (bytes + 63) & ~std::size_t{63}); }
void give_memory(void*, void* memory) { std::free(memory); }

Store* store = nullptr;
std::mutex store_mutex;

std::string text_of(TenonBytes bytes) { return {reinterpret_cast<const char*>(bytes.data), bytes.size}; }

std::int32_t find_stored(void*, TenonBytes key, void (*sink)(void*, TenonBytes), void* context) {
  const std::lock_guard lock(store_mutex);
  if (!store) return TENON_NOT_FOUND;
  const auto entry = store->entries.find(text_of(key));
  ++(entry == store->entries.end() ? store->misses : store->hits);
  if (entry == store->entries.end()) return TENON_NOT_FOUND;
  sink(context, {reinterpret_cast<const std::uint8_t*>(entry->second.data()), entry->second.size()});
  return TENON_OK;
}

std::int32_t put_stored(void*, TenonBytes key, TenonBytes value) {
  const std::lock_guard lock(store_mutex);
  if (!store) return TENON_UNSUPPORTED;
  store->entries[text_of(key)] = text_of(value);
  return TENON_OK;
}

/// Splits the range evenly over `threads` threads that are made for it.
void on_threads(void* self, std::int64_t begin, std::int64_t end, std::int64_t grain, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
  const std::int64_t threads = *static_cast<int*>(self);
  if (threads == 1 || end - begin <= grain) return body(context, begin, end);
  std::vector<std::thread> running;
  for (std::int64_t t = 0; t < threads; ++t) {
    const std::int64_t first = begin + (end - begin) * t / threads, last = begin + (end - begin) * (t + 1) / threads;
    if (first < last) running.emplace_back([=] { body(context, first, last); });
  }
  for (std::thread& t : running) t.join();
}

std::int32_t count_threads(void* self) { return *static_cast<int*>(self); }

constexpr int kEndless = 1 << 30;
std::atomic<int> patience{kEndless};

TenonHost make_host(int* threads) {
  TenonHost host{};
  host.struct_size = sizeof host;
  host.abi = TENON_ABI_NEWEST;
  host.self = threads;
  host.log = keep_log;
  host.log_enabled = wants_log;
  host.allocate = take_memory;
  host.deallocate = give_memory;
  host.parallel_for = on_threads;
  host.thread_count = count_threads;
  host.cancelled = [](void*) -> std::int32_t { return patience-- <= 0; };
  host.cache_get = find_stored;
  host.cache_put = put_stored;
  return host;
}

struct Allocation {
  std::vector<ops::HostTensor>* outputs;
  const ir::Graph* graph;
};

void* allocate_output(void* self, std::uint32_t index, const std::int64_t* sizes, std::size_t rank) {
  auto& allocation = *static_cast<Allocation*>(self);
  const DType dtype = allocation.graph->type(allocation.graph->outputs()[index].value).dtype;
  (*allocation.outputs)[index] = ops::HostTensor(dtype, {sizes, sizes + rank});
  return (*allocation.outputs)[index].data();
}

std::vector<std::int64_t> bind_symbols(const ir::Graph& graph, std::span<const ops::TensorView> inputs, std::vector<bool>& bound) {
  std::vector<std::int64_t> symbols(graph.symbols().size(), 0);
  bound.assign(graph.symbols().size(), false);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs()[i]);
    for (std::size_t d = 0; d < type.shape.size(); ++d)
      if (SymbolId s = type.shape[d].as_symbol()) symbols[s.value] = inputs[i].shape[d], bound[s.value] = true;
  }
  return symbols;
}

}  // namespace

Store::Store() { store = this; }
Store::~Store() { store = nullptr; }

Patience::Patience(int questions) : questions_(questions) { patience = questions; }
Patience::~Patience() { patience = kEndless; }
int Patience::asked() const { return questions_ - patience; }

HostServices services(int threads) {
  static int counts[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  static TenonHost hosts[9] = {make_host(&counts[0]), make_host(&counts[1]), make_host(&counts[2]), make_host(&counts[3]), make_host(&counts[4]),
                               make_host(&counts[5]), make_host(&counts[6]), make_host(&counts[7]), make_host(&counts[8])};
  return HostServices(&hosts[threads]);
}

std::vector<std::string> take_log() {
  const std::lock_guard lock(log_mutex);
  return std::exchange(logged, {});
}

llvm_backend::KernelCache& fresh_cache(const llvm_backend::Target& target, std::size_t most_idle) {
  static auto& caches = *new std::deque<llvm_backend::KernelCache>;
  return caches.emplace_back(target, nullptr, most_idle);
}

std::unique_ptr<llvm_backend::Program> compile(const ir::Graph& graph, const Choice& choice) {
  llvm_backend::ProgramOptions options;
  options.fuse = choice.fuse;
  options.matrix_kernels = choice.matrix_kernels;
  options.swap_tiers = false;  // what the store counts does not depend on time
  options.relaxed = choice.relaxed;
  options.least_shared = choice.least_shared;
  options.log_fusion = choice.log;
  options.log_code = choice.log;
  options.keep_plan = true;
  return std::make_unique<llvm_backend::Program>(services(choice.threads), llvm_backend::kernel_cache(choice.width), graph.clone(), options);
}

std::vector<ops::HostTensor> run(llvm_backend::Program& program, const ir::Graph& graph, std::span<const ops::TensorView> inputs, int) {
  std::vector<bool> bound;
  const auto symbols = bind_symbols(graph, inputs, bound);
  std::vector<ops::HostTensor> outputs(graph.outputs().size());
  std::vector<void*> output_pointers;
  std::vector<const void*> input_pointers;
  for (const auto& input : inputs) input_pointers.push_back(input.data);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ir::Type& type = graph.type(graph.outputs()[i].value);
    bool known = true;
    std::vector<std::int64_t> shape;
    for (const ir::Dim& d : type.shape) d.for_each_symbol([&](SymbolId s) { known = known && bound[s.value]; });
    if (known) {
      for (const ir::Dim& d : type.shape) shape.push_back(d.evaluate(symbols));
      outputs[i] = ops::HostTensor(type.dtype, shape);
    }
    output_pointers.push_back(known ? outputs[i].data() : nullptr);
  }
  Allocation allocation{&outputs, &graph};
  TenonCall call{};
  call.struct_size = sizeof call;
  call.self = &allocation;
  call.allocate_output = allocate_output;
  const std::size_t bytes = program.workspace_bytes(symbols);
  const std::unique_ptr<void, void (*)(void*)> workspace(take_memory(nullptr, bytes + 64), std::free);
  TenonExecuteArgs args{};
  args.struct_size = sizeof args;
  args.inputs = input_pointers.data();
  args.outputs = output_pointers.data();
  args.symbols = symbols.data();
  args.workspace = workspace.get();
  args.call = &call;
  program.execute(args);
  return outputs;
}

std::vector<ops::HostTensor> run(const ir::Graph& graph, std::span<const ops::TensorView> inputs, const Choice& choice) {
  return run(*compile(graph, choice), graph, inputs, choice.threads);
}

ops::HostTensor random_tensor(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed, ops::Fill fill) {
  ops::Sample sample;
  sample.operands.push_back({.dtype = dtype, .shape = std::move(shape), .fill = fill, .bound = 4});
  return std::move(ops::sample_inputs(sample, seed)[0].storage);
}

ir::Graph parse(std::string_view text) {
  auto graph = ir::parse_graph(text);
  if (!graph) throw Exception(graph.error());
  return std::move(*graph);
}

Inputs random_inputs(const ir::Graph& graph, std::vector<std::vector<std::int64_t>> shapes) {
  Inputs made;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Type& type = graph.type(graph.inputs()[i]);
    if (i == shapes.size()) {
      shapes.emplace_back();
      for (const ir::Dim& d : type.shape) shapes[i].push_back(d.constant());
    }
    made.tensors.push_back(random_tensor(type.dtype, shapes[i], i + 1));
  }
  for (auto& t : made.tensors) made.views.push_back(t.view());
  return made;
}

namespace {

/// What a graph and its inputs are told from others by; empty where that is not known.
std::string key_of(const ir::Graph& graph, std::span<const ops::TensorView> inputs) {
  if (!graph.constants().empty()) return {};
  std::string key = ir::print_graph(graph);
  for (const ops::TensorView& input : inputs) {
    if (!is_row_major(input.shape, input.strides)) return {};
    std::size_t bytes = size_of(input.dtype);
    for (const std::int64_t size : input.shape) bytes *= static_cast<std::size_t>(size), key += fmt::format(" {}", size);
    key += fmt::format(" {}: {}", name_of(input.dtype), std::hash<std::string_view>()({static_cast<const char*>(input.data), bytes}));
  }
  return key;
}

/// What the judge says. The answers to the last few questions are kept: a test compares several ways to run a graph with one of them.
std::shared_ptr<const std::vector<ops::HostTensor>> judged(const ir::Graph& graph, std::span<const ops::TensorView> inputs) {
  using Answer = std::shared_ptr<const std::vector<ops::HostTensor>>;
  constexpr std::size_t kKept = 4;
  static std::deque<std::pair<std::string, Answer>> kept;
  const std::string key = key_of(graph, inputs);
  for (const auto& [asked, answer] : kept)
    if (!key.empty() && asked == key) return answer;
  const auto answer = std::make_shared<const std::vector<ops::HostTensor>>(ops::evaluate(graph, inputs, ops::Precision::judge));
  kept.emplace_back(key, answer);
  if (kept.size() > kKept) kept.pop_front();
  return answer;
}

}  // namespace

std::optional<std::string> difference(const ir::Graph& graph, std::span<const ops::TensorView> inputs, const Choice& choice, double tolerance) {
  const auto got = run(graph, inputs, choice);
  const auto want = judged(graph, inputs);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].shape != (*want)[i].shape) return "the shape of output " + std::to_string(i);
    if (auto d = ops::first_difference(got[i].view(), (*want)[i].view(), tolerance)) return "output " + std::to_string(i) + ": " + *d;
  }
  return {};
}

codegen::Kernel kernel_of(const std::string& text, const Choice& choice) {
  const ir::Graph graph = parse(text);
  const auto [tensors, views] = random_inputs(graph);
  INFO(text);
  CHECK(difference(graph, views, choice).value_or("") == "");
  const auto program = compile(graph, choice);
  REQUIRE(program->plan().steps.size() == 1);
  return std::get<codegen::KernelStep>(program->plan().steps[0]).kernel;
}

}  // namespace tenon::llvm_test
