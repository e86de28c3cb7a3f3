#include "host/partition/claims.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "host/diagnostics/profiling.h"
#include "host/partition/group_graph.h"
#include "host/plugins/contact/cancellation.h"
#include "host/plugins/contact/given_text.h"

namespace tenon::host {
namespace {

/// Takes the calls of one `claim`. The functions are called by the plugin: they must not throw.
class Collector {
 public:
  explicit Collector(const ir::Graph& graph) : graph_(graph), owner_(graph.nodes().size(), kFree) {}

  TenonClaims table(const std::string& options) {
    return {sizeof(TenonClaims), this, [](void* self, const std::uint32_t* nodes, std::size_t count) { static_cast<Collector*>(self)->claim(nodes, count); },
            [](void* self, std::uint32_t node, const char* reason, const char* text) { static_cast<Collector*>(self)->refuse(node, reason, text); },
            options.c_str()};
  }

  ClaimAnswer take() {
    std::erase_if(answer_.groups, [](const ClaimedGroup& group) { return group.nodes.empty(); });
    return std::move(answer_);
  }

  const std::vector<std::string>& defects() const { return defects_; }

 private:
  static constexpr std::uint32_t kFree = 0xffffffffu;

  void claim(const std::uint32_t* nodes, std::size_t count) {
    const auto group = static_cast<std::uint32_t>(answer_.groups.size());
    if (count && !nodes) return defect(fmt::format("claims a group of {} nodes and does not name them", count));
    if (count > owner_.size()) return defect(fmt::format("claims a group of {} nodes of a graph that has {}", count, owner_.size()));
    answer_.groups.emplace_back();
    for (std::size_t i = 0; i < count; ++i) take_node(nodes[i], group);
  }

  void take_node(std::uint32_t id, std::uint32_t group) {
    if (id >= owner_.size()) return defect(fmt::format("claims node {}, which the graph does not have (it has {})", id, owner_.size()));
    const NodeId node = graph_.nodes()[id];
    if (reads_constant(graph_.node(node))) return answer_.groups.back().constants.push_back(node);
    if (owner_[id] == group) return defect(fmt::format("claims node {} ({}) twice in one group", id, graph_.node(node).op));
    if (owner_[id] != kFree) return defect(fmt::format("claims node {} ({}) in two groups; it stays in the first", id, graph_.node(node).op));
    owner_[id] = group;
    answer_.groups.back().nodes.push_back(node);
  }

  void refuse(std::uint32_t id, const char* reason, const char* text) {
    if (id >= owner_.size()) return defect(fmt::format("refuses node {}, which the graph does not have (it has {})", id, owner_.size()));
    answer_.refusals.push_back({graph_.nodes()[id], text_of(reason), text_of(text)});
  }

  void defect(std::string text) {
    if (defects_.size() < 16) defects_.push_back(std::move(text));
  }

  const ir::Graph& graph_;
  std::vector<std::uint32_t> owner_;  // by position: the group that has it
  ClaimAnswer answer_;
  std::vector<std::string> defects_;
};

}  // namespace

ClaimAnswer ask_claims(BackendInstance& backend, const ir::Graph& graph, ConstantStore& constants, Events& events, const std::string& options) {
  ProfiledRange range;
  if (takes_ranges()) range.begin(fmt::format("claims of {}", backend.name()));
  const Crossing crossing(graph, constants);
  Collector collector(graph);
  const TenonClaims claims = collector.table(options);
  const std::optional<Error> why = backend.claim(crossing.graph(), claims);
  for (const std::string& defect : collector.defects()) {
    const std::string text = fmt::format("backend '{}' {}", backend.name(), defect);
    events.emit({{"kind", "claim_invalid"}, {"phase", "claim"}, {"backend", backend.name()}, {"text", text}});
    events.warn_once("fallbacks", text);
  }
  if (!why) return collector.take();
  if (why->code == Code::cancelled) stop_if_cancelled();
  const std::string text = fmt::format("backend '{}' failed to claim: {}", backend.name(), why->message);
  events.emit({{"kind", "claim_failed"}, {"phase", "claim"}, {"backend", backend.name()}, {"code", code_name(why->code)}, {"text", text}});
  events.warn_once("fallbacks", text + "; others run the graph");
  return {};
}

}  // namespace tenon::host
