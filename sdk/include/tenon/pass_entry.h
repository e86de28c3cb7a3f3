// The C functions of a library of passes, generated from its list. Authors include tenon/pass.h and write TENON_PASSES(...).
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "core/ir/buffer.h"
#include "tenon/entry_guard.h"
#include "tenon/owned_constant.h"
#include "tenon/pass.h"
#include "tenon/plugin_entry.h"

namespace tenon::detail {

/// The passes of this library and their tables for the C contract.
struct PassList {
  std::vector<Pass> passes;
  std::vector<const char*> names, docs;
  TenonPassTable table{};
  std::string build_id;
  TenonPlugin plugin{};

  const Pass& named(std::string_view name) const {
    const auto found = std::find_if(passes.begin(), passes.end(), [&](const Pass& pass) { return name == pass.name; });
    if (found == passes.end()) throw Failure(TENON_NOT_FOUND, "this plugin has no pass '" + std::string(name) + "'");
    return *found;
  }
};

/// Gives a rewritten graph to the host: its buffer, and for each of its constants where the bytes come from.
inline void give_graph(ir::Graph& graph, const TenonGraph& original, const TenonPassResult& result) {
  const std::vector<ConstantId> kept = graph.drop_unused_constants();
  const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
  std::vector<std::uint32_t> sources;
  OutgoingTensors fresh;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const bool is_old = kept[i].value < original.constant_count;
    sources.push_back(is_old ? kept[i].value : ~0u);
    if (!is_old) fresh.add(graph.constants()[i]);
  }
  if (fresh.size() == 0 && std::ranges::equal(buffer, std::span(original.buffer.data, original.buffer.size))) return;
  result.graph(result.self, {buffer.data(), buffer.size()}, sources.data(), sources.size(), fresh.data(), fresh.size());
  fresh.handed_over();
}

inline void run_passes(const PassList& list, const TenonHost* host, std::span<const char* const> names, const TenonGraph& original,
                       const char* options, const TenonPassResult& result) {
  ir::Graph graph = ir::read_buffer(original.buffer, {original.constants, original.constant_count}).value();
  const PassContext context{HostServices(host), options ? options : "{}"};
  for (const char* name : names) {
    if (context.host.cancelled()) throw Failure(TENON_CANCELLED, "nobody waits for the passes any longer");
    try {
      list.named(name).run(graph, context);
    } catch (const Exception& exception) {
      throw Exception(exception.code(), "pass '" + std::string(name) + "': " + exception.what());
    }
  }
  give_graph(graph, original, result);
}

/// The descriptor of a library of passes. `make` gives the list.
template <class Make>
TenonPlugin& passes_plugin(const PluginWords& words, Make make) {
  static PassList& list = *new PassList;  // lives as long as the process: other threads may compile while it ends
  static const bool ready = [&] {
    list.passes = make();
    for (const Pass& pass : list.passes) {
      list.names.push_back(pass.name);
      list.docs.push_back(pass.doc);
    }
    list.table.struct_size = sizeof list.table;
    list.table.names = list.names.data();
    list.table.docs = list.docs.data();
    list.table.count = list.passes.size();
    list.table.run = [](const TenonHost* host, const char* const* names, std::size_t count, const TenonGraph* graph,
                        const char* options, const TenonPassResult* result) -> std::int32_t {
      return guarded(host, [&] { run_passes(list, host, {names, count}, *graph, options, *result); });
    };
    list.build_id = build_id_of(reinterpret_cast<const void*>(&run_passes));
    list.plugin = describe(TENON_KIND_PASSES, words, list.build_id);
    list.plugin.passes = &list.table;
    return true;
  }();
  static_cast<void>(ready);
  return list.plugin;
}

}  // namespace tenon::detail

/// Makes this library a plugin of passes: TENON_PASSES("name", "version", {"pass", "what it does", function}, ...). Write it once, in
/// one source file. The name must be that of tenon_add_plugin.
#define TENON_PASSES(name, version, ...)                                                              \
  TENON_EXPORTED_ENTRY {                                                                              \
    static constexpr ::tenon::detail::PluginWords kWords{name, version};                              \
    return ::tenon::detail::enter(offer, []() -> TenonPlugin& {                                       \
      return ::tenon::detail::passes_plugin(kWords, [] { return std::vector<::tenon::Pass>{__VA_ARGS__}; }); \
    });                                                                                               \
  }
