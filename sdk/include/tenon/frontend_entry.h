// The C functions of a frontend, generated from its class. Authors include tenon/frontend.h and write TENON_FRONTEND(...).
#pragma once

#include <concepts>

#include "core/ir/buffer.h"
#include "tenon/entry_guard.h"
#include "tenon/frontend.h"
#include "tenon/owned_constant.h"
#include "tenon/plugin_entry.h"

namespace tenon::detail {

template <class F>
std::unique_ptr<F> make_frontend(HostServices host, const char* options) {
  if constexpr (std::constructible_from<F, HostServices, std::string>) {
    return std::make_unique<F>(host, std::string(options ? options : "{}"));
  } else {
    return std::make_unique<F>();
  }
}

inline void give_captured(const ir::Graph& graph, const TenonFrontendResult& result) {
  const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
  OutgoingTensors constants;
  for (const ir::Constant& constant : graph.constants()) constants.add(constant);
  result.graph(result.self, {buffer.data(), buffer.size()}, constants.data(), constants.size());
  constants.handed_over();
}

/// The descriptor of a frontend plugin. One a library and class.
template <class F>
TenonPlugin& frontend_plugin(const PluginWords& words) {
  static const std::string& build_id = *new std::string(build_id_of(reinterpret_cast<const void*>(&build_id_of)));  // lives as long as the process
  static const TenonFrontend table = [] {
    TenonFrontend frontend{};
    frontend.struct_size = sizeof frontend;
    frontend.capture_file = [](const TenonHost* host, const char* path, const char* options, const TenonFrontendResult* result) {
      return guarded(host, [&] { give_captured(make_frontend<F>(HostServices(host), options)->capture_file(path), *result); });
    };
    return frontend;
  }();
  static TenonPlugin plugin = [&] {
    TenonPlugin described = describe(TENON_KIND_FRONTEND, words, build_id);
    described.frontend = &table;
    return described;
  }();
  return plugin;
}

}  // namespace tenon::detail

/// Makes this library a frontend plugin: TENON_FRONTEND(Class, "name", "version") or, last, a sentence that describes it. Write it
/// once, in one source file. The name must be that of tenon_add_plugin.
#define TENON_FRONTEND(Class, ...)                                                                     \
  TENON_EXPORTED_ENTRY {                                                                               \
    static constexpr ::tenon::detail::PluginWords kWords{__VA_ARGS__};                                 \
    return ::tenon::detail::enter(offer, []() -> TenonPlugin& { return ::tenon::detail::frontend_plugin<Class>(kWords); }); \
  }
