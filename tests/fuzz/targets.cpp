#include "fuzz/targets.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/abi/buffer_verifier.h"
#include "core/abi/graph_view.h"
#include "core/ir/buffer.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/check/type_checker.h"
#include "fuzz/execute.h"

namespace tenon::fuzz {
namespace {

[[noreturn]] void broken(const char* promise, const std::string& detail) {
  std::fprintf(stderr, "broken promise: %s\n%s\n", promise, detail.c_str());
  std::abort();
}

void promise(bool kept, const char* what, const std::string& detail = {}) {
  if (!kept) broken(what, detail);
}

/// Evaluates with values of the symbols; sizes that overflow or divide by zero say so with an exception.
std::uint64_t evaluate(const DimView& dim, const std::int64_t* symbols) {
  try {
    return static_cast<std::uint64_t>(dim.evaluate(symbols)) + dim.as_symbol().value_or(0);
  } catch (const std::overflow_error&) {
    return 1;
  } catch (const std::domain_error&) {
    return 2;
  }
}

std::uint64_t read(const TypeView& type, const std::int64_t* symbols) {
  std::uint64_t sum = static_cast<std::uint64_t>(type.dtype()) + type.rank() + size_of(type.dtype());
  for (std::uint32_t i = 0; i < type.rank(); ++i) sum += evaluate(type.dim(i), symbols);
  for (std::uint32_t i = 0; i < type.stated_strides().size(); ++i) sum += evaluate(type.stated_strides()[i], symbols);
  try {
    sum += type.strides(symbols).size() + static_cast<std::uint64_t>(type.byte_count(symbols));
  } catch (const std::overflow_error&) {
  } catch (const std::domain_error&) {
  }
  return sum + type.is_static();
}

std::uint64_t read(const AttributeView& a, const std::int64_t* symbols) {
  std::uint64_t sum = a.name().size() + static_cast<std::size_t>(a.name().data()[a.name().size()]);
  switch (a.kind()) {
    case TENON_ATTRIBUTE_BOOL: return sum + a.flag();
    case TENON_ATTRIBUTE_INT: return sum + evaluate(a.dim(), symbols);
    case TENON_ATTRIBUTE_FLOAT: return sum + (a.number() > 0);
    case TENON_ATTRIBUTE_STRING:
      for (char c : a.text()) sum += static_cast<unsigned char>(c);
      return sum;
    case TENON_ATTRIBUTE_DTYPE: return sum + size_of(a.dtype());
    case TENON_ATTRIBUTE_INTS:
      for (std::uint32_t i = 0; i < a.dims().size(); ++i) sum += evaluate(a.dims()[i], symbols);
      return sum;
    case TENON_ATTRIBUTE_FLOATS:
      for (double d : a.numbers()) sum += d > 0;
      return sum;
    default: return sum + a.is_none();
  }
}

std::uint64_t read(const ValueView& v, const std::int64_t* symbols) {
  std::uint64_t sum = v.id() + v.name().size() + read(v.type(), symbols);
  if (v.is_result()) return sum + v.node().id() + v.index();
  if (v.is_literal()) return sum + (v.literal_kind() == TENON_LITERAL_FLOAT ? v.number() > 0 : evaluate(v.literal_int(), symbols));
  return sum + v.index();
}

std::uint64_t read(const RegionView& region, const std::int64_t* symbols) {
  std::uint64_t sum = region.name().size();
  for (ValueView v : region.inputs()) sum += read(v, symbols);
  for (NodeView node : region.nodes()) {
    const LocationView l = node.location();
    sum += node.op().size() + node.origin() + l.file.size() + l.code.size() + l.function.size() + l.line;
    for (ValueView v : node.operands()) sum += read(v, symbols);
    for (ValueView v : node.results()) sum += read(v, symbols);
    for (AttributeView a : node.attributes()) sum += read(a, symbols);
    for (RegionView r : node.regions()) sum += read(r, symbols);
  }
  for (OutputView o : region.outputs()) sum += o.value.id() + o.kind + (o.target ? o.target->id() : 0);
  return sum;
}

std::uint64_t read(const GraphView& graph) {
  std::uint64_t sum = 0;
  for (std::int64_t value : {0, 1, -3, 4096}) {
    const std::vector<std::int64_t> symbols(graph.symbol_count() + 1, value);
    sum += read(graph.root(), symbols.data());
    for (std::uint32_t i = 0; i < graph.constant_count(); ++i) sum += read(graph.constant_type(i), symbols.data()) + graph.constant_name(i).size();
  }
  for (std::uint32_t i = 0; i < graph.symbol_count(); ++i) sum += graph.symbol_name(i).size() + static_cast<std::uint64_t>(graph.symbol(i).max);
  return sum;
}

/// A sound graph is the same after a trip through a buffer and after one through text.
void check_trips(const ir::Graph& graph) {
  const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
  promise(verify_buffer(ir::bytes_of(buffer)).empty(), "a sound graph has a sound buffer", verify_buffer(ir::bytes_of(buffer)));
  const Result<ir::Graph> again = ir::read_buffer(ir::bytes_of(buffer));
  promise(again.ok(), "a buffer that was written is read", again.ok() ? "" : again.error().message);
  promise(ir::write_buffer(*again) == buffer, "a buffer is read and written back to the same bytes");
  const std::string text = ir::print_graph(graph);
  const Result<ir::Graph> parsed = ir::parse_graph(text);
  promise(parsed.ok(), "a sound graph's text is parsed", (parsed.ok() ? "" : parsed.error().message) + "\n" + text);
  promise(ir::print_graph(*parsed) == text, "text is parsed and printed back the same", text + "\n" + ir::print_graph(*parsed));
  promise(ir::write_buffer(*parsed) == buffer, "text is parsed to the same graph", text);
}

/// Types are accepted, or refused with words about a node or an input.
Verdict check_types(const ir::Graph& graph, std::vector<ir::Dim>* not_negative = nullptr) {
  ops::TypeReport report = ops::check_types(graph);
  const std::vector<ir::Violation>& violations = report.violations;
  if (not_negative) *not_negative = std::move(report.not_negative);
  for (const ir::Violation& v : violations) promise(v.text.starts_with("node ") || v.text.starts_with("input "), "a refusal names the node", v.text);
  if (!violations.empty()) return Verdict::refused;
  const auto asked = ops::check_types(graph, 1, ops::AskedMeanings::all).violations;
  promise(asked.empty(), "inference that is said to be whole takes what the op's meaning takes", asked.empty() ? "" : asked[0].text + "\n" + ir::print_graph(graph));
  return Verdict::accepted;
}

}  // namespace

Verdict attack_buffer(std::span<const std::uint8_t> bytes) {
  // A copy of exactly that size, so that a read past its end is seen.
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  const TenonBytes buffer = ir::bytes_of(copy);
  if (!verify_buffer(buffer).empty()) {
    promise(!ir::read_buffer(buffer).ok(), "what the verifier refuses is not read");
    return Verdict::refused;
  }
  volatile std::uint64_t sink = read(GraphView(buffer));
  (void)sink;
  const Result<ir::Graph> graph = ir::read_buffer(buffer);
  if (!graph || ir::verify_graph(*graph)) return Verdict::refused;
  check_trips(*graph);
  return check_types(*graph);
}

Verdict attack_text(std::string_view text) {
  const std::string copy(text);
  const Result<ir::Graph> graph = ir::parse_graph(copy);
  if (!graph) {
    const std::string& message = graph.error().message;
    const bool placed = message.starts_with("line ") || message.starts_with("graph @");
    promise(placed && graph.error().code == Code::malformed, "a refusal names line and column, or what is malformed", message);
    return Verdict::refused;
  }
  check_trips(*graph);
  return check_types(*graph);
}

bool has_devices(const ir::Graph& graph) {
  for (std::size_t t = 0; t < graph.types().size(); ++t)
    if (graph.types()[TypeId(t)].device != ir::Device()) return true;
  return false;
}

/// Simpler nodes that stand for composite ones keep to the devices.
void check_expansion(ir::Graph graph) {
  const std::string before = ir::print_graph(graph);
  for (NodeId n : std::vector<NodeId>(graph.nodes().begin(), graph.nodes().end()))
    if (const ops::Op* op = ops::find_op(graph.node(n).op); op && (op->decompose || op->body)) ops::expand_node(graph, n);
  const ops::TypeReport report = ops::check_graph(graph);
  promise(report.violations.empty(), "nodes that stand for others fit where these did", report.violations.empty() ? "" : before + report.violations[0].text + "\n" + ir::print_graph(graph));
}

Verdict attack_types(const ir::Graph& graph, Random& random, bool& ran) {
  if (ir::verify_graph(graph)) return Verdict::refused;
  check_trips(graph);
  std::vector<ir::Dim> not_negative;
  if (check_types(graph, &not_negative) == Verdict::refused) return Verdict::refused;
  if (has_devices(graph)) check_expansion(graph.clone());
  const auto symbols = sizes_to_run(graph, not_negative, random);
  if (!symbols) return Verdict::accepted;
  run_on_reference(graph, *symbols, random);
  ran = true;
  return Verdict::accepted;
}

}  // namespace tenon::fuzz
