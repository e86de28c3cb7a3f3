#include "pass_plugins.h"

#include <cstring>
#include <fstream>
#include <optional>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/ir/buffer.h"
#include "kit_host.h"
#include "loaded_plugin.h"
#include "test_graph.h"

namespace tenon::golden {
namespace {

using Owners = std::vector<std::shared_ptr<const void>>;

/// Takes what a pass gives back: its constants borrow the bytes of the original's, or of fresh tensors that `owners` keeps.
struct ReturnedGraph {
  const TenonGraph& original;
  Owners& owners;
  std::optional<ir::Graph> graph;

  static void take(void* self, TenonBytes buffer, const std::uint32_t* sources, std::size_t count,
                   DLManagedTensorVersioned* const* fresh, std::size_t) {
    auto& returned = *static_cast<ReturnedGraph*>(self);
    std::vector<const DLTensor*> constants;
    for (std::size_t i = 0; i < count; ++i) {
      if (sources[i] != ~0u) {
        constants.push_back(returned.original.constants[sources[i]]);
        continue;
      }
      DLManagedTensorVersioned* tensor = *fresh++;
      returned.owners.emplace_back(tensor, [](DLManagedTensorVersioned* t) { t->deleter(t); });
      constants.push_back(&tensor->dl_tensor);
    }
    std::vector<std::uint64_t> aligned((buffer.size + 7) / 8);
    std::memcpy(aligned.data(), buffer.data, buffer.size);
    returned.graph = ir::read_buffer({reinterpret_cast<const std::uint8_t*>(aligned.data()), buffer.size}, constants).value();
  }
};

ir::Graph cross(const TenonPassTable& table, ir::Graph graph, const std::vector<const char*>& names, Owners& owners) {
  const auto crossing = std::make_shared<conformance::TestGraph>(std::move(graph));
  owners.push_back(crossing);
  const TenonGraph argument = crossing->crossing();
  ReturnedGraph returned{argument, owners, {}};
  const TenonPassResult result{sizeof(TenonPassResult), &returned, ReturnedGraph::take};
  const std::int32_t code = table.run(&conformance::kit_host(), names.data(), names.size(), &argument, "{}", &result);
  const auto report = conformance::take_report();
  if (code != TENON_OK) throw Exception(static_cast<Code>(code), report ? report->text : "failed without a report");
  return returned.graph ? std::move(*returned.graph) : crossing->graph().clone();
}

}  // namespace

PassPlugins::PassPlugins(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    const auto manifest = nlohmann::json::parse(file);
    if (manifest.value("kind", "") != "passes") continue;
    const TenonPlugin& plugin = conformance::load_plugin(folder / manifest.at("library").get<std::string>(), conformance::kit_host());
    for (std::size_t i = 0; i < plugin.passes->count; ++i) tables_[plugin.passes->names[i]] = plugin.passes;
  }
}

RewrittenGraph PassPlugins::run(ir::Graph graph, const std::vector<std::string>& passes) const {
  RewrittenGraph rewritten{std::move(graph), {}};
  for (std::size_t i = 0; i < passes.size();) {
    const auto found = tables_.find(passes[i]);
    if (found == tables_.end()) throw Exception(error(Code::not_found, "no plugin has a pass '{}'", passes[i]));
    std::vector<const char*> names;
    while (i < passes.size() && tables_.contains(passes[i]) && tables_.at(passes[i]) == found->second) names.push_back(passes[i++].c_str());
    rewritten.graph = cross(*found->second, std::move(rewritten.graph), names, rewritten.owners);
  }
  return rewritten;
}

}  // namespace tenon::golden
