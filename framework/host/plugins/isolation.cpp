#include "host/plugins/isolation.h"

#include "core/abi/dlpack_types.h"
#include "host/plugins/helper_run.h"
#include "host/plugins/message_file.h"
#include "host/plugins/refusal.h"

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
  return Error{code > TENON_OK && code <= TENON_INTERNAL ? static_cast<Code>(code) : Code::plugin_failed, text.empty() ? "it gave no reason" : text};
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

Result<Message> Isolation::call(const char* what, const std::string& create_options, const TenonGraph& graph, const std::string& options) const {
  json head = {{"call", what}, {"create_options", create_options}, {"options", options}, {"constants", json::array()}};
  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(graph.buffer.data), graph.buffer.size}};
  for (std::size_t i = 0; i < graph.constant_count; ++i) {
    head["constants"].push_back(description_of(*graph.constants[i]));
    parts.push_back(bytes_of_constant(*graph.constants[i]));
  }
  try {
    const Descriptor request = anonymous_file(), reply = anonymous_file();
    write_message(request.get(), head, parts);
    const int files[] = {library_.get(), request.get(), reply.get()};
    const std::string more[] = {"call"};
    run_helper(program_, manifest_, more, files, seconds_);
    Message message = read_message(reply.get());
    if (std::optional<Error> failed = failure_in(message.head)) return *std::move(failed);
    return message;
  } catch (const Refused& refused) {
    return Error{Code::plugin_failed, refused.refusal().text};
  } catch (const Exception& problem) {
    return problem.error();
  } catch (const json::exception& problem) {
    return error(Code::malformed, "the helper process gave a wrong answer: {}", problem.what());
  }
}

std::optional<Error> Isolation::claim(const std::string& create_options, const TenonGraph& graph, const TenonClaims& claims) const {
  const Result<Message> reply = call("claim", create_options, graph, "{}");
  if (!reply) return reply.error();
  try {
    repeat_claims(reply->head, claims);
  } catch (const json::exception& problem) {
    return error(Code::malformed, "the helper process gave wrong claims: {}", problem.what());
  }
  return std::nullopt;
}

Result<IsolatedArtefact> Isolation::compile(const std::string& create_options, const TenonGraph& graph, const std::string& options) const {
  const Result<Message> reply = call("compile", create_options, graph, options);
  if (!reply) return reply.error();
  try {
    if (reply->parts.size() != 1) return error(Code::malformed, "the helper process gave {} artefacts", reply->parts.size());
    return IsolatedArtefact{std::string(reply->parts[0]), reply->head.at("constants_read").get<std::vector<std::uint32_t>>()};
  } catch (const json::exception& problem) {
    return error(Code::malformed, "the helper process gave a wrong artefact: {}", problem.what());
  }
}

}  // namespace tenon::host
