#include "host/diagnostics/profiling.h"

#include <atomic>

namespace tenon::host {
namespace {

using CodeListener = void (*)(const char*, const void*, std::size_t, const char*, std::int32_t);

constinit std::atomic<const TenonRangeListener*> g_range_driver{nullptr}, g_range_trace{nullptr};
constinit std::atomic<CodeListener> g_code_listener{nullptr};
constinit std::int32_t g_takes_ranges = 0, g_takes_code = 0;  // read by plugins as they are

void count_listeners() {
  const bool any = g_range_driver.load() || g_range_trace.load();
  __atomic_store_n(&g_takes_ranges, any ? 1 : 0, __ATOMIC_RELEASE);
}

void tell_begin(const char* name, const char* place) {
  for (const auto* slot : {&g_range_driver, &g_range_trace})
    if (const TenonRangeListener* listener = slot->load(std::memory_order_acquire)) listener->begin(name ? name : "", place ? place : "");
}

void tell_end() {
  for (const auto* slot : {&g_range_driver, &g_range_trace})
    if (const TenonRangeListener* listener = slot->load(std::memory_order_acquire)) listener->end();
}

void tell_code(const char* name, const void* code, std::size_t bytes, const char* file, std::int32_t line) {
  if (const CodeListener listener = g_code_listener.load(std::memory_order_acquire); listener && code && bytes) listener(name ? name : "", code, bytes, file ? file : "", line);
}

}  // namespace

const TenonProfiling& profiling_table() {
  static constexpr TenonProfiling table{sizeof(TenonProfiling), &g_takes_ranges, &g_takes_code, tell_begin, tell_end, tell_code};
  return table;
}

void set_range_listener(const TenonRangeListener* listener) {
  g_range_driver.store(listener, std::memory_order_release);
  count_listeners();
}

void set_trace_listener(const TenonRangeListener& listener) {
  g_range_trace.store(&listener, std::memory_order_release);
  count_listeners();
}

void set_code_listener(CodeListener listener) {
  g_code_listener.store(listener, std::memory_order_release);
  __atomic_store_n(&g_takes_code, 1, __ATOMIC_RELEASE);
}

bool takes_ranges() noexcept { return __atomic_load_n(&g_takes_ranges, __ATOMIC_RELAXED) != 0; }

}  // namespace tenon::host
