#include "host/plugins/contact/host_table.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>

#include "host/diagnostics/events.h"
#include "host/diagnostics/profiling.h"
#include "host/diagnostics/progress.h"
#include "host/machine/memory_pool.h"
#include "host/machine/threads.h"
#include "host/plugins/contact/call_state.h"
#include "host/plugins/contact/cancellation.h"
#include "host/plugins/contact/given_text.h"
#include "host/store/byte_store.h"

namespace tenon::host {

struct HostTable::State {
  TenonHost functions{};
  std::string name;
  bool own = false;
  std::mutex mutex;  // guards what follows against the end of its session
  Events* events = nullptr;
  ByteStore* store = nullptr;
  bool told_float_control = false;
};

namespace {

using State = HostTable::State;

State& state_of(void* self) { return *static_cast<State*>(self); }

const char* log_name(const char* category) { return category && *category ? category : "plugins"; }

void log(void* self, std::int32_t level, const char* category, const char* text) {
  State& state = state_of(self);
  const auto known = static_cast<TenonLevel>(std::clamp<std::int32_t>(level, TENON_DEBUG, TENON_ERROR));
  const std::lock_guard lock(state.mutex);
  if (state.events) {
    state.events->log(known, log_name(category), state.name, text_of(text));
  } else {
    Log().write(known, log_name(category), state.name, text_of(text));
  }
}

std::int32_t log_enabled(void* self, const char* category) {
  State& state = state_of(self);
  const std::lock_guard lock(state.mutex);
  return state.events && state.events->wants(log_name(category));
}

void report(void*, std::int32_t code, std::uint32_t node, const char* text) {
  ReportSlot& slot = CallState::current().slot();
  const std::lock_guard lock(slot.mutex);
  // The first report tells the cause; what follows is said on the way out.
  if (!slot.report) slot.report = Report{code, node, text_of(text)};
}

void* allocate(void*, std::size_t bytes) { return pool_allocate_sized(bytes); }
void deallocate(void*, void* memory) { pool_release_sized(memory); }

/// The caller's state goes with the loop: a worker reads constants and reports for the call that it works for.
struct CarriedLoop {
  void (*body)(void*, std::int64_t, std::int64_t);
  void* context;
  CallState state;
  const TenonHost* watched;

  static void run(void* self, std::int64_t first, std::int64_t last) {
    const auto& loop = *static_cast<const CarriedLoop*>(self);
    const CallState before = std::exchange(CallState::current(), loop.state);
    const CallWatch watch(loop.watched, "a parallel loop");
    loop.body(loop.context, first, last);
    CallState::current() = before;
  }
};

void parallel_for(void* self, std::int64_t begin, std::int64_t end, std::int64_t grain, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
  const State& state = state_of(self);
  CallState& current = CallState::current();
  CarriedLoop loop{body, context, {current.compile, &current.slot(), current.cancel}, state.own ? nullptr : &state.functions};
  host::parallel_for(begin, end, grain, &CarriedLoop::run, &loop);
}

std::int32_t thread_count(void*) { return host::thread_count(); }

std::int32_t is_cancelled(void*) { return cancelled(); }

const DLTensor* read_constant(void*, std::uint32_t index) {
  CompileScope::State* compile = CallState::current().compile;
  if (!compile || index >= compile->graph.constant_count || compile->graph.constants[index]->device.device_type != kDLCPU) return nullptr;
  const std::lock_guard lock(compile->mutex);
  auto& read = compile->constants_read;
  if (std::find(read.begin(), read.end(), index) == read.end()) read.push_back(index);
  return compile->graph.constants[index];
}

bool readable(TenonBytes bytes) { return bytes.data || !bytes.size; }

/// Keys of different plugins are kept apart.
std::string store_key(const State& state, TenonBytes key) {
  return state.name + '\0' + std::string(reinterpret_cast<const char*>(key.data), key.size);
}

std::int32_t cache_get(void* self, TenonBytes key, void (*sink)(void*, TenonBytes), void* context) {
  State& state = state_of(self);
  if (!readable(key) || !sink) return TENON_INVALID_ARGUMENT;
  std::string value;
  {
    const std::lock_guard lock(state.mutex);
    if (!state.store || !state.store->folder().usable()) return TENON_NOT_FOUND;
    const ByteStore::Outcome outcome = state.store->find(store_key(state, key), value);
    if (outcome == ByteStore::Outcome::damaged && state.events)
      state.events->emit({{"kind", "cache_damaged"}, {"plugin", state.name}, {"directory", state.store->folder().path()}});
    const bool found = outcome == ByteStore::Outcome::found;
    if (state.events) state.events->count(found ? "cache_hits" : "cache_misses");
    if (!found) return TENON_NOT_FOUND;
  }
  sink(context, {reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
  return TENON_OK;
}

std::int32_t cache_put(void* self, TenonBytes key, TenonBytes value) {
  State& state = state_of(self);
  if (!readable(key) || !readable(value)) return TENON_INVALID_ARGUMENT;
  const std::lock_guard lock(state.mutex);
  if (!state.store) return TENON_UNSUPPORTED;
  const bool stored = state.store->put(store_key(state, key), {reinterpret_cast<const char*>(value.data), value.size});
  if (stored && state.events) state.events->count("cache_stored");
  return stored ? TENON_OK : TENON_UNSUPPORTED;
}

const void* feature(void*, const char* name) { return name && std::string_view(name) == "profiling" ? &profiling_table() : nullptr; }

void note_progress(void*, std::int64_t done, std::int64_t total) {
  if (Progress* told = CallState::current().progress) told->note_pieces(done, total);
}

/// No exception of the host may unwind into a plugin: a lack of memory or of disk becomes the call's failure value.
template <auto function, auto failure>
struct Guarded;

template <class R, class... Args, R (*function)(void*, Args...), auto failure>
struct Guarded<function, failure> {
  static R call(void* self, Args... args) noexcept {
    try {
      return function(self, args...);
    } catch (...) {
      return static_cast<R>(failure);
    }
  }
};

template <auto function, auto failure = 0>
constexpr auto guarded = &Guarded<function, failure>::call;

}  // namespace

HostTable::HostTable(std::string plugin, std::uint32_t abi, Events* events, ByteStore* store, bool own) : state_(std::make_unique<State>()) {
  state_->name = std::move(plugin);
  state_->own = own;
  state_->events = events;
  state_->store = store;
  TenonHost& table = state_->functions;
  table.struct_size = sizeof(TenonHost);
  table.abi = abi;
  table.level = TENON_DEBUG;
  table.self = state_.get();
  table.log = guarded<log>;
  table.log_enabled = guarded<log_enabled>;
  table.report = guarded<report>;
  table.allocate = guarded<allocate, nullptr>;
  table.deallocate = guarded<deallocate>;
  table.parallel_for = parallel_for;
  table.thread_count = thread_count;
  table.cancelled = is_cancelled;
  table.read_constant = guarded<read_constant, nullptr>;
  table.cache_get = guarded<cache_get, TENON_INTERNAL>;
  table.cache_put = guarded<cache_put, TENON_INTERNAL>;
  table.feature = feature;
  table.progress = guarded<note_progress>;
}

HostTable::~HostTable() = default;

HostTable& HostTable::make_lasting(std::string plugin, std::uint32_t abi, Events* events, ByteStore* store, bool own) {
  static std::mutex mutex;
  static auto& tables = *new std::deque<HostTable>;  // never destroyed: plugins' threads may outlive static objects
  const std::lock_guard lock(mutex);
  return tables.emplace_back(std::move(plugin), abi, events, store, own);
}

const TenonHost* HostTable::functions() const { return &state_->functions; }

void HostTable::detach() {
  const std::lock_guard lock(state_->mutex);
  state_->events = nullptr;
  state_->store = nullptr;
}

const std::string& plugin_of(const TenonHost& table) { return state_of(table.self).name; }

void tell_float_control(const TenonHost& table, const char* function, const std::string& what) {
  State& state = state_of(table.self);
  const std::lock_guard lock(state.mutex);
  if (std::exchange(state.told_float_control, true)) return;
  const std::string text = fmt::format("plugin '{}' left {} changed after {}; it was put back, here and after later calls", state.name, what, function);
  if (!state.events) return Log().write(TENON_WARNING, "plugins", {}, text);
  state.events->emit({{"kind", "plugin_float_control"}, {"plugin", state.name}, {"phase", function}, {"text", text}});
  state.events->warn_once("plugins", text);
}

}  // namespace tenon::host
