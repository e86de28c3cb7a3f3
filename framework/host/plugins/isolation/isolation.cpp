#include "host/plugins/isolation/isolation.h"

#include "core/abi/dlpack_types.h"
#include "host/plugins/find/refusal.h"

namespace tenon::host {
namespace {

using nlohmann::json;

/// A constant without its bytes. They lie in row-major order; there are none where only the type matters.
json description_of(const DLTensor& tensor) {
  return {{"code", tensor.dtype.code}, {"bits", tensor.dtype.bits}, {"shape", std::vector<std::int64_t>(tensor.shape, tensor.shape + tensor.ndim)},
          {"present", tensor.data != nullptr}};
}

std::string_view bytes_of_constant(const DLTensor& tensor) {
  if (!tensor.data) return {};
  std::size_t bytes = (std::size_t{tensor.dtype.bits} * tensor.dtype.lanes + 7) / 8;
  for (int d = 0; d < tensor.ndim; ++d) bytes *= static_cast<std::size_t>(tensor.shape[d]);
  return {static_cast<const char*>(tensor.data) + tensor.byte_offset, bytes};
}

/// A failure that the backend itself reported.
std::optional<Error> failure_in(const json& head) {
  const auto code = head.value("code", std::int32_t{TENON_INTERNAL});
  if (code == TENON_OK) return std::nullopt;
  const std::string text = head.value("text", std::string());
  return Error{failure_code(code), text.empty() ? "it gave no reason" : text};
}

void repeat_claims(const json& head, const TenonClaims& claims) {
  for (const json& group : head.at("groups")) {
    const auto nodes = group.get<std::vector<std::uint32_t>>();
    claims.claim(claims.self, nodes.data(), nodes.size());
  }
  for (const json& refusal : head.at("refusals")) {
    const std::string reason = refusal.at("reason"), text = refusal.at("text");
    claims.refuse(claims.self, refusal.at("node").get<std::uint32_t>(), reason.c_str(), text.c_str());
  }
}

}  // namespace

Result<Message> Isolation::call(json request, const std::vector<std::string_view>& parts) const {
  {
    const std::lock_guard lock(mutex_);
    if (given_up_) return *given_up_;
  }
  try {
    Helper::Answer answer = helper_->ask(std::move(request), parts, seconds_);
    for (const auto& [counter, n] : answer.reply.head.at("counts").items()) events_.count(counter, n.get<std::int64_t>());
    if (std::optional<Error> failed = failure_in(answer.reply.head)) return *std::move(failed);
    return std::move(answer.reply);
  } catch (const Refused& refused) {
    if (refused.refusal().reason == "timed_out") {
      const std::lock_guard lock(mutex_);
      given_up_ = error(Code::plugin_failed, "it once {}, and is not asked again in this session", refused.refusal().text);
    }
    return Error{Code::plugin_failed, "it " + refused.refusal().text};
  } catch (const Exception& problem) {
    return problem.error();
  } catch (const json::exception& problem) {
    return error(Code::malformed, "the helper process gave a wrong answer: {}", problem.what());
  }
}

Result<Message> Isolation::call_with_graph(json request, const TenonGraph& graph) const {
  request["constants"] = json::array();
  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(graph.buffer.data), graph.buffer.size}};
  for (std::size_t i = 0; i < graph.constant_count; ++i) {
    if (graph.constants[i]->device.device_type != kDLCPU) return error(Code::unsupported, "a constant in a device's memory cannot go to its helper process");
    request["constants"].push_back(description_of(*graph.constants[i]));
    parts.push_back(bytes_of_constant(*graph.constants[i]));
  }
  return call(std::move(request), parts);
}

std::optional<Error> Isolation::create(const std::string& create_options) const {
  const Result<Message> reply = call({{"call", "create"}, {"create_options", create_options}}, {});
  if (!reply) return reply.error();
  return std::nullopt;
}

std::optional<Error> Isolation::claim(const std::string& create_options, const TenonGraph& graph, const TenonClaims& claims) const {
  const Result<Message> reply = call_with_graph({{"call", "claim"}, {"create_options", create_options}, {"options", claims.options}}, graph);
  if (!reply) return reply.error();
  try {
    repeat_claims(reply->head, claims);
  } catch (const json::exception& problem) {
    return error(Code::malformed, "the helper process gave wrong claims: {}", problem.what());
  }
  return std::nullopt;
}

// It is loaded in a second helper: what only the process that compiled can load is no stored artefact.
Result<IsolatedArtefact> Isolation::compile(const std::string& create_options, const TenonGraph& graph, const std::string& options) const {
  const Result<Message> reply = call_with_graph({{"call", "compile"}, {"create_options", create_options}, {"options", options}}, graph);
  if (!reply) return reply.error();
  try {
    if (reply->parts.size() != 1) return error(Code::malformed, "the helper process gave {} artefacts", reply->parts.size());
    IsolatedArtefact made{std::string(reply->parts[0]), reply->head.at("constants_read").get<std::vector<std::uint32_t>>()};
    const Result<Message> loaded = call({{"call", "load"}, {"create_options", create_options}}, {made.stored});
    if (!loaded) return loaded.error();
    return made;
  } catch (const json::exception& problem) {
    return error(Code::malformed, "the helper process gave a wrong artefact: {}", problem.what());
  }
}

}  // namespace tenon::host
