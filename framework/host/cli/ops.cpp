// tenon ops list | show OP
#include <fmt/format.h>

#include <algorithm>

#include "command.h"
#include "core/ops/catalog.h"
#include "core/ops/gradients/gradient.h"
#include "host/diagnostics/suggestion.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

const char* meaning_of(const ops::Op& op) {
  if (op.body) return "pointwise body";
  if (op.loop) return "loop nest";
  if (op.scatter) return "scatter";
  if (op.decompose) return "decomposition";
  if (op.kernel) return "kernel";
  return "none";
}

json description_of(const ops::Op& op) {
  json aliases = json::array();
  for (const ops::Alias& alias : op.aliases) aliases.push_back(alias.signature.empty() ? alias.name : alias.name + alias.signature);
  json traits = json::array();
  for (const auto& [holds, name] : {std::pair(op.traits.random, "random"), std::pair(op.traits.may_raise, "may_raise"),
                                    std::pair(op.traits.opaque, "opaque"), std::pair(op.traits.control, "control"),
                                    std::pair(op.traits.creates, "creates"), std::pair(op.traits.copies, "copies")})
    if (holds) traits.push_back(name);
  return {{"name", op.name}, {"schema", op.schema}, {"meaning", meaning_of(op)}, {"gradient", ops::origin_of_gradient(op)}, {"aliases", aliases}, {"traits", traits}};
}

int list_ops(const Command& command) {
  json all = json::array();
  for (const ops::Op& op : ops::all_ops()) all.push_back(description_of(op));
  if (command.json) {
    fmt::print("{}\n", all.dump(2));
    return kDone;
  }
  std::vector<std::vector<std::string>> rows = {{"OP", "MEANING", "SCHEMA"}};
  for (const json& op : all) rows.push_back({op["name"].get<std::string>(), op["meaning"].get<std::string>(), op["schema"].get<std::string>()});
  print_table(rows);
  return kDone;
}

/// An op by its name or by one of another library.
const ops::Op& op_named(const std::string& name) {
  if (const ops::Op* op = ops::find_op(name)) return *op;
  if (const ops::Op* op = ops::find_alias(name).op) return *op;
  std::vector<std::string> known;
  for (const ops::Op& op : ops::all_ops()) known.push_back(op.name);
  throw CommandError(kBadUsage, fmt::format("unknown op '{}'{}", name, host::suggestion_text(name, known)));
}

int show(const Command& command, const std::string& name) {
  const json op = description_of(op_named(name));
  if (command.json) {
    fmt::print("{}\n", op.dump(2));
    return kDone;
  }
  fmt::print("{}{}\n  meaning: {}\n  gradient: {}\n", op["name"].get<std::string>(), op["schema"].get<std::string>(), op["meaning"].get<std::string>(),
             op["gradient"].get<std::string>());
  for (const json& trait : op["traits"]) fmt::print("  trait: {}\n", trait.get<std::string>());
  for (const json& alias : op["aliases"]) fmt::print("  answers to: {}\n", alias.get<std::string>());
  return kDone;
}

}  // namespace

void add_ops(CLI::App& app, Command& command) {
  CLI::App* ops_app = app.add_subcommand("ops", "the catalogue of ops")->require_subcommand(1)->fallthrough();
  CLI::App* list_app = ops_app->add_subcommand("list", "all ops")->fallthrough();
  add_json(*list_app, command);
  list_app->callback([&] { command.action = [&] { return list_ops(command); }; });

  CLI::App* show_app = ops_app->add_subcommand("show", "one op: schema, meaning, and the foreign names it answers to")->fallthrough();
  static std::string name;
  show_app->add_option("OP", name, "its name, or a foreign one such as torch.nn.functional.silu")->required();
  add_json(*show_app, command);
  show_app->callback([&] { command.action = [&] { return show(command, name); }; });
}

}  // namespace tenon::cli
