#include "trial.h"

#include "core/ir/buffer.h"
#include "guarded_call.h"
#include "host/plugins/host_table.h"
#include "host/plugins/plugin_call.h"

namespace tenon::probe {
namespace {

using host::Refused;

std::vector<std::vector<std::uint8_t>> buffers_of(const std::vector<ir::Graph>& graphs) {
  std::vector<std::vector<std::uint8_t>> buffers;
  for (const ir::Graph& graph : graphs) buffers.push_back(ir::write_buffer(graph));
  return buffers;
}

const TenonClaims kNoClaims = {sizeof(TenonClaims), nullptr, [](void*, const std::uint32_t*, std::size_t) {},
                               [](void*, std::uint32_t, const char*, const char*) {}};

void try_backend(const TenonBackend& backend, const TenonHost* host, const std::vector<std::vector<std::uint8_t>>& buffers) {
  void* self = nullptr;
  if (guarded("create", [&] { return backend.create(host, "{}", &self); }) != TENON_OK) {
    const auto report = host::take_report();
    throw Refused("call_failed", "cannot be created: {}", report ? report->text : "it gives no reason");
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const TenonGraph graph{sizeof graph, ir::bytes_of(buffers[i]), nullptr, 0};
    guarded(fmt::format("claim {}", i), [&] { return backend.claim(self, &graph, &kNoClaims); });
    host::take_report();
  }
  guarded("destroy", [&] { return backend.destroy(self), 0; });
}

const TenonPassResult kNoResult = {sizeof(TenonPassResult), nullptr,
                                   [](void*, TenonBytes, const std::uint32_t*, std::size_t, DLManagedTensorVersioned* const*, std::size_t) {}};

void try_passes(const TenonPassTable& passes, const TenonHost* host, const std::vector<std::vector<std::uint8_t>>& buffers) {
  for (std::size_t pass = 0; pass < passes.count; ++pass) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const TenonGraph graph{sizeof graph, ir::bytes_of(buffers[i]), nullptr, 0};
      guarded(fmt::format("pass {} on sample graph {}", passes.names[pass], i), [&] { return passes.run(host, &passes.names[pass], 1, &graph, "{}", &kNoResult); });
      host::take_report();
    }
  }
}

}  // namespace

void try_plugin(const TenonPlugin& plugin, const std::vector<ir::Graph>& graphs) {
  const TenonHost* host = host::HostTable::make_lasting(plugin.name, plugin.abi).functions();
  const auto buffers = buffers_of(graphs);
  if (plugin.backend) try_backend(*plugin.backend, host, buffers);
  if (plugin.passes) try_passes(*plugin.passes, host, buffers);
}

}  // namespace tenon::probe
