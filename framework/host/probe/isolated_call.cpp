#include "isolated_call.h"

#include <algorithm>

#include "core/abi/graph_view.h"
#include "core/base/error.h"
#include "host/plugins/contact/plugin_call.h"
#include "steps.h"

namespace tenon::probe {
namespace {

using nlohmann::json;

/// The graph of a request, with constants that lie in the request's own memory.
class RequestedGraph {
 public:
  explicit RequestedGraph(const host::Message& request) {
    const json& descriptions = request.head.at("constants");
    if (request.parts.size() != 1 + descriptions.size()) throw Exception(Code::malformed, "a request without its constants");
    tensors_.reserve(descriptions.size());
    for (std::size_t i = 0; i < descriptions.size(); ++i) add(descriptions[i], request.parts[i + 1]);
    for (const DLTensor& tensor : tensors_) pointers_.push_back(&tensor);
    const std::string_view buffer = request.parts[0];
    graph_ = {sizeof graph_, {reinterpret_cast<const std::uint8_t*>(buffer.data()), buffer.size()}, pointers_.data(), pointers_.size()};
  }

  const TenonGraph& graph() const { return graph_; }

 private:
  void add(const json& description, std::string_view bytes) {
    shapes_.push_back(std::make_unique<std::vector<std::int64_t>>(description.at("shape").get<std::vector<std::int64_t>>()));
    std::vector<std::int64_t>& shape = *shapes_.back();
    void* data = description.at("present").get<bool>() ? const_cast<char*>(bytes.data()) : nullptr;
    const DLDataType dtype = {description.at("code").get<std::uint8_t>(), description.at("bits").get<std::uint8_t>(), 1};
    tensors_.push_back({data, {kDLCPU, 0}, static_cast<std::int32_t>(shape.size()), dtype, shape.data(), nullptr, 0});
  }

  std::vector<std::unique_ptr<std::vector<std::int64_t>>> shapes_;
  std::vector<DLTensor> tensors_;
  std::vector<const DLTensor*> pointers_;
  TenonGraph graph_{};
};

json head_of(const Outcome& outcome) { return {{"code", outcome.code}, {"text", outcome.text}}; }

/// A value for each symbol of the graph that it allows.
std::vector<std::int64_t> sizes_for(const TenonGraph& graph) {
  constexpr std::int64_t kUsual = 7;
  const GraphView view(graph.buffer);
  std::vector<std::int64_t> sizes;
  for (std::uint32_t s = 0; s < view.symbol_count(); ++s) sizes.push_back(std::clamp(kUsual, view.symbol(s).min, std::max(view.symbol(s).min, view.symbol(s).max)));
  return sizes;
}

json claim(Backend& backend, const TenonGraph& graph, const std::string& options) {
  CollectedClaims claims;
  json head = head_of(backend.claim(graph, options, claims));
  head["groups"] = std::move(claims.groups);
  head["refusals"] = std::move(claims.refusals);
  return head;
}

/// A failure to say how much workspace it needs is told where that is asked for a run.
json compile(Backend& backend, const TenonGraph& graph, const std::string& options, std::string& stored) {
  TenonArtefact artefact{};
  artefact.struct_size = sizeof artefact;
  const std::vector<std::int64_t> sizes = sizes_for(graph);
  const host::CompileScope scope(graph);
  json head = head_of(backend.compile(graph, options, artefact));
  head["constants_read"] = scope.constants_read();
  if (head["code"] != TENON_OK) return head;
  std::size_t bytes = 0;
  backend.workspace(artefact, sizes.data(), bytes);
  head.update(head_of(backend.serialise(artefact, stored)));
  backend.release(artefact);
  return head;
}

json load(Backend& backend, std::string_view bytes) {
  TenonArtefact artefact{};
  artefact.struct_size = sizeof artefact;
  const json head = head_of(backend.load(std::string(bytes), artefact));
  if (head["code"] == TENON_OK) backend.release(artefact);
  return head;
}

json answer(Backend& backend, const host::Message& request, std::string& stored) {
  const std::string what = request.head.at("call");
  if (what == "create") return head_of({});
  if (what == "load") return load(backend, request.parts.at(0));
  const RequestedGraph requested(request);
  if (what == "claim") return claim(backend, requested.graph(), request.head.at("options"));
  return compile(backend, requested.graph(), request.head.at("options"), stored);
}

}  // namespace

json answer_call(const TenonBackend& table, const TenonHost* host, const host::Message& request, std::string& stored) {
  if (!table.serialise || !table.load) throw Exception(Code::malformed, "only a backend that stores its artefacts can be isolated");
  Backend backend(table, host);
  const Outcome created = backend.create(request.head.at("create_options"));
  if (!created.ok()) return head_of(created);
  json head = answer(backend, request, stored);
  backend.destroy();
  return head;
}

}  // namespace tenon::probe
