// tenon verify FILE
#include <fmt/format.h>

#include "captured.h"
#include "command.h"
#include "core/ir/verifier.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

int verify(const Command& command, const std::string& file) {
  const Session session(command);
  json result = {{"file", file}, {"valid", false}, {"errors", json::array()}};
  try {
    const ir::Graph graph = capture(session, file).graph();
    for (const ir::Violation& violation : ir::find_violations(graph)) result["errors"].push_back(violation.text);
    result["nodes"] = graph.nodes().size();
    result["inputs"] = graph.inputs().size();
    result["outputs"] = graph.outputs().size();
  } catch (const CommandError& error) {
    if (error.status() == kBadUsage) throw;
    result["errors"].push_back(error.what());
  }
  result["valid"] = result["errors"].empty();
  if (command.json) {
    fmt::print("{}\n", result.dump(2));
  } else if (result["valid"]) {
    fmt::print("{}: a valid graph with {} nodes, {} inputs, {} outputs\n", file, result["nodes"].dump(), result["inputs"].dump(), result["outputs"].dump());
  } else {
    for (const json& error : result["errors"]) fmt::print(stderr, "tenon: {}\n", error.get<std::string>());
  }
  return result["valid"] ? kDone : kFailed;
}

}  // namespace

void add_verify(CLI::App& app, Command& command) {
  CLI::App* verify_app = app.add_subcommand("verify", "checks that a file holds a valid graph")->fallthrough();
  static std::string file;
  verify_app->add_option("FILE", file, "the graph")->required()->type_name("FILE.tir");
  add_json(*verify_app, command);
  verify_app->callback([&] { command.action = [&] { return verify(command, file); }; });
}

}  // namespace tenon::cli
