#include "backend_under_test.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/abi/graph_view.h"
#include "core/base/float_control.h"

namespace tenon::conformance {
namespace {

/// Calls a function of the plugin. Throws what it reported, or that it reported nothing, or that the thread computes otherwise since.
template <class Call>
void require_ok(const char* call, const Call& body) {
  const FloatControl before = FloatControl::current();
  const std::int32_t code = body();
  const FloatControl after = FloatControl::current();
  before.restore();
  const auto report = take_report();
  if (after != before) throw BackendFailure(fmt::format("{} left {} changed", call, before.difference(after)));
  if (code == TENON_OK) return;
  const char* name = code_name(static_cast<Code>(code));
  if (!report) throw BackendFailure(fmt::format("{} failed ({}) without a report", call, name));
  throw BackendFailure(fmt::format("{} failed ({}): {}", call, name, report->text));
}

struct CollectedClaims {
  ClaimAnswer answer;

  static void claim(void* self, const std::uint32_t* nodes, std::size_t count) {
    static_cast<CollectedClaims*>(self)->answer.groups.emplace_back(nodes, nodes + count);
  }
  static void refuse(void* self, std::uint32_t, const char* reason, const char* text) {
    std::string& refusal = static_cast<CollectedClaims*>(self)->answer.refusal;
    if (refusal.empty()) refusal = fmt::format("{}: {}", reason ? reason : "unstated", text ? text : "");
  }
};

/// Nodes that compute are in one group at most; a constant may belong to several.
void require_sound(const ClaimAnswer& answer, const GraphView& graph, std::size_t node_count) {
  std::set<std::uint32_t> seen;
  for (const auto& group : answer.groups) {
    if (group.empty()) throw BackendFailure("claim gave an empty group");
    for (std::uint32_t node : group) {
      if (node >= node_count) throw BackendFailure(fmt::format("claim names node {} of a graph with {} nodes", node, node_count));
      if (graph.nodes()[node].op() == "constant") continue;
      if (!seen.insert(node).second) throw BackendFailure(fmt::format("claim names node {} twice", node));
    }
  }
}

}  // namespace

std::size_t CompiledGroup::workspace_bytes(std::span<const std::int64_t> symbols) const {
  if (!table_->workspace_bytes) return 0;
  std::size_t bytes = 0;
  require_ok("workspace_bytes", [&] { return table_->workspace_bytes(artefact_.self, symbols.data(), &bytes); });
  return bytes;
}

void CompiledGroup::execute(const TenonExecuteArgs& args) const {
  require_ok("execute", [&] { return table_->execute(artefact_.self, &args); });
}

bool CompiledGroup::assumptions_hold(std::span<const std::int64_t> symbols) const {
  return std::all_of(artefact_.assumptions, artefact_.assumptions + artefact_.assumption_count, [&](const TenonAssumption& a) {
    const std::int64_t value = symbols[a.symbol];
    return value >= a.min && value <= a.max && value % std::max<std::int64_t>(a.multiple_of, 1) == 0;
  });
}

BackendUnderTest::BackendUnderTest(const TenonPlugin& plugin, const std::string& options) : table_(*plugin.backend), device_(*plugin.backend), options_(options) {
  require_ok("create", [&] { return table_.create(&kit_host(), options_.c_str(), &self_); });
}

BackendUnderTest::~BackendUnderTest() {
  if (self_) table_.destroy(self_);
}

ClaimAnswer BackendUnderTest::claim(const TenonGraph& graph, std::size_t node_count) const {
  CollectedClaims collected;
  const TenonClaims claims{sizeof(TenonClaims), &collected, CollectedClaims::claim, CollectedClaims::refuse, options_.c_str()};
  require_ok("claim", [&] { return table_.claim(self_, &graph, &claims); });
  require_sound(collected.answer, GraphView(graph.buffer), node_count);
  if (collected.answer.refusal.empty()) collected.answer.refusal = "unstated";
  return std::move(collected.answer);
}

CompiledGroup BackendUnderTest::compile(const TenonGraph& graph) const {
  const ConstantScope scope({graph.constants, graph.constant_count});
  TenonArtefact artefact{};
  artefact.struct_size = sizeof artefact;
  require_ok("compile", [&] { return table_.compile(self_, &graph, options_.c_str(), &artefact); });
  if (!artefact.self) throw BackendFailure("compile gave no artefact");
  return {table_, artefact};
}

std::unique_ptr<CompiledGroup> BackendUnderTest::reload(const CompiledGroup& group) const {
  if (!table_.serialise || !table_.load) return nullptr;
  std::string stored;
  const auto sink = [](void* context, TenonBytes bytes) {
    static_cast<std::string*>(context)->assign(reinterpret_cast<const char*>(bytes.data), bytes.size);
  };
  require_ok("serialise", [&] { return table_.serialise(group.artefact().self, sink, &stored); });
  TenonArtefact artefact{};
  artefact.struct_size = sizeof artefact;
  require_ok("load", [&] { return table_.load(self_, {reinterpret_cast<const std::uint8_t*>(stored.data()), stored.size()}, &artefact); });
  return std::make_unique<CompiledGroup>(table_, artefact);
}

}  // namespace tenon::conformance
