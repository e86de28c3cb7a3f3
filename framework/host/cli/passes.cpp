// tenon passes list | run PIPELINE FILE
#include <fmt/format.h>

#include "captured.h"
#include "command.h"
#include "core/ir/printer.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

int list_passes(const Command& command) {
  const Session session(command);
  const json passes = session.query("passes");
  if (command.json) {
    fmt::print("{}\n", passes.dump(2));
    return kDone;
  }
  std::vector<std::vector<std::string>> rows = {{"PASS", "PLUGIN", ""}};
  for (const json& pass : passes) rows.push_back({pass["name"].get<std::string>(), pass["plugin"].get<std::string>(), pass.value("meaning", "")});
  print_table(rows);
  return kDone;
}

int run(Command& command, const std::string& pipeline, const std::string& file) {
  // As a setting, so that an unknown pass is an error of usage with the nearest right name.
  command.settings.push_back("passes.pipeline=" + pipeline);
  const Session session(command);
  const Captured captured = capture(session, file);
  TenonCapturedGraph* result = nullptr;
  check(tenon_passes_run(session.get(), &captured.buffer(), nullptr, 0, &result));
  const ir::Graph graph = Captured(result).graph();
  if (command.json) {
    fmt::print("{}\n", json{{"graph", ir::print_graph(graph)}, {"nodes_before", captured.graph().nodes().size()}, {"nodes", graph.nodes().size()}}.dump(2));
  } else {
    fmt::print("{}", ir::print_graph(graph));
  }
  return kDone;
}

}  // namespace

void add_passes(CLI::App& app, Command& command) {
  CLI::App* passes = app.add_subcommand("passes", "the passes there are; run some over a graph")->require_subcommand(1)->fallthrough();
  CLI::App* list_app = passes->add_subcommand("list", "all passes, with the plugin that has each")->fallthrough();
  add_json(*list_app, command);
  list_app->callback([&] { command.action = [&] { return list_passes(command); }; });

  CLI::App* run_app = passes->add_subcommand("run", "runs passes over a graph and prints it")->fallthrough();
  static std::string pipeline, file;
  run_app->add_option("PIPELINE", pipeline, "passes, separated by commas")->required();
  run_app->add_option("FILE", file, "the graph")->required()->type_name("FILE.tir");
  add_json(*run_app, command);
  run_app->callback([&] { command.action = [&] { return run(command, pipeline, file); }; });
}

}  // namespace tenon::cli
