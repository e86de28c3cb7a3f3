#include "steps.h"

#include "core/abi/graph_view.h"
#include "core/abi/struct_size.h"
#include "guarded_call.h"
#include "host/plugins/contact/plugin_call.h"

namespace tenon::probe {
namespace {

/// Takes what a plugin stores.
struct StoredBytes {
  std::string& bytes;
  std::string defect;

  static constexpr std::size_t kMost = std::size_t{4} << 30;

  static void take(void* self, TenonBytes given) noexcept {
    auto& stored = *static_cast<StoredBytes*>(self);
    if (given.size > kMost) stored.defect = fmt::format("it stores an artefact of {} bytes", given.size);
    else if (given.size && !given.data) stored.defect = fmt::format("it stores an artefact of {} bytes and does not give them", given.size);
    else stored.bytes.assign(reinterpret_cast<const char*>(given.data), given.size);
  }
};

/// The calls of one `claim`: what they say is passed on as it is, as far as it can be read.
struct Claimed {
  CollectedClaims& claims;
  std::size_t most;  // nodes of the graph
  std::string defect;

  static void group(void* self, const std::uint32_t* nodes, std::size_t count) noexcept {
    auto& claimed = *static_cast<Claimed*>(self);
    if (count > claimed.most) claimed.defect = fmt::format("it claims a group of {} nodes of a graph that has {}", count, claimed.most);
    else if (count && !nodes) claimed.defect = fmt::format("it claims a group of {} nodes and does not name them", count);
    else claimed.claims.groups.emplace_back(nodes, nodes + count);
  }
  static void refuse(void* self, std::uint32_t node, const char* reason, const char* text) noexcept {
    static_cast<Claimed*>(self)->claims.refusals.push_back({{"node", node}, {"reason", reason ? reason : ""}, {"text", text ? text : ""}});
  }
};

Outcome or_defect(Outcome outcome, std::string defect) {
  if (!outcome.ok() || defect.empty()) return outcome;
  return {TENON_PLUGIN_FAILED, std::move(defect)};
}

}  // namespace

template <class Call>
Outcome Backend::step(const char* name, const Call& call) {
  host::take_report();
  Outcome outcome{guarded(name + suffix_, call), {}};
  const std::optional<host::Report> report = host::take_report();
  if (!outcome.ok() && report) outcome.text = report->text;
  return outcome;
}

Outcome Backend::create(const std::string& options) {
  return step("create", [&] { return table_.create(host_, options.c_str(), &self_); });
}

Outcome Backend::open_devices() {
  if (!TENON_COVERS(&table_, open_devices) || !table_.open_devices) return {};
  const TenonDeviceTable* devices = nullptr;
  Outcome outcome = step("open_devices", [&] { return table_.open_devices(host_, &devices); });
  return or_defect(std::move(outcome), devices ? "" : "it gives no table");
}

void Backend::destroy() {
  suffix_.clear();
  step("destroy", [&] { return table_.destroy(self_), std::int32_t{TENON_OK}; });
}

Outcome Backend::claim(const TenonGraph& graph, const std::string& options, CollectedClaims& claims) {
  Claimed claimed{claims, GraphView(graph.buffer).node_count(), {}};
  const TenonClaims table = {sizeof table, &claimed, Claimed::group, Claimed::refuse, options.c_str()};
  Outcome outcome = step("claim", [&] { return table_.claim(self_, &graph, &table); });
  return or_defect(std::move(outcome), std::move(claimed.defect));
}

Outcome Backend::compile(const TenonGraph& graph, const std::string& options, TenonArtefact& artefact) {
  Outcome outcome = step("compile", [&] { return table_.compile(self_, &graph, options.c_str(), &artefact); });
  return or_defect(std::move(outcome), artefact.self ? "" : "it says that it has compiled, and gives no artefact");
}

Outcome Backend::load(const std::string& stored, TenonArtefact& artefact) {
  const TenonBytes bytes = {reinterpret_cast<const std::uint8_t*>(stored.data()), stored.size()};
  Outcome outcome = step("reload", [&] { return table_.load(self_, bytes, &artefact); });
  return or_defect(std::move(outcome), artefact.self ? "" : "it says that it has loaded, and gives no artefact");
}

Outcome Backend::workspace(const TenonArtefact& artefact, const std::int64_t* symbols, std::size_t& bytes) {
  bytes = 0;
  if (!table_.workspace_bytes) return {};
  return step("workspace", [&] { return table_.workspace_bytes(artefact.self, symbols, &bytes); });
}

Outcome Backend::execute(const TenonArtefact& artefact, const TenonExecuteArgs& args) {
  return step("execute", [&] { return table_.execute(artefact.self, &args); });
}

Outcome Backend::serialise(const TenonArtefact& artefact, std::string& stored) {
  StoredBytes sink{stored, {}};
  Outcome outcome = step("serialise", [&] { return table_.serialise(artefact.self, StoredBytes::take, &sink); });
  return or_defect(std::move(outcome), std::move(sink.defect));
}

void Backend::release(const TenonArtefact& artefact) {
  step("release", [&] { return table_.release(artefact.self), std::int32_t{TENON_OK}; });
}

}  // namespace tenon::probe
