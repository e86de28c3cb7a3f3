#include "trial.h"

#include "core/ir/buffer.h"
#include "guarded_call.h"
#include "host/partition/placement.h"
#include "host/plugins/contact/plugin_call.h"
#include "sample_graphs.h"
#include "sample_run.h"
#include "steps.h"

namespace tenon::probe {
namespace {

using host::Refused;

/// How many of the sample graphs that a backend claims whole are compiled and run: enough to meet each function of its table, and quick.
constexpr int kLives = 2;

bool claims_all(const CollectedClaims& claims, const ir::Graph& graph) {
  return claims.groups.size() == 1 && claims.groups.front().size() == graph.nodes().size();
}

void try_backend(const TenonBackend& table, const TenonHost* host, const std::string& options) {
  Backend backend(table, host);
  const Outcome created = backend.create(options);
  if (created.code == TENON_INVALID_ARGUMENT) return;  // the options are wrong: the host tells that to whoever gave them
  if (!created.ok()) throw Refused("call_failed", "cannot be created: {}", created.text.empty() ? "it gives no reason" : created.text);
  if (const Outcome opened = backend.open_devices(); !opened.ok()) throw Refused("call_failed", "cannot open its devices: {}", opened.text.empty() ? "it gives no reason" : opened.text);
  // The samples are in the host's memory.
  if (!host::serves(table, {})) return backend.destroy();
  std::size_t number = 0;
  const auto claims = [&](const ir::Graph& graph) {
    backend.at_sample(number++);
    const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
    CollectedClaims claims;
    const Outcome claimed = backend.claim({sizeof(TenonGraph), ir::bytes_of(buffer), nullptr, 0}, options, claims);
    return claimed.ok() && claims_all(claims, graph);
  };
  for (const ir::Graph& graph : sample_graphs()) claims(graph);
  int lives = 0;
  for_each_runnable_sample([&](const ops::Sample& sample, const ir::Graph& graph) {
    if (claims(graph)) live(backend, sample, graph), ++lives;
    return lives < kLives;
  });
  backend.destroy();
}

const TenonPassResult kNoResult = {sizeof(TenonPassResult), nullptr,
                                   [](void*, TenonBytes, const std::uint32_t*, std::size_t, DLManagedTensorVersioned* const*, std::size_t) {}};

void try_passes(const TenonPassTable& passes, const TenonHost* host, const std::string& options) {
  std::vector<std::vector<std::uint8_t>> buffers;
  for (const ir::Graph& graph : sample_graphs()) buffers.push_back(ir::write_buffer(graph));
  for (std::size_t pass = 0; pass < passes.count; ++pass) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const TenonGraph graph{sizeof graph, ir::bytes_of(buffers[i]), nullptr, 0};
      guarded(fmt::format("pass {} on sample graph {}", passes.names[pass], i),
              [&] { return passes.run(host, &passes.names[pass], 1, &graph, options.c_str(), &kNoResult); });
      host::take_report();
    }
  }
}

}  // namespace

void try_plugin(const TenonPlugin& plugin, const TenonHost* host, const std::string& options) {
  if (plugin.backend) try_backend(*plugin.backend, host, options);
  if (plugin.passes) try_passes(*plugin.passes, host, options);
}

}  // namespace tenon::probe
