// The invariants of a graph. Each is checked by the function that bears its number, and nothing else is checked.
//
//  1. Every id refers to something that exists, a value's type too. Each node of the order occurs in it once.
//  2. A value is an input, a literal, or a result. The inputs and the results know their own position; a result belongs to one node.
//  3. An operand is an input, a literal, or a result of a node that comes earlier in the same graph.
//  4. Inputs and results have names; names of values are unique in their graph, and well-formed. Literals have the type of their
//     number: bool[], i64[] or f64[].
//  5. Types: at most 64 dimensions; a constant dimension is not negative; bytes can be counted in 63 bits; as many strides as dimensions, if any are stated; a device
//     has a kind and is not negative; a token has no dimensions, dtype or device. Sizes, strides, attributes and literals mention only symbols of the outermost graph.
//  6. Ops and attributes have well-formed names of at most 255 bytes; attributes are sorted by name, each name once.
//  7. Symbols have unique names that are no reserved words, and a range that is not empty.
//  8. Constants are row-major tensors of constant size. A node `constant` has one result, no operands, and an integer attribute
//     `index`: the constant of that number has the result's type.
//  9. A region belongs to one node. It has no symbols and constants of its own, and plain results only. Regions nest at most 32 deep.
// 10. An output is an input or a result. The target of an update is an input of the same dtype, shape and device as its value, and has no
//     other update.
// Which devices the operands and results of a node may be on depends on its op: rules b, c and e of ops/check/type_checker.cpp.
#include "core/ir/verifier.h"

#include <algorithm>
#include <unordered_set>

#include "core/abi/graph_buffer.h"
#include "core/ir/names.h"
#include "core/ir/printer.h"

namespace tenon::ir {
namespace {

class Verifier {
 public:
  Verifier(const Graph& root, std::size_t limit) : root_(root), limit_(limit) {}

  std::vector<Violation> run() {
    check_symbols_7();
    check_constants_8();
    check_graph(root_, 0);
    return std::move(violations_);
  }

 private:
  bool full() const { return violations_.size() >= limit_; }

  void report(std::string text) {
    if (full()) return;
    Violation v{std::move(text), outer_node_, {}};
    if (node_) v.location = graph_->node(node_).location;
    violations_.push_back(std::move(v));
  }

  template <class... Args>
  void report_node(fmt::format_string<Args...> format, Args&&... args) {
    report(fmt::format("node {} ({}): ", node_.value, graph_->node(node_).op) + fmt::format(format, std::forward<Args>(args)...));
  }

  bool exists(ValueId v) const { return v.value < graph_->value_capacity() && graph_->value(v).type.value < graph_->types().size(); }

  std::string name(ValueId v) const {
    const std::string& n = graph_->value(v).name;
    return n.empty() ? fmt::format("value {}", v.value) : "%" + n;
  }

  void check_graph(const Graph& g, std::uint32_t depth) {
    const Graph* outer = std::exchange(graph_, &g);
    const NodeId outer_node = std::exchange(node_, NodeId());
    std::vector<bool> defined(g.value_capacity(), false), placed(g.node_capacity(), false), owned(g.region_capacity(), false);
    names_.emplace_back().reserve(g.value_capacity());
    check_inputs(defined);
    for (NodeId n : g.nodes()) {
      if (full()) break;
      if (n.value >= g.node_capacity() || placed[n.value]) {
        report(fmt::format("the order of nodes names node {} twice, or it does not exist (1)", n.value));
        continue;
      }
      placed[n.value] = true;
      node_ = n;
      if (depth == 0) outer_node_ = n;
      check_node(g.node(n), defined, owned, depth);
    }
    node_ = NodeId();
    if (depth == 0) outer_node_ = NodeId();
    check_outputs_10(defined, depth);
    names_.pop_back();
    graph_ = outer;
    node_ = outer_node;
  }

  void check_inputs(std::vector<bool>& defined) {
    const auto inputs = graph_->inputs();
    for (std::uint32_t i = 0; i < inputs.size(); ++i) {
      if (!exists(inputs[i])) {
        report(fmt::format("input {} does not exist (1)", i));
        continue;
      }
      const Value& v = graph_->value(inputs[i]);
      if (v.kind != ValueKind::input || v.index != i) report(fmt::format("input {} ({}) does not know that it is (2)", i, name(inputs[i])));
      check_name_4(inputs[i]);
      check_type_5(graph_->type(inputs[i]), name(inputs[i]));
      defined[inputs[i].value] = true;
    }
  }

  void check_node(const Node& node, std::vector<bool>& defined, std::vector<bool>& owned, std::uint32_t depth) {
    for (ValueId v : node.operands) check_operand_3(v, defined);
    check_attributes_6(node);
    for (RegionId r : node.regions) {
      if (r.value >= graph_->region_capacity() || owned[r.value]) {
        report_node("region {} does not exist, or belongs to another node too (9)", r.value);
        continue;
      }
      owned[r.value] = true;
      check_region_9(graph_->region(r), depth + 1);
    }
    check_results_2(node, defined);
    if (node.op == "constant") check_constant_node_8(node);
  }

  void check_operand_3(ValueId v, const std::vector<bool>& defined) {
    if (!exists(v)) return report_node("operand {} does not exist (1)", v.value);
    const Value& value = graph_->value(v);
    if (value.kind == ValueKind::literal) return check_literal_4(v);
    if (!defined[v.value]) report_node("operand {} is not defined before its use (3)", name(v));
  }

  void check_literal_4(ValueId v) {
    static constexpr DType kTypes[] = {DType::b8, DType::i64, DType::f64};
    const Value& value = graph_->value(v);
    const Type& t = graph_->type(v);
    if (!t.is_tensor() || t.rank() != 0 || t.strides || t.dtype != kTypes[value.literal.index()]) report_node("a literal has another type than its number (4)");
    if (const Dim* d = std::get_if<Dim>(&value.literal)) check_symbols_of_5(*d, "a literal");
  }

  void check_results_2(const Node& node, std::vector<bool>& defined) {
    for (std::uint32_t i = 0; i < node.results.size(); ++i) {
      const ValueId r = node.results[i];
      if (!exists(r)) {
        report_node("result {} does not exist (1)", i);
        continue;
      }
      const Value& v = graph_->value(r);
      if (v.kind != ValueKind::result || v.node != node_ || v.index != i || defined[r.value]) report_node("result {} ({}) does not belong to it (2)", i, name(r));
      check_name_4(r);
      check_type_5(graph_->type(r), name(r));
      defined[r.value] = true;
    }
  }

  void check_name_4(ValueId v) {
    const std::string& n = graph_->value(v).name;
    if (!is_name(n)) report(fmt::format("'{}' is no name for a value (4)", n));
    else if (!names_.back().insert(n).second) report(fmt::format("two values are called %{} (4)", n));
  }

  void check_type_5(const Type& t, const std::string& of) {
    if (!t.is_tensor()) {
      if (t != Type::token()) report(of + ": a token has dimensions, a dtype or a device (5)");
      return;
    }
    if (t.device.kind == 0 || t.device.index < 0) report(fmt::format("{}: there is no device {} (5)", of, device_text(t.device)));
    if (t.rank() > TENON_MAX_RANK) report(fmt::format("{}: {} dimensions are more than {} (5)", of, t.rank(), TENON_MAX_RANK));
    if (!bytes_are_countable(t.shape, size_of(t.dtype))) report(of + ": its bytes cannot be counted in 63 bits (5)");
    if (t.strides && t.strides->size() != t.rank()) report(fmt::format("{}: {} strides for {} dimensions (5)", of, t.strides->size(), t.rank()));
    for (const Dim& d : t.shape) {
      if (d.is_constant() && d.constant() < 0) report(fmt::format("{}: the dimension {} is negative (5)", of, d.constant()));
      check_symbols_of_5(d, of);
    }
    if (t.strides)
      for (const Dim& d : *t.strides) check_symbols_of_5(d, of);
  }

  void check_symbols_of_5(const Dim& d, const std::string& of) {
    if (d.is_constant()) return;
    d.for_each_symbol([&](SymbolId s) {
      if (s.value >= root_.symbols().size()) report(fmt::format("{}: symbol {} does not exist (5)", of, s.value));
    });
  }

  void check_attributes_6(const Node& node) {
    if (!is_op_name(node.op) || node.op.size() > 255) report_node("'{}' is no name for an op (6)", node.op);
    for (std::size_t i = 0; i < node.attributes.size(); ++i) {
      const NamedAttribute& a = node.attributes[i];
      if (!is_name(a.name) || a.name.size() > 255) report_node("'{}' is no name for an attribute (6)", a.name);
      if (i > 0 && node.attributes[i - 1].name >= a.name) report_node("attribute '{}' is not in its place (6)", a.name);
      if (const Dim* d = std::get_if<Dim>(&a.value)) check_symbols_of_5(*d, a.name);
      if (const auto* list = std::get_if<std::vector<Dim>>(&a.value))
        for (const Dim& d : *list) check_symbols_of_5(d, a.name);
    }
  }

  void check_symbols_7() {
    std::unordered_set<std::string_view> seen;
    for (const SymbolInfo& s : root_.symbols()) {
      if (!is_name(s.name) || is_reserved(s.name)) report(fmt::format("'{}' is no name for a symbol (7)", s.name));
      else if (!seen.insert(s.name).second) report(fmt::format("two symbols are called {} (7)", s.name));
      if (s.min > s.max) report(fmt::format("the range {}..{} of symbol {} is empty (7)", s.min, s.max, s.name));
      if (s.hint < -1) report(fmt::format("symbol {} has the hint {} (7)", s.name, s.hint));
    }
  }

  void check_constants_8() {
    for (const Constant& c : root_.constants()) {
      check_type_5(c.type, "constant @" + c.name);
      const bool is_static = std::all_of(c.type.shape.begin(), c.type.shape.end(), [](const Dim& d) { return d.is_constant() && d.constant() >= 0; });
      if (!c.type.is_tensor() || !is_static || c.type.strides || c.type.rank() > TENON_MAX_RANK)
        report(fmt::format("constant @{} is no row-major tensor of constant size (8)", c.name));
    }
  }

  void check_constant_node_8(const Node& node) {
    const Attribute* index = node.attribute("index");
    const Dim* d = index ? std::get_if<Dim>(index) : nullptr;
    const bool known = d && d->is_constant() && d->constant() >= 0 && static_cast<std::size_t>(d->constant()) < root_.constants().size();
    if (!known || !node.operands.empty() || node.results.size() != 1 || !exists(node.results[0])) return report_node("it does not name a constant (8)");
    if (graph_->type(node.results[0]) != root_.constants()[static_cast<std::size_t>(d->constant())].type) report_node("its result has another type than the constant (8)");
  }

  void check_region_9(const Graph& region, std::uint32_t depth) {
    if (depth > TENON_MAX_REGION_DEPTH) return report_node("regions are nested more than {} deep (9)", TENON_MAX_REGION_DEPTH);
    if (!region.symbols().empty() || !region.constants().empty()) report_node("a region has symbols or constants of its own (9)");
    check_graph(region, depth);
  }

  void check_outputs_10(const std::vector<bool>& defined, std::uint32_t depth) {
    std::vector<bool> updated(graph_->value_capacity(), false);
    for (const Output& o : graph_->outputs()) {
      if (!exists(o.value) || !defined[o.value.value]) {
        report(fmt::format("an output (value {}) is no input or result (10)", o.value.value));
        continue;
      }
      if (depth > 0 && o.kind != OutputKind::result) report("a region has an update or a saved value (9)");
      if (o.kind == OutputKind::update) check_update_10(o, updated);
    }
  }

  void check_update_10(const Output& o, std::vector<bool>& updated) {
    if (!exists(o.target) || graph_->value(o.target).kind != ValueKind::input) return report(fmt::format("the update by {} has no input as its target (10)", name(o.value)));
    if (updated[o.target.value]) report(fmt::format("{} has two updates (10)", name(o.target)));
    updated[o.target.value] = true;
    const Type &value = graph_->type(o.value), &target = graph_->type(o.target);
    if (value.kind != target.kind || value.dtype != target.dtype || value.shape != target.shape || value.device != target.device)
      report(fmt::format("{} of type {} cannot update {} of type {} (10)", name(o.value), print_type(root_, value), name(o.target), print_type(root_, target)));
  }

  const Graph& root_;
  const std::size_t limit_;
  std::vector<Violation> violations_;
  const Graph* graph_ = nullptr;  // the graph being checked
  NodeId node_;                   // in graph_
  NodeId outer_node_;             // in root_
  std::vector<std::unordered_set<std::string_view>> names_;  // of the graphs being checked, outermost first
};

}  // namespace

std::vector<Violation> find_violations(const Graph& graph, std::size_t limit) { return Verifier(graph, limit).run(); }

std::optional<Error> verify_graph(const Graph& graph) { return as_error(graph, find_violations(graph)); }

std::optional<Error> as_error(const Graph& graph, std::span<const Violation> violations) {
  if (violations.empty()) return std::nullopt;
  std::string text = fmt::format("graph @{} is malformed:", graph.name);
  for (const Violation& v : violations) {
    text += "\n  " + v.text;
    if (!v.location->file.empty()) text += fmt::format(" ({}:{})", v.location->file, v.location->line);
  }
  return Error{Code::malformed, std::move(text)};
}

}  // namespace tenon::ir
