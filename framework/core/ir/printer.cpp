#include "core/ir/printer.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/float16.h"
#include "core/ir/names.h"

namespace tenon::ir {
namespace {

constexpr std::uint64_t kNan = 0x7ff8000000000000ull;

template <class Range, class Print>
std::string joined(const Range& items, Print&& print) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + print(item);
  return text;
}

std::string at_name(const std::string& name) { return "@" + (is_name(name) ? name : print_string(name)); }

/// A number of a constant's dtype; float32 in its own shortest form.
std::string element_text(DType dtype, const char* p) {
  const auto load = [p]<class T>(T) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
  };
  const auto float_text = [](float f) {
    std::string text = std::isfinite(f) ? fmt::format("{}", f) : print_float(f);
    return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
  };
  switch (dtype) {
    case DType::b8: return load(std::uint8_t()) ? "true" : "false";
    case DType::u8: return fmt::format("{}", load(std::uint8_t()));
    case DType::i8: return fmt::format("{}", static_cast<int>(load(std::int8_t())));
    case DType::i16: return fmt::format("{}", load(std::int16_t()));
    case DType::i32: return fmt::format("{}", load(std::int32_t()));
    case DType::i64: return fmt::format("{}", load(std::int64_t()));
    case DType::f16: return float_text(float_of_half(load(std::uint16_t())));
    case DType::bf16: return float_text(float_of_bfloat16(load(std::uint16_t())));
    case DType::f32: return float_text(load(float()));
    default: return print_float(load(double()));
  }
}

class Printer {
 public:
  Printer(const Graph& root, const PrintOptions& options) : root_(root), options_(options) {}

  void graph(const Graph& g, std::string& out, const std::string& indent) const {
    out += "graph " + at_name(g.name);
    if (!g.symbols().empty()) out += " [" + joined(g.symbols(), [](const SymbolInfo& s) { return symbol(s); }) + "]";
    out += " (" + joined(g.inputs(), [&](ValueId v) { return "%" + g.value(v).name + ": " + print_type(root_, g.type(v)); }) + ") {\n";
    for (const Constant& c : g.constants()) out += indent + "  const " + at_name(c.name) + ": " + print_type(root_, c.type) + elements(c) + "\n";
    for (NodeId n : g.nodes()) {
      out += indent + "  ";
      node(g, n, out, indent + "  ");
      out += "\n";
    }
    out += indent + "  return";
    if (!g.outputs().empty()) out += " " + joined(g.outputs(), [&](const Output& o) { return output(g, o); });
    out += "\n" + indent + "}";
  }

  void node(const Graph& g, NodeId id, std::string& out, const std::string& indent) const {
    const Node& n = g.node(id);
    out += joined(n.results, [&](ValueId v) { return "%" + g.value(v).name + ": " + print_type(root_, g.type(v)); });
    if (!n.results.empty()) out += " = ";
    out += n.op.text() + "(" + joined(n.operands, [&](ValueId v) { return value(g, v); }) + ")";
    if (!n.attributes.empty()) out += " {" + joined(n.attributes, [&](const NamedAttribute& a) { return a.name.text() + " = " + attribute(n, a); }) + "}";
    for (RegionId r : n.regions) {
      out += " ";
      graph(g.region(r), out, indent);
    }
    if (!options_.locations || !n.location.is_known()) return;
    const Location& l = *n.location;
    out += fmt::format(" @ {}:{} {} {}", print_string(l.file), l.line, print_string(l.function), print_string(l.code));
  }

 private:
  static std::string symbol(const SymbolInfo& s) {
    std::string text = s.name;
    if (s.min != 0 || s.max != INT64_MAX) text += fmt::format(": {}..{}", s.min, s.max == INT64_MAX ? "" : std::to_string(s.max));
    return s.hint < 0 ? text : text + fmt::format(" ~ {}", s.hint);
  }

  std::string value(const Graph& g, ValueId v) const {
    const Value& value = g.value(v);
    return value.kind == ValueKind::literal ? print_literal(root_, value.literal) : "%" + value.name;
  }

  /// The index of a constant is printed as its name.
  std::string attribute(const Node& n, const NamedAttribute& a) const {
    const Dim* d = std::get_if<Dim>(&a.value);
    if (n.op == "constant" && a.name == "index" && d && d->is_constant() && d->constant() >= 0 && static_cast<std::size_t>(d->constant()) < root_.constants().size()) {
      const Constant& c = root_.constants()[static_cast<std::size_t>(d->constant())];
      if (&c == first_named(c.name)) return at_name(c.name);
    }
    return print_attribute(root_, a.value);
  }

  const Constant* first_named(const std::string& name) const {
    for (const Constant& c : root_.constants())
      if (c.name == name) return &c;
    return nullptr;
  }

  std::string output(const Graph& g, const Output& o) const {
    switch (o.kind) {
      case OutputKind::update: return "update %" + g.value(o.target).name + " = " + value(g, o.value);
      case OutputKind::saved: return "saved " + value(g, o.value);
      default: return value(g, o.value);
    }
  }

  std::string elements(const Constant& c) const {
    if (!c.data || !c.type.device.is_host() || is_complex(c.type.dtype)) return "";
    const Dim count = c.type.element_count();
    if (!count.is_constant() || static_cast<std::size_t>(count.constant()) > options_.inline_constant_elements) return "";
    std::string text;
    const auto* bytes = static_cast<const char*>(c.data);
    for (std::int64_t i = 0; i < count.constant(); ++i)
      text += (i ? ", " : "") + element_text(c.type.dtype, bytes + static_cast<std::size_t>(i) * size_of(c.type.dtype));
    return " = [" + text + "]";
  }

  const Graph& root_;
  const PrintOptions& options_;
};

}  // namespace

std::string print_graph(const Graph& graph, const PrintOptions& options) {
  std::string out;
  Printer(graph, options).graph(graph, out, "");
  return out + "\n";
}

std::string print_node(const Graph& graph, NodeId node, const PrintOptions& options, const Graph* symbols) {
  std::string out;
  Printer(symbols ? *symbols : graph, options).node(graph, node, out, "");
  return out;
}

std::string print_dim(const Graph& graph, const Dim& dim) {
  return dim.to_string([&](SymbolId s) { return s.value < graph.symbols().size() ? graph.symbols()[s.value].name : fmt::format("s{}?", s.value); });
}

std::string print_type(const Graph& graph, const Type& type) {
  if (!type.is_tensor()) return "token";
  const auto dim = [&](const Dim& d) { return print_dim(graph, d); };
  std::string text = fmt::format("{}[{}]", name_of(type.dtype), joined(type.shape, dim));
  if (type.strides) text += "{" + joined(*type.strides, dim) + "}";
  return type.device == Device() ? text : text + " on " + device_text(type.device);
}

std::string print_literal(const Graph& graph, const Literal& value) {
  if (const bool* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (const Dim* d = std::get_if<Dim>(&value)) return print_dim(graph, *d);
  return print_float(std::get<double>(value));
}

std::string print_attribute(const Graph& graph, const Attribute& value) {
  struct Visitor {
    const Graph& graph;
    std::string operator()(std::monostate) const { return "none"; }
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(const Dim& d) const { return print_dim(graph, d); }
    std::string operator()(double d) const { return print_float(d); }
    std::string operator()(const std::string& s) const { return print_string(s); }
    std::string operator()(DType t) const { return std::string(name_of(t)); }
    std::string operator()(const std::vector<Dim>& list) const { return "[" + joined(list, *this) + "]"; }
    std::string operator()(const std::vector<double>& list) const { return list.empty() ? "[.]" : "[" + joined(list, *this) + "]"; }
  };
  return std::visit(Visitor{graph}, value);
}

std::string print_float(double value) {
  if (std::isnan(value)) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    return bits == kNan ? "nan" : fmt::format("nan({:#x})", bits);
  }
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

std::string print_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else out += c;
    }
  }
  return out + "\"";
}

}  // namespace tenon::ir
