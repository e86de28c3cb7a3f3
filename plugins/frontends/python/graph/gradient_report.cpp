#include "python/graph/gradient_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ir/printer.h"

namespace tenon::python {
namespace {

std::int64_t bytes_of(const CapturedGraph& captured, const ir::Type& type) {
  auto bytes = static_cast<std::int64_t>(size_of(type.dtype));
  for (const ir::Dim& d : type.shape) bytes *= d.is_constant() ? d.constant() : d.evaluate({captured.numbers->values(), captured.numbers->sources().size()});
  return bytes;
}

std::string line_of(const ir::Graph& graph, ir::ValueId value, std::int64_t bytes, const std::string& why) {
  return fmt::format("%{}: {}, {} bytes: {}", graph.value(value).name, ir::print_type(graph, graph.type(value)), bytes, why);
}

}  // namespace

std::vector<BackwardReport> backward_reports(const CapturedGraph& captured) {
  std::vector<BackwardReport> reports;
  if (!captured.gradients) return reports;
  const ir::Graph& forward = captured.gradients->forward;
  for (const GradientNode& node : captured.gradients->nodes) {
    BackwardReport& report = reports.emplace_back();
    report.graph = ir::print_graph(node.whole.captured->graph());
    for (std::uint32_t i : node.part.kept_inputs) {
      const ir::ValueId value = forward.inputs()[i];
      report.kept.push_back(line_of(forward, value, bytes_of(captured, forward.type(value)), "an input, which the program has"));
    }
    for (std::uint32_t o : node.part.kept_outputs) {
      const ir::Output& output = forward.outputs()[o];
      const std::int64_t bytes = bytes_of(captured, forward.type(output.value));
      if (output.kind == ir::OutputKind::result) {
        report.kept.push_back(line_of(forward, output.value, bytes, "a result, which the program has"));
        continue;
      }
      const bool is_input = forward.value(output.value).kind == ir::ValueKind::input;
      report.kept_bytes += bytes;
      report.kept.push_back(line_of(forward, output.value, bytes, is_input ? "kept, since the segment writes over it" : fmt::format("kept of {}", forward.node(forward.value(output.value).node).op)));
    }
  }
  return reports;
}

}  // namespace tenon::python
