#include "isolated_call.h"

#include "core/base/error.h"
#include "guarded_call.h"
#include "host/plugins/host_table.h"
#include "host/plugins/message_file.h"
#include "host/plugins/plugin_call.h"

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

/// The code of a call, with the plugin's words where it failed.
json outcome(std::int32_t code) {
  const std::optional<host::Report> report = host::take_report();
  return {{"code", code}, {"text", code != TENON_OK && report ? report->text : ""}};
}

struct Collected {
  json groups = json::array(), refusals = json::array();
};

json claim(const TenonBackend& backend, void* self, const TenonGraph& graph) {
  Collected collected;
  const TenonClaims claims = {
      sizeof(TenonClaims), &collected,
      [](void* to, const std::uint32_t* nodes, std::size_t count) {
        static_cast<Collected*>(to)->groups.push_back(nodes ? std::vector<std::uint32_t>(nodes, nodes + count) : std::vector<std::uint32_t>());
      },
      [](void* to, std::uint32_t node, const char* reason, const char* text) {
        static_cast<Collected*>(to)->refusals.push_back({{"node", node}, {"reason", reason ? reason : ""}, {"text", text ? text : ""}});
      }};
  json head = outcome(guarded("claim", [&] { return backend.claim(self, &graph, &claims); }));
  head["groups"] = std::move(collected.groups);
  head["refusals"] = std::move(collected.refusals);
  return head;
}

json compile(const TenonBackend& backend, void* self, const TenonGraph& graph, const std::string& options, std::string& stored) {
  TenonArtefact artefact{};
  artefact.struct_size = sizeof artefact;
  const host::CompileScope scope(graph);
  json head = outcome(guarded("compile", [&] { return backend.compile(self, &graph, options.c_str(), &artefact); }));
  head["constants_read"] = scope.constants_read();
  if (head["code"] != TENON_OK) return head;
  const auto sink = [](void* to, TenonBytes bytes) { static_cast<std::string*>(to)->assign(reinterpret_cast<const char*>(bytes.data), bytes.size); };
  head.update(outcome(guarded("serialise", [&] { return backend.serialise(artefact.self, sink, &stored); })));
  return head;
}

json answer(const TenonBackend& backend, void* self, const host::Message& request, std::string& stored) {
  const RequestedGraph requested(request);
  if (request.head.at("call") == "claim") return claim(backend, self, requested.graph());
  return compile(backend, self, requested.graph(), request.head.at("options"), stored);
}

}  // namespace

void answer_call(const TenonPlugin& plugin, int request, int reply) {
  if (!plugin.backend || !plugin.backend->serialise) throw Exception(Code::malformed, "only a backend that stores its artefacts can be isolated");
  const TenonHost* table = host::HostTable::make_lasting(plugin.name, plugin.abi).functions();
  const host::Message message = host::read_message(request);
  const std::string create_options = message.head.at("create_options");
  void* self = nullptr;
  const TenonBackend& backend = *plugin.backend;
  json head = outcome(backend.create ? guarded("create", [&] { return backend.create(table, create_options.c_str(), &self); }) : std::int32_t{TENON_OK});
  std::string stored;
  if (head["code"] == TENON_OK) head = answer(backend, self, message, stored);
  const std::string_view parts[] = {stored};
  host::write_message(reply, head, parts);
}

}  // namespace tenon::probe
