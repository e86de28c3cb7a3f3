// Gives the negative of float32 numbers, plus the first element of the graph's constant. Harmless to the probe: it dies on graphs of
// certain names only. Says in what it stores which process compiled.
#include <unistd.h>

#include <cstring>
#include <string>

#include "core/abi/graph_view.h"
#include "deaths.h"
#include "plugin_parts.h"

namespace {

const TenonHost* host = nullptr;

struct Compiled {
  std::int64_t process, count;
  float added;
};

/// How often it was called, by the host's store.
float remembered() {
  float count = 0;
  const TenonBytes key = {reinterpret_cast<const std::uint8_t*>("count"), 5};
  host->cache_get(host->self, key, [](void* to, TenonBytes value) { std::memcpy(to, value.data, sizeof(float)); }, &count);
  ++count;
  host->cache_put(host->self, key, {reinterpret_cast<const std::uint8_t*>(&count), sizeof count});
  return count;
}

std::int32_t create(const TenonHost* given, const char*, void** self) {
  host = given;
  *self = nullptr;
  return TENON_OK;
}

std::int32_t claim(void*, const TenonGraph* given, const TenonClaims* claims) {
  const tenon::GraphView graph(given->buffer);
  if (graph.name() == "dies_claiming") deaths::abort();
  for (const tenon::NodeView node : graph.nodes()) {
    const std::uint32_t id = node.id();
    if (node.op() == "neg") claims->claim(claims->self, &id, 1);
    else claims->refuse(claims->self, id, "op", "only neg");
  }
  return TENON_OK;
}

std::int32_t compile(void*, const TenonGraph* given, const char*, TenonArtefact* artefact) {
  const tenon::GraphView graph(given->buffer);
  if (graph.name() == "dies_compiling") deaths::segfault();
  if (graph.name() == "hangs_compiling") deaths::hang();
  if (graph.name() == "fails_compiling") {
    host->report(host->self, TENON_UNSUPPORTED, 0, "not this one");
    return TENON_UNSUPPORTED;
  }
  float added = 0;
  if (given->constant_count) std::memcpy(&added, host->read_constant(host->self, 0)->data, sizeof added);
  if (graph.name() == "remembers") added = remembered();
  artefact->self = new Compiled{getpid(), graph.outputs()[0].value.type().element_count(), added};
  return TENON_OK;
}

std::int32_t execute(void* artefact, const TenonExecuteArgs* args) {
  const auto& compiled = *static_cast<const Compiled*>(artefact);
  if (compiled.process == getpid()) return TENON_INTERNAL;
  for (std::int64_t i = 0; i < compiled.count; ++i) static_cast<float*>(args->outputs[0])[i] = compiled.added - static_cast<const float*>(args->inputs[0])[i];
  return TENON_OK;
}

void release(void* artefact) { delete static_cast<Compiled*>(artefact); }

std::int32_t serialise(void* artefact, void (*sink)(void*, TenonBytes), void* context) {
  sink(context, {static_cast<const std::uint8_t*>(artefact), sizeof(Compiled)});
  return TENON_OK;
}

std::int32_t load(void*, TenonBytes bytes, TenonArtefact* artefact) {
  auto* compiled = new Compiled;
  std::memcpy(compiled, bytes.data, sizeof *compiled);
  artefact->self = compiled;
  return TENON_OK;
}

TenonBackend table = {sizeof(TenonBackend), 0, &parts::cpu, 1, create, parts::destroy, claim, compile, nullptr, execute, release, serialise, load, nullptr};

}  // namespace

ENTRY("dies_late", plugin.backend = &table)
