// The C functions of a backend, generated from its class. Authors include tenon/backend.h and write TENON_BACKEND(...).
#pragma once

#include <concepts>
#include <cstring>
#include <string_view>
#include <utility>

#include "tenon/backend.h"
#include "tenon/device.h"
#include "tenon/entry_guard.h"
#include "tenon/plugin_entry.h"

namespace tenon::detail {

/// What the host holds of a backend.
template <class B>
struct BackendHandle {
  HostServices host;
  std::unique_ptr<B> backend;
};

/// What the host holds of a compiled group; the arrays are those that TenonArtefact points at.
struct ArtefactHandle {
  HostServices host;
  std::size_t symbol_count;
  std::unique_ptr<Artefact> artefact;
  std::vector<TenonAssumption> assumptions;
  std::vector<TenonAliasPermit> aliases;
};

template <class B>
concept StoresArtefacts = requires(B& backend, std::string_view bytes) {
  { backend.load(bytes) } -> std::convertible_to<std::unique_ptr<Artefact>>;
};

template <class B>
concept HasDevices = requires(HostServices host) {
  { B::open_devices(host) } -> std::convertible_to<Devices&>;
};

template <class B>
std::unique_ptr<B> make_backend(HostServices host, const char* options) {
  if constexpr (std::constructible_from<B, HostServices, std::string>) {
    return std::make_unique<B>(host, std::string(options ? options : "{}"));
  } else if constexpr (std::constructible_from<B, HostServices>) {
    return std::make_unique<B>(host);
  } else {
    return std::make_unique<B>();
  }
}

inline ArtefactHandle& artefact_of(void* handle) { return *static_cast<ArtefactHandle*>(handle); }

inline void hand_over(HostServices host, std::size_t symbol_count, std::unique_ptr<Artefact> artefact, TenonArtefact* out) {
  if (!artefact) throw Failure(TENON_PLUGIN_FAILED, "the backend gave no artefact and no reason");
  if (!TENON_COVERS(out, alias_count)) throw Failure(TENON_INCOMPATIBLE, "the host's TenonArtefact is too small");
  auto handle = std::make_unique<ArtefactHandle>(ArtefactHandle{host, symbol_count, std::move(artefact), {}, {}});
  handle->assumptions = handle->artefact->assumptions();
  handle->aliases = handle->artefact->aliases();
  out->assumptions = handle->assumptions.data();
  out->assumption_count = handle->assumptions.size();
  out->aliases = handle->aliases.data();
  out->alias_count = handle->aliases.size();
  if (TENON_COVERS(out, flags) && handle->artefact->gives_outputs()) out->flags |= TENON_GIVES_OUTPUTS;
  out->self = handle.release();
}

inline std::int32_t workspace_bytes(void* handle, const std::int64_t* symbols, std::size_t* bytes) noexcept {
  auto& held = artefact_of(handle);
  return guarded(held.host.table(), [&] { *bytes = held.artefact->workspace_bytes({symbols, held.symbol_count}); });
}

inline std::int32_t execute(void* handle, const TenonExecuteArgs* args) noexcept {
  auto& held = artefact_of(handle);
  return guarded(held.host.table(), [&] { held.artefact->execute(*args); });
}

inline void release(void* handle) noexcept {
  const TenonHost* host = artefact_of(handle).host.table();
  guarded(host, [&] { delete static_cast<ArtefactHandle*>(handle); });
}

/// A stored artefact is the number of its group's symbols (what `workspace_bytes` needs), then the author's bytes.
using StoredSymbolCount = std::uint64_t;

inline std::int32_t serialise(void* handle, void (*sink)(void*, TenonBytes), void* context) noexcept {
  auto& held = artefact_of(handle);
  return guarded(held.host.table(), [&] {
    const StoredSymbolCount count = held.symbol_count;
    const std::string bytes = std::string(reinterpret_cast<const char*>(&count), sizeof count) + held.artefact->serialise();
    sink(context, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  });
}

/// The table of functions of backend class B.
template <class B>
struct BackendTable {
  using Handle = BackendHandle<B>;

  static std::int32_t create(const TenonHost* host, const char* options, void** self) noexcept {
    return guarded(host, [&] {
      const HostServices services(host);
      *self = new Handle{services, make_backend<B>(services, options)};
    });
  }

  static void destroy(void* self) noexcept {
    const TenonHost* host = static_cast<Handle*>(self)->host.table();
    guarded(host, [&] { delete static_cast<Handle*>(self); });
  }

  static std::int32_t claim(void* self, const TenonGraph* graph, const TenonClaims* claims) noexcept {
    auto& handle = *static_cast<Handle*>(self);
    return guarded(handle.host.table(), [&] {
      Claims collected(claims);
      handle.backend->claim(GraphView(graph->buffer), collected);
    });
  }

  static std::int32_t compile(void* self, const TenonGraph* graph, const char* options, TenonArtefact* out) noexcept {
    auto& handle = *static_cast<Handle*>(self);
    return guarded(handle.host.table(), [&] {
      const GraphView view(graph->buffer);
      const std::span constants(graph->constants, graph->constant_count);
      auto artefact = handle.backend->compile(view, constants, options ? options : "{}");
      hand_over(handle.host, view.symbol_count(), std::move(artefact), out);
    });
  }

  static std::int32_t load(void* self, TenonBytes bytes, TenonArtefact* out) noexcept {
    if constexpr (StoresArtefacts<B>) {
      auto& handle = *static_cast<Handle*>(self);
      return guarded(handle.host.table(), [&] {
        StoredSymbolCount count = 0;
        if (bytes.size < sizeof count) throw Failure(TENON_MALFORMED, "a stored artefact is shorter than its header");
        std::memcpy(&count, bytes.data, sizeof count);
        const std::string_view stored(reinterpret_cast<const char*>(bytes.data) + sizeof count, bytes.size - sizeof count);
        hand_over(handle.host, count, handle.backend->load(stored), out);
      });
    }
    return TENON_UNSUPPORTED;
  }

  static std::int32_t open_devices(const TenonHost* host, const TenonDeviceTable** table) noexcept {
    if constexpr (HasDevices<B>) {
      return guarded(host, [&] {
        static const DeviceTable& opened = *new DeviceTable(HostServices(host), B::open_devices(HostServices(host)));  // lives as long as the process
        *table = opened.get();
      });
    }
    return TENON_UNSUPPORTED;
  }

  static TenonBackend table() {
    TenonBackend table{};
    table.struct_size = sizeof table;
    table.flags = B::kFlags;
    table.devices = B::kDevices;
    table.device_count = std::size(B::kDevices);
    table.create = &create;
    table.destroy = &destroy;
    table.claim = &claim;
    table.compile = &compile;
    table.workspace_bytes = &workspace_bytes;
    table.execute = &execute;
    table.release = &release;
    if (StoresArtefacts<B>) {
      table.serialise = &serialise;
      table.load = &load;
    }
    if (HasDevices<B>) table.open_devices = &open_devices;
    return table;
  }
};

/// The descriptor of a backend plugin. One a library and class.
template <class B>
TenonPlugin& backend_plugin(const PluginWords& words) {
  static const std::string& build_id = *new std::string(build_id_of(reinterpret_cast<const void*>(&build_id_of)));  // lives as long as the process
  static const TenonBackend table = BackendTable<B>::table();
  static TenonPlugin plugin = [&] {
    TenonPlugin described = describe(TENON_KIND_BACKEND, words, build_id);
    described.backend = &table;
    return described;
  }();
  return plugin;
}

}  // namespace tenon::detail

/// Makes this library a backend plugin: TENON_BACKEND(Class, "name", "version") or, last, a sentence that describes it. Write it once,
/// in one source file. The name must be that of tenon_add_plugin.
#define TENON_BACKEND(Class, ...)                                                                      \
  TENON_EXPORTED_ENTRY {                                                                               \
    static constexpr ::tenon::detail::PluginWords kWords{__VA_ARGS__};                                 \
    return ::tenon::detail::enter(offer, []() -> TenonPlugin& { return ::tenon::detail::backend_plugin<Class>(kWords); }); \
  }
