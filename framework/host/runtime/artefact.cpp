#include "host/runtime/artefact.h"

#include <algorithm>
#include <chrono>

namespace tenon::host {
namespace {

/// A backend's lists have a few entries a symbol, an output; a count beyond is no count.
constexpr std::size_t kMostEntries = std::size_t{1} << 20;

/// What is wrong with a backend's description of its artefact; empty when nothing is.
std::string defect_of(const TenonArtefact& artefact, const ir::Graph& graph) {
  if (!artefact.self) return "it says that it has compiled, and gives no artefact";
  if (artefact.assumption_count && !artefact.assumptions) return "it announces assumptions and gives none";
  if (artefact.assumption_count > kMostEntries) return fmt::format("it announces {} assumptions", artefact.assumption_count);
  for (std::size_t i = 0; i < artefact.assumption_count; ++i) {
    const TenonAssumption& a = artefact.assumptions[i];
    if (a.symbol >= graph.symbols().size()) return fmt::format("it assumes something about symbol {}; the group has {}", a.symbol, graph.symbols().size());
    if (a.multiple_of < 1) return fmt::format("it assumes that a size is a multiple of {}", a.multiple_of);
  }
  if (artefact.alias_count && !artefact.aliases) return "it announces aliases and gives none";
  if (artefact.alias_count > kMostEntries) return fmt::format("it announces {} aliases", artefact.alias_count);
  for (std::size_t i = 0; i < artefact.alias_count; ++i)
    if (artefact.aliases[i].output >= graph.outputs().size() || artefact.aliases[i].input >= graph.inputs().size())
      return fmt::format("it lets output {} share memory with input {}; the group has {} outputs and {} inputs", artefact.aliases[i].output,
                         artefact.aliases[i].input, graph.outputs().size(), graph.inputs().size());
  return {};
}

}  // namespace

Artefact::Artefact(std::shared_ptr<BackendInstance> backend)
    : execute_(backend->table().execute), lock_(backend->execute_lock()), watched_(backend->plugin().watched()), backend_(std::move(backend)) {}

Artefact::~Artefact() {
  if (self_) backend_->call("release", [&] { return backend_->table().release(self_), std::int32_t{TENON_OK}; });
}

Result<std::shared_ptr<Artefact>> Artefact::compile(std::shared_ptr<BackendInstance> backend, const ir::Graph& graph, ConstantStore& constants,
                                                    const std::string& options, std::span<const std::uint32_t> origins) {
  const Crossing crossing(graph, constants, origins);
  std::shared_ptr<Artefact> made(new Artefact(backend));
  TenonArtefact artefact{};
  artefact.struct_size = sizeof artefact;
  const auto start = std::chrono::steady_clock::now();
  std::optional<Error> failed = backend->compile(crossing.graph(), options, artefact, made->constants_read_);
  const auto spent = std::chrono::steady_clock::now() - start;
  made->compile_milliseconds_ = std::chrono::duration<double, std::milli>(spent).count();
  if (failed) return *std::move(failed);
  made->self_ = artefact.self;
  if (std::string defect = defect_of(artefact, graph); !defect.empty()) return Error{Code::plugin_failed, std::move(defect)};
  made->assumptions_.assign(artefact.assumptions, artefact.assumptions + artefact.assumption_count);
  made->aliases_.assign(artefact.aliases, artefact.aliases + artefact.alias_count);
  made->gives_outputs_ = artefact.flags & TENON_GIVES_OUTPUTS;
  backend->counters().compile_nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
  return made;
}

bool Artefact::permits_alias(std::uint32_t output, std::uint32_t input) const {
  return std::ranges::any_of(aliases_, [&](const TenonAliasPermit& permit) { return permit.output == output && permit.input == input; });
}

Result<std::size_t> Artefact::workspace_bytes(const std::int64_t* symbols, std::uint64_t most) const {
  if (!backend_->table().workspace_bytes) return std::size_t{0};
  std::size_t bytes = 0;
  const std::int32_t code = backend_->call("workspace_bytes", [&] { return backend_->table().workspace_bytes(self_, symbols, &bytes); });
  if (code != TENON_OK) return plugin_error(code, "workspace_bytes");
  if (bytes > most) return error(Code::plugin_failed, "it wants {} bytes of workspace; the machine has {}", bytes, most);
  return bytes;
}

bool holds(const std::vector<TenonAssumption>& assumptions, const std::int64_t* symbols) {
  for (const TenonAssumption& a : assumptions) {
    const std::int64_t value = symbols[a.symbol];
    if (value < a.min || value > a.max || value % a.multiple_of != 0) return false;
  }
  return true;
}

}  // namespace tenon::host
