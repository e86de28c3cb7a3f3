#include "table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/ir/printer.h"

namespace tenon::printer {
namespace {

constexpr std::size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

std::string value_text(const ir::Graph& graph, ValueId v) {
  const ir::Value& value = graph.value(v);
  return value.kind == ir::ValueKind::literal ? ir::print_literal(graph, value.literal) : "%" + value.name;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Row node_row(const ir::Graph& graph, const ir::Node& node) {
  std::vector<std::string> names, arguments, attributes, types;
  for (ValueId r : node.results) {
    names.push_back(graph.value(r).name);
    types.push_back(ir::print_type(graph, graph.type(r)));
  }
  for (ValueId v : node.operands) arguments.push_back(value_text(graph, v));
  for (const ir::NamedAttribute& a : node.attributes) attributes.push_back(a.name.text() + "=" + ir::print_attribute(graph, a.value));
  return {"call", joined(names), node.op, joined(arguments), joined(attributes), joined(types)};
}

std::vector<Row> rows_of(const ir::Graph& graph) {
  std::vector<Row> rows = {{"opcode", "name", "target", "args", "kwargs", "type"}};
  for (ValueId v : graph.inputs()) rows.push_back({"placeholder", graph.value(v).name, graph.value(v).name, "", "", ir::print_type(graph, graph.type(v))});
  for (NodeId n : graph.nodes()) rows.push_back(node_row(graph, graph.node(n)));
  for (const ir::Output& output : graph.outputs()) {
    constexpr const char* kinds[] = {"result", "update", "saved"};
    const std::string target = output.target ? "%" + graph.value(output.target).name : "";
    rows.push_back({"output", kinds[static_cast<std::size_t>(output.kind)], target, value_text(graph, output.value), "", ir::print_type(graph, graph.type(output.value))});
  }
  return rows;
}

}  // namespace

std::string table_of(const ir::Graph& graph) {
  const std::vector<Row> rows = rows_of(graph);
  std::array<std::size_t, kColumns> width{};
  for (const Row& row : rows)
    for (std::size_t c = 0; c < kColumns; ++c) width[c] = std::max(width[c], row[c].size());
  std::string text;
  const auto add_line = [&](const Row& row) {
    std::string line;
    for (std::size_t c = 0; c < kColumns; ++c) line += row[c] + std::string(width[c] - row[c].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  Row rule;
  for (std::size_t c = 0; c < kColumns; ++c) rule[c] = std::string(width[c], '-');
  for (std::size_t r = 0; r < rows.size(); ++r) {
    add_line(rows[r]);
    if (r == 0) add_line(rule);
  }
  return text;
}

}  // namespace tenon::printer
