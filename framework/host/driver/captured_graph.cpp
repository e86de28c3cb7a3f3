#include "host/driver/captured_graph.h"

#include <algorithm>

#include "core/base/regular_file.h"
#include "core/ir/buffer.h"
#include "core/ops/check/type_checker.h"
#include "core/ops/portable.h"
#include "host/diagnostics/failure.h"
#include "host/exported/program_file.h"
#include "host/passes/pass_manager.h"
#include "host/plugins/contact/given_tensor.h"
#include "host/plugins/contact/plugin_call.h"

TenonCapturedGraph::TenonCapturedGraph(std::shared_ptr<tenon::host::Session> session, tenon::ir::Graph graph, std::vector<std::shared_ptr<const void>> constants)
    : session_(std::move(session)), graph_(std::move(graph)), constants_(std::move(constants)), crossing_(graph_, store_) {}

namespace tenon::host {
namespace {

constexpr std::uint64_t kMostBytesToCapture = std::uint64_t{1} << 30;

/// Receives the graph of a frontend. Called by the plugin: does not throw.
struct Receiver {
  const TenonHost* watched;
  std::optional<ir::Graph> graph = {};
  std::vector<std::shared_ptr<const void>> constants = {};
  std::string defect = {};

  static void take(void* self, TenonBytes buffer, DLManagedTensorVersioned* const* tensors, std::size_t count) {
    auto& receiver = *static_cast<Receiver*>(self);
    try {
      if (receiver.defect.empty()) receiver.defect = receiver.graph ? "two graphs" : defect_of_given(buffer, nullptr, 0, tensors, count);
      if (receiver.defect.empty()) receiver.read(buffer, {tensors, count});
    } catch (const std::exception& e) {
      receiver.defect = e.what();
    }
  }

  void read(TenonBytes buffer, std::span<DLManagedTensorVersioned* const> tensors) {
    std::vector<const DLTensor*> borrowed;
    for (DLManagedTensorVersioned* tensor : tensors) {
      constants.push_back(owner_of(tensor, watched));
      if (const std::string wrong = defect_of(tensor); !wrong.empty()) throw Exception(Code::plugin_failed, fmt::format("its constant {} {}", borrowed.size(), wrong));
      borrowed.push_back(&tensor->dl_tensor);
    }
    std::vector<std::uint64_t> aligned(buffer.size / 8 + 1);
    if (buffer.size) std::copy_n(buffer.data, buffer.size, reinterpret_cast<std::uint8_t*>(aligned.data()));
    graph = ir::read_buffer({reinterpret_cast<const std::uint8_t*>(aligned.data()), buffer.size}, borrowed).value();
  }
};

}  // namespace

/// A file's graph may be anybody's: its types are checked, and it must not name calls that this process has recorded.
static void require_sound(const ir::Graph& graph, const std::string& path) {
  if (const auto accepted = ops::accept_graph(graph); !accepted) throw Exception(accepted.error().code, path + ": " + accepted.error().message);
  if (const std::string recorded = ops::why_not_read(graph); !recorded.empty()) throw Exception(Code::unsupported, path + ": " + recorded);
}

static std::unique_ptr<TenonCapturedGraph> load_exported(std::shared_ptr<Session> session, const std::string& path) {
  ExportedProgram program = load_program(path);
  require_sound(program.graph, path);
  if (const std::string stays = ops::why_not_portable(program.graph); !stays.empty()) throw Exception(Code::unsupported, fmt::format("{}: {}", path, stays));
  auto captured = std::make_unique<TenonCapturedGraph>(std::move(session), std::move(program.graph), std::move(program.constants));
  captured->signature = std::move(program.signature);
  return captured;
}

std::unique_ptr<TenonCapturedGraph> capture_file(std::shared_ptr<Session> session, const std::string& path, const char* options) {
  if (const std::string why = why_not_readable(path); !why.empty()) throw Exception(Code::not_found, fmt::format("cannot read {}: {}", path, why));
  if (path.ends_with(kExportedSuffix)) return load_exported(std::move(session), path);
  if (const std::uint64_t size = size_of_file(path); size > kMostBytesToCapture)
    throw Exception(Code::malformed, fmt::format("{} has {} bytes; a graph to read may have {}", path, size, kMostBytesToCapture));
  const Plugin* plugin = session->registry.frontend_for(path);
  if (!plugin) throw Exception(Code::not_found, session->registry.why_no_frontend(path));
  const TenonFrontend* frontend = plugin->descriptor->frontend;
  if (!frontend->capture_file) throw Exception(Code::unsupported, fmt::format("the frontend '{}' reads no files", plugin->name));
  Receiver receiver{plugin->watched()};
  const TenonFrontendResult result{sizeof(TenonFrontendResult), &receiver, &Receiver::take};
  take_report();
  const std::int32_t code = call_plugin(plugin->watched(), "capture_file", [&] { return frontend->capture_file(plugin->table, path.c_str(), options ? options : "{}", &result); });
  if (code != TENON_OK) {
    const std::optional<Report> report = take_report();
    throw Failure(failure_code(code), TENON_PHASE_CAPTURE, plugin->name,
                  report && !report->text.empty() ? report->text : fmt::format("the frontend '{}' cannot read {} and does not say why", plugin->name, path));
  }
  if (!receiver.graph || !receiver.defect.empty())
    throw Failure(Code::plugin_failed, TENON_PHASE_CAPTURE, plugin->name,
                  fmt::format("the frontend '{}' gave {} for {}", plugin->name, receiver.defect.empty() ? "no graph" : "a damaged graph (" + receiver.defect + ")", path));
  require_sound(*receiver.graph, path);
  return std::make_unique<TenonCapturedGraph>(std::move(session), std::move(*receiver.graph), std::move(receiver.constants));
}

std::unique_ptr<TenonCapturedGraph> run_passes(std::shared_ptr<Session> session, const TenonGraph& graph, const std::vector<std::string>& names) {
  ir::Graph read = ir::read_buffer(graph.buffer, {graph.constants, graph.constant_count}).value();
  ops::accept_graph(read).value();
  PipelineResult passed = PassManager(session->registry, session->events, session->config).run(std::move(read), names);
  return std::make_unique<TenonCapturedGraph>(std::move(session), std::move(passed.graph), std::move(passed.constants));
}

}  // namespace tenon::host
