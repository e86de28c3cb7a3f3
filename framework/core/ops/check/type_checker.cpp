// The rules of types. Each is checked by the function that bears its letter; all of them suppose the invariants of ir/verifier.cpp.
//
//  a. A node has as many operands as the schema of its op has tensors, and only attributes that stand there, of the kind that stands there;
//     those without a default are given.
//  b. Operands are tensors of one device, but for tensors without dimensions, which may be in the host's memory; what goes to another device is
//     copied there by the op `to_device`. Opaque calls and `cond` take operands of any devices. Literals are operands only where the op's
//     meaning takes the number itself and loads nothing of it.
//  c. The op's inference takes the operands and attributes, and so does its meaning: its body, its loops, and nodes of simpler ops down to
//     these, which are made to be asked unless inference takes nothing else (Traits::is_inferred_whole): that is said of tensors whose sizes
//     are known well enough, and no larger than what fits into a machine.
//     The declared results are those that inference gives: dtype, sizes, device. Sizes are equal by proof. A size that depends on
//     data is a symbol that nothing before the node mentions. What an op needs of sizes and the ranges leave open (a size or an index that
//     is not negative) is noted, for whoever knows them; for sizes that depend on data it is refused. Sizes of inputs are noted likewise.
//     Complex numbers are moved, put together and taken apart, not computed with.
//  d. Strides of a result name each element's place once and leave no gaps. Strides of an input reach no further than 63 bits.
//  e. `cond` has a predicate bool[], on any device, and two regions; each takes the other operands and gives the results, row-major.
//  f. A node with one region, of an op that the catalogue does not have, has operands and results of the region's inputs and outputs.
#include "core/ops/check/type_checker.h"

#include <algorithm>
#include <span>

#include "core/ir/printer.h"
#include "core/ops/build/complex_moves.h"
#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/check/known_meanings.h"
#include "core/ops/check/node_schema.h"
#include "core/ops/infer.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Type;

/// The graph of a region as one that stands alone: it sees the symbols and constants of the outermost graph.
ir::Graph standing_alone(const ir::Graph& region, const ir::Graph& root) {
  ir::Graph graph = region.clone();
  for (const ir::SymbolInfo& symbol : root.symbols()) graph.add_symbol(symbol);
  for (const ir::Constant& constant : root.constants()) graph.add_constant(constant);
  return graph;
}

/// The bytes between the first and the last element that constant sizes and strides reach can be counted in 63 bits.
bool reach_is_countable(const Type& type) {
  std::int64_t reach = 1;
  for (std::size_t d = 0; d < type.rank(); ++d) {
    if (!type.shape[d].is_constant() || !(*type.strides)[d].is_constant()) continue;
    const std::int64_t size = type.shape[d].constant(), stride = (*type.strides)[d].constant();
    if (size == 0) return true;
    std::int64_t far = 0;
    if (stride == INT64_MIN || __builtin_mul_overflow(size - 1, stride < 0 ? -stride : stride, &far) || __builtin_add_overflow(reach, far, &reach)) return false;
  }
  return !__builtin_mul_overflow(reach, static_cast<std::int64_t>(size_of(type.dtype)), &reach);
}

/// A size of a meaning's own, which may be that of two operands multiplied or widened, is counted in 63 bits where all sizes and numbers are below this.
constexpr std::int64_t kLarge = std::int64_t{1} << 28;

bool is_large(const Dim& number) { return number.is_constant() && (number.constant() >= kLarge || number.constant() <= -kLarge); }
bool is_large(const Type& type) { return !ir::bytes_are_countable(type.shape, INT64_MAX / kLarge); }
bool is_large(const ir::NamedAttribute& attribute) {
  if (const Dim* number = std::get_if<Dim>(&attribute.value)) return is_large(*number);
  const auto* numbers = std::get_if<std::vector<Dim>>(&attribute.value);
  return numbers && std::ranges::any_of(*numbers, [](const Dim& number) { return is_large(number); });
}

/// Whether the numbers of a node are read as what they are; a load would read elements of an operand that has none.
bool loads_number(const ScalarProgram& program, const ir::Graph& graph, const ir::Node& node) {
  return std::ranges::any_of(program.instructions, [&](const Instruction& i) {
    return i.op == Primitive::load && graph.value(node.operands[i.payload]).kind == ir::ValueKind::literal;
  });
}

/// Asks the meaning of a node of a catalogue op whose types are right, down to loops and kernels. Throws what it says against sizes,
/// attributes and numbers.
void ask_meaning(const ir::Graph& graph, NodeId id) {
  static constexpr const char* kNumber = "one of its operands is a number; its op takes a tensor there: make one with full (b)";
  const ir::Node& node = graph.node(id);
  const Op& op = *find_op(node.op);
  const auto is_literal = [&](ValueId v) { return graph.value(v).kind == ir::ValueKind::literal; };
  if (const auto loop = loop_of(graph, id)) {
    TENON_USER_CHECK(!loads_number(loop->element, graph, node), "{}", kNumber);
  } else if (op.decompose) {
    const ir::Graph simpler = decomposition(graph, id);
    for (NodeId n : simpler.nodes()) ask_meaning(simpler, n);
    for (const ir::Output& o : simpler.outputs()) TENON_USER_CHECK(simpler.value(o.value).kind != ir::ValueKind::literal, "{}", kNumber);
  } else {
    TENON_USER_CHECK(std::ranges::none_of(node.operands, is_literal), "{}", kNumber);
    if (op.scatter) op.scatter(OpQuery(graph, node.operands, node.attributes));
  }
}

class TypeChecker final : private SizeQuestions {
 public:
  TypeChecker(std::size_t limit, AskedMeanings asked) : limit_(limit), asked_(asked) {}

  TypeReport run(const ir::Graph& root) {
    const AskingSizes asking(this);
    mentioned_.assign(root.symbols().size(), false);
    late_.assign(root.symbols().size(), false);
    check_graph(root);
    return {std::move(violations_), std::move(not_negative_)};
  }

 private:
  // Nobody answers here: what is not proven is refused, or noted.
  void equal(const Dim&, const Dim&) override { left_open_ = true; }
  void not_negative(const Dim&) override { left_open_ = true; }
  void divisible(const Dim&, const Dim&) override { left_open_ = true; }
  void constant(const Dim&) override { left_open_ = true; }
  void taken_not_negative(const Dim& dim) override {
    left_open_ = true;
    if (std::ranges::find(not_negative_, dim) != not_negative_.end()) return;
    bool late = false;
    dim.for_each_symbol([&](SymbolId s) { late = late || (s.value < late_.size() && late_[s.value]); });
    if (late) report_node("{} depends on data, and may be negative: give its symbols ranges (c)", infer::text(*graph_, dim));
    not_negative_.push_back(dim);
  }

  void check_graph(const ir::Graph& graph) {
    KnownMeanings known(graph);
    KnownMeanings* outer_known = std::exchange(known_, &known);
    const ir::Graph* outer = std::exchange(graph_, &graph);
    const NodeId outer_node = std::exchange(node_, NodeId());
    for (ValueId input : graph.inputs()) {
      for (const Dim& size : graph.type(input).shape)
        if (!size.is_constant()) infer::taken_positive_or_0(graph, size);
      check_strides_of_input_d(input);
      mention(graph.type(input));
    }
    for (NodeId n : graph.nodes()) {
      if (violations_.size() >= limit_) break;
      node_ = n;
      if (!outer) outer_node_ = n;
      try {
        check_node(graph.node(n));
      } catch (const std::exception& e) {  // sizes that overflow where they are compared
        report_node("{} (c)", e.what());
      }
    }
    graph_ = outer;
    known_ = outer_known;
    node_ = outer_node;
  }

  void report(std::string text) {
    if (violations_.size() >= limit_) return;
    ir::Violation v{std::move(text), outer_node_, {}};
    if (node_) v.location = graph_->node(node_).location;
    violations_.push_back(std::move(v));
  }

  template <class... Args>
  void report_node(fmt::format_string<Args...> format, Args&&... args) {
    const ir::Node& node = graph_->node(node_);
    const std::string of = node.results.empty() ? std::string() : " of %" + graph_->value(node.results[0]).name;
    report(fmt::format("node {} ({}){}: ", node_.value, node.op, of) + fmt::format(format, std::forward<Args>(args)...));
  }

  std::string text(const Type& type) const { return ir::print_type(*graph_, type); }

  // ---- symbols that were mentioned so far

  void mention(const Dim& dim) {
    if (!dim.is_constant()) dim.for_each_symbol([&](SymbolId s) { mentioned_[s.value] = true; });
  }
  void mention(std::span<const Dim> dims) {
    for (const Dim& d : dims) mention(d);
  }
  void mention(const Type& type) {
    mention(type.shape);
    if (type.strides) mention(*type.strides);
  }
  void mention_parameters(const ir::Node& node) {
    for (const ir::NamedAttribute& a : node.attributes) {
      if (const Dim* dim = std::get_if<Dim>(&a.value)) mention(*dim);
      if (const auto* dims = std::get_if<std::vector<Dim>>(&a.value)) mention(*dims);
    }
    for (ValueId operand : node.operands)
      if (const Dim* dim = std::get_if<Dim>(&graph_->value(operand).literal)) mention(*dim);
  }

  // ---- nodes

  void check_node(const ir::Node& node) {
    mention_parameters(node);
    const Op* op = find_op(node.op);
    const std::size_t before = violations_.size();
    if (op) {
      check_schema_a(node, schema_of(*op));
      if (violations_.size() == before) check_operands_b(node, *op);
      if (!op->traits.control && !node.regions.empty()) report_node("it has regions, and its op has none (a)");
    }
    for (RegionId region : node.regions) {
      const ir::Graph alone = standing_alone(graph_->region(region), *graph_);
      check_graph(alone);
    }
    if (violations_.size() == before) {
      if (!op) check_meaning_f(node);
      else if (op->traits.control) check_branches_e(node);
      else if (!op->traits.opaque) check_results_c(node, *op);
    }
    for (ValueId result : node.results) {
      check_strides_of_result_d(result);
      if (op && op->traits.opaque) learn_late_sizes(graph_->type(result));
      mention(graph_->type(result));
    }
  }

  /// An opaque call gives sizes of its own.
  void learn_late_sizes(const Type& type) {
    for (const Dim& d : type.shape)
      if (const SymbolId s = d.as_symbol(); s && !mentioned_[s.value]) late_[s.value] = true;
  }

  void check_schema_a(const ir::Node& node, const NodeSchema& schema) {
    const std::size_t count = node.operands.size();
    if (count < schema.least || count > schema.most)
      report_node("it has {} operands; its op takes {} (a)", count,
                  schema.most == SIZE_MAX ? fmt::format("at least {}", schema.least) : schema.least == schema.most ? fmt::format("{}", schema.least) : fmt::format("{} to {}", schema.least, schema.most));
    for (const ir::NamedAttribute& a : node.attributes) {
      const NodeSchema::Attribute* known = schema.find(a.name);
      if (!known) report_node("its op has no attribute '{}'{} (a)", a.name, names_of(schema));
      else if (!known->takes(a.value)) report_node("attribute '{}' is {}; its op takes {} (a)", a.name, ir::print_attribute(*graph_, a.value), known->type);
    }
    for (const NodeSchema::Attribute& each : schema.attributes) {
      if (!each.required) continue;
      const auto given = std::ranges::find(node.attributes, each.name, &ir::NamedAttribute::name);
      if (given == node.attributes.end() || given->value.index() == 0) report_node("attribute '{}' ({}) is missing (a)", each.name, each.type);
    }
  }

  static std::string names_of(const NodeSchema& schema) {
    std::string names;
    for (const NodeSchema::Attribute& each : schema.attributes) names += (names.empty() ? "; it has " : ", ") + each.name.text();
    return names;
  }

  void check_operands_b(const ir::Node& node, const Op& op) {
    if (op.traits.opaque) return;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (!graph_->type(node.operands[i]).is_tensor()) report_node("operand {} is a token, not a tensor (b)", i);
    if (op.traits.control) return;
    if (const std::string conflict = infer::device_conflict(OpQuery(*graph_, node.operands, node.attributes)); !conflict.empty()) report_node("{} (b)", conflict);
  }

  void check_results_c(const ir::Node& node, const Op& op) {
    left_open_ = false;
    const auto inferred = op.infer(OpQuery(*graph_, node.operands, node.attributes));
    if (!inferred) return report_node("{} (c)", inferred.error().message);
    if (inferred->size() != node.results.size()) return report_node("it has {} results; its op gives {} (c)", node.results.size(), inferred->size());
    const std::size_t before = violations_.size();
    for (std::size_t k = 0; k < inferred->size(); ++k) check_result_c(node.results[k], (*inferred)[k]);
    if (violations_.size() != before) return;
    if (!is_inferred_whole(node, op)) ask_meaning_c(node, op);
    if (!only_moves_complex(*graph_, node_)) report_node("it computes with complex numbers; ops only move them (c)");
  }

  void ask_meaning_c(const ir::Node& node, const Op& op) {
    const AskingSizes nobody(nullptr);  // sizes inside a meaning are its own
    const bool short_answer = !op.decompose && !op.loop;
    if (!short_answer && known_->has(node)) return;
    ask_meaning(*graph_, node_);
    if (!short_answer) known_->add(node);
  }

  /// Whether inference has said all that the meaning would. It says nothing of numbers in the place of tensors, nor of large sizes, and what
  /// it left open of a size may be open in another way inside.
  bool is_inferred_whole(const ir::Node& node, const Op& op) const {
    if (!op.traits.is_inferred_whole || asked_ == AskedMeanings::all || left_open_) return false;
    const auto is_plain = [&](ValueId v) { return graph_->value(v).kind != ir::ValueKind::literal && !is_large(graph_->type(v)); };
    return std::ranges::all_of(node.operands, is_plain) && std::ranges::all_of(node.results, is_plain) &&
           std::ranges::none_of(node.attributes, [](const ir::NamedAttribute& a) { return is_large(a); });
  }

  void check_result_c(ValueId result, const Type& inferred) {
    const Type& declared = graph_->type(result);
    const auto wrong = [&](std::string_view why) {
      report_node("its result %{} is declared {}; {}{} (c)", graph_->value(result).name, text(declared), why, text_with_new_symbols(inferred));
    };
    if (declared.kind != inferred.kind || declared.dtype != inferred.dtype || declared.rank() != inferred.rank() || declared.device != inferred.device) return wrong("it is ");
    for (std::size_t d = 0; d < declared.rank(); ++d) {
      if (!declared.shape[d].is_constant()) infer::taken_positive_or_0(*graph_, declared.shape[d]);
      if (declared.shape[d] == inferred.shape[d]) continue;
      if (is_new_symbol(inferred.shape[d])) {
        const SymbolId s = declared.shape[d].as_symbol();
        if (!s) return wrong("a size that depends on data is a symbol: it is ");
        if (mentioned_[s.value]) return wrong("a size that depends on data is a symbol that nothing mentions before: it is ");
        late_[s.value] = true;
        continue;
      }
      if (!equal_by_proof(declared.shape[d], inferred.shape[d])) return wrong((declared.shape[d] - inferred.shape[d]).is_constant() ? "it is " : "it cannot be proven to be other than ");
    }
  }

  bool is_new_symbol(const Dim& dim) const {
    const SymbolId s = dim.as_symbol();
    return s && s.value >= graph_->symbols().size();
  }

  /// A type as inference gives it, whose symbols the graph may not have.
  std::string text_with_new_symbols(const Type& type) const {
    if (!type.is_tensor()) return text(type);
    return std::string(name_of(type.dtype)) + infer::text(*graph_, type.shape) + (type.device == ir::Device() ? "" : text(Type::tensor(type.dtype, {}, type.device)).substr(name_of(type.dtype).size() + 2));
  }

  bool equal_by_proof(const Dim& a, const Dim& b) const {
    if (a == b) return true;
    if (a.is_constant() && b.is_constant()) return false;
    const infer::Interval difference = infer::range(*graph_, a - b);
    return difference.least == 0 && difference.most == 0;
  }

  bool same_by_proof(const Type& a, const Type& b) const {
    return a.kind == b.kind && a.dtype == b.dtype && a.device == b.device && a.rank() == b.rank() &&
           std::ranges::equal(a.shape, b.shape, [&](const Dim& x, const Dim& y) { return equal_by_proof(x, y); });
  }

  // ---- layouts

  void check_strides_of_input_d(ValueId input) {
    const Type& type = graph_->type(input);
    if (type.strides && !reach_is_countable(type)) report(fmt::format("input %{}: {} reaches further than can be counted (d)", graph_->value(input).name, text(type)));
  }

  void check_strides_of_result_d(ValueId result) {
    const Type& type = graph_->type(result);
    if (type.strides && !is_dense(type)) report_node("the strides of its result %{}, {}, leave gaps, or put two elements in one place (d)", graph_->value(result).name, text(type));
  }

  /// Whether the strides are row-major for some order of the dimensions.
  bool is_dense(const Type& type) const {
    std::vector<bool> used(type.rank(), false);
    for (std::size_t d = 0; d < type.rank(); ++d) used[d] = type.shape[d] == Dim(1);
    Dim expected = 1;
    for (std::size_t left = static_cast<std::size_t>(std::ranges::count(used, false)); left > 0; --left) {
      std::size_t d = 0;
      while (d < type.rank() && (used[d] || (*type.strides)[d] != expected)) ++d;
      if (d == type.rank()) return false;
      used[d] = true;
      expected = expected * (type.shape[d] == Dim(0) ? Dim(1) : type.shape[d]);
    }
    return true;
  }

  // ---- regions

  void check_branches_e(const ir::Node& node) {
    const Type& pred = graph_->type(node.operands[0]);
    if (!pred.is_tensor() || pred.dtype != DType::b8 || pred.rank() != 0) report_node("its predicate is {}, not bool[] (e)", text(pred));
    if (node.regions.size() != 2) return report_node("it has {} regions, not 2 (e)", node.regions.size());
    for (RegionId region : node.regions) check_call(graph_->region(region), node, 1, "e");
  }

  void check_meaning_f(const ir::Node& node) {
    if (node.regions.size() == 1) check_call(graph_->region(node.regions[0]), node, 0, "f");
  }

  void check_call(const ir::Graph& region, const ir::Node& node, std::size_t first, const char* rule) {
    const std::size_t inputs = node.operands.size() - first;
    if (region.inputs().size() != inputs) return report_node("the region @{} has {} inputs for {} operands ({})", region.name, region.inputs().size(), inputs, rule);
    if (region.outputs().size() != node.results.size()) return report_node("the region @{} has {} outputs for {} results ({})", region.name, region.outputs().size(), node.results.size(), rule);
    for (std::size_t i = 0; i < inputs; ++i)
      compare(region, region.type(region.inputs()[i]), graph_->type(node.operands[first + i]), "input", "operand", i, rule);
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      const Type& given = region.type(region.outputs()[k].value);
      compare(region, given, graph_->type(node.results[k]), "output", "result", k, rule);
      const bool computed = region.value(region.outputs()[k].value).kind == ir::ValueKind::result;
      if (computed && given.strides && *given.strides != ir::row_major_strides(given.shape)) report_node("output {} of the region @{} is {}: it must be row-major ({})", k, region.name, text(given), rule);
    }
  }

  void compare(const ir::Graph& region, const Type& inside, const Type& outside, const char* of_region, const char* of_node, std::size_t i, const char* rule) {
    if (!same_by_proof(inside, outside)) report_node("{} {} of the region @{} is {}, and {} {} is {} ({})", of_region, i, region.name, text(inside), of_node, i, text(outside), rule);
  }

  const std::size_t limit_;
  const AskedMeanings asked_;
  std::vector<ir::Violation> violations_;
  std::vector<Dim> not_negative_;
  bool left_open_ = false;            // by the ranges, of what the inference of the node asked
  const ir::Graph* graph_ = nullptr;  // the graph being checked
  KnownMeanings* known_ = nullptr;    // of that graph
  NodeId node_;                       // in graph_
  NodeId outer_node_;                 // in the outermost graph
  std::vector<bool> mentioned_;       // by SymbolId
  std::vector<bool> late_;            // by SymbolId: depends on data
};

}  // namespace

TypeReport check_types(const ir::Graph& graph, std::size_t limit, AskedMeanings asked) { return TypeChecker(limit, asked).run(graph); }

TypeReport check_graph(const ir::Graph& graph, std::size_t limit) {
  std::vector<ir::Violation> violations = ir::find_violations(graph, limit);
  if (!violations.empty()) return {std::move(violations), {}};
  return check_types(graph, limit);
}

Result<std::vector<ir::Dim>> accept_graph(const ir::Graph& graph) {
  TypeReport report = check_graph(graph);
  if (std::optional<Error> wrong = ir::as_error(graph, report.violations)) return *std::move(wrong);
  return std::move(report.not_negative);
}

}  // namespace tenon::ops
