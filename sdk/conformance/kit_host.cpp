#include "kit_host.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::conformance {
namespace {

constexpr int kThreads = 4;

thread_local std::optional<Report> last_report;
thread_local std::span<const DLTensor* const> readable_constants;

void log(void*, std::int32_t, const char*, const char*) {}
std::int32_t log_enabled(void*, const char*) { return 0; }

void report(void*, std::int32_t code, std::uint32_t node, const char* text) { last_report = Report{code, node, text ? text : ""}; }

void* allocate(void*, std::size_t bytes) { return std::aligned_alloc(64, (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64); }
void deallocate(void*, void* memory) { std::free(memory); }

void parallel_for(void*, std::int64_t begin, std::int64_t end, std::int64_t grain, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
  const std::int64_t total = std::max<std::int64_t>(end - begin, 0);
  const std::int64_t parts = std::max<std::int64_t>(total / std::max<std::int64_t>(grain, 1), total > 0);
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    for (std::int64_t i = next++; i < parts; i = next++) body(context, begin + total * i / parts, begin + total * (i + 1) / parts);
  };
  std::vector<std::thread> threads;
  for (std::int64_t i = 1; i < std::min<std::int64_t>(parts, kThreads); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

std::int32_t thread_count(void*) { return kThreads; }
std::int32_t cancelled(void*) { return 0; }

const DLTensor* read_constant(void*, std::uint32_t index) {
  return index < readable_constants.size() ? readable_constants[index] : nullptr;
}

struct Cache {
  std::mutex mutex;
  std::map<std::string, std::string> entries;
};

Cache& cache() {
  static Cache the_cache;
  return the_cache;
}

std::string text_of(TenonBytes bytes) { return {reinterpret_cast<const char*>(bytes.data), bytes.size}; }

std::int32_t cache_get(void*, TenonBytes key, void (*sink)(void*, TenonBytes), void* context) {
  std::lock_guard lock(cache().mutex);
  const auto found = cache().entries.find(text_of(key));
  if (found == cache().entries.end()) return TENON_NOT_FOUND;
  sink(context, {reinterpret_cast<const std::uint8_t*>(found->second.data()), found->second.size()});
  return TENON_OK;
}

std::int32_t cache_put(void*, TenonBytes key, TenonBytes value) {
  std::lock_guard lock(cache().mutex);
  cache().entries[text_of(key)] = text_of(value);
  return TENON_OK;
}

const void* feature(void*, const char*) { return nullptr; }

}  // namespace

const TenonHost& kit_host() {
  static const TenonHost host = [] {
    TenonHost table{};
    table.struct_size = sizeof table;
    table.abi = TENON_ABI_NEWEST;
    table.level = TENON_ERROR;
    table.log = log;
    table.log_enabled = log_enabled;
    table.report = report;
    table.allocate = allocate;
    table.deallocate = deallocate;
    table.parallel_for = parallel_for;
    table.thread_count = thread_count;
    table.cancelled = cancelled;
    table.read_constant = read_constant;
    table.cache_get = cache_get;
    table.cache_put = cache_put;
    table.feature = feature;
    return table;
  }();
  return host;
}

std::optional<Report> take_report() {
  std::optional<Report> taken;
  std::swap(taken, last_report);
  return taken;
}

ConstantScope::ConstantScope(std::span<const DLTensor* const> constants) { readable_constants = constants; }
ConstantScope::~ConstantScope() { readable_constants = {}; }

}  // namespace tenon::conformance
