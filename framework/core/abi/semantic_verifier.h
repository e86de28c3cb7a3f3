// Checks the semantic part of a graph buffer. What it demands stands at the top of buffer_verifier.h.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "core/abi/part_verifier.h"

namespace tenon::detail {

class SemanticVerifier : public PartVerifier {
 public:
  explicit SemanticVerifier(TenonBytes bytes)
      : PartVerifier{bytes.data, bytes.size, kSectionName, kRecordSize, TENON_SECTION_COUNT, {}} {
    pairs_.fill({TENON_NONE - 1, 0});  // no name of a string: a buffer of 4 GB holds fewer
  }

  bool check() {
    if (!check_header(TENON_BUFFER_MAGIC, "semantic") || !check_sections() || !check_strings()) return false;
    s_ = SemanticSections(part);
    ops_.assign(s_.strings.strings.size(), OpName::unseen);
    return check_symbols() && check_expressions() && check_types() && check_constants() && check_regions() && check_ends();
  }

  const SemanticSections& sections() const { return s_; }

 private:
  enum class OpName : std::uint8_t { unseen, wrong, constant, other };

  static bool within(std::uint32_t i, std::uint32_t count) { return i < count; }
  static bool within_or_none(std::uint32_t i, std::uint32_t count) { return i < count || i == TENON_NONE; }
  bool is_name(std::uint32_t string) const {
    return within(string, s_.strings.strings.size()) && s_.strings.strings[string].size - 1u < 255u;
  }
  static std::string number(std::uint64_t n) { return std::to_string(n); }

  /// A range that starts where the last one ended, within its section.
  static bool follows(std::uint32_t first, std::uint32_t count, std::uint32_t& next, std::uint32_t limit) {
    if (first != next || count > limit - next) return false;
    next += count;
    return true;
  }

  bool check_symbols() {
    for (std::uint32_t i = 0; i < s_.symbols.size(); ++i)
      if (s_.symbols[i].min > s_.symbols[i].max) return fail(TENON_SECTION_SYMBOLS, i, "its range is empty");
    return true;
  }

  bool check_expressions() {
    std::vector<std::uint32_t> sizes(s_.expressions.size(), 1);
    for (std::uint32_t i = 0; i < s_.expressions.size(); ++i) {
      const TenonExpression& e = s_.expressions[i];
      if (e.kind >= TENON_EXPRESSION_KINDS) return fail(TENON_SECTION_EXPRESSIONS, i, "kind " + number(e.kind) + " is unknown");
      if (e.kind == TENON_EXPRESSION_CONSTANT) continue;
      if (e.kind == TENON_EXPRESSION_SYMBOL) {
        if (!within(e.a, s_.symbols.size())) return fail(TENON_SECTION_EXPRESSIONS, i, "there is no symbol " + number(e.a));
        continue;
      }
      if (e.a >= i || e.b >= i) return fail(TENON_SECTION_EXPRESSIONS, i, "its operands are not before it");
      sizes[i] = 1 + sizes[e.a] + sizes[e.b];
      if (sizes[i] > TENON_MAX_EXPRESSION_SIZE) return fail(TENON_SECTION_EXPRESSIONS, i, "it is too large");
    }
    return true;
  }

  bool check_types() {
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < s_.types.size(); ++i) {
      const TenonType& t = s_.types[i];
      if (t.kind >= TENON_TYPE_KINDS || t.dtype >= TENON_DTYPES || t.has_strides > 1)
        return fail(TENON_SECTION_TYPES, i, "an unknown kind, dtype or layout");
      if (t.rank > TENON_MAX_RANK) return fail(TENON_SECTION_TYPES, i, "rank " + number(t.rank) + " is too large");
      if (t.device_kind == 0) return fail(TENON_SECTION_TYPES, i, "device kind 0 is unknown");
      if (t.kind == TENON_TYPE_TOKEN && (t.rank != 0 || t.has_strides || t.dtype != 0 || t.device_kind != 1 || t.device_index != 0))
        return fail(TENON_SECTION_TYPES, i, "a token has dimensions, a dtype or a device");
      if (!follows(t.first_dim, t.rank << t.has_strides, next, s_.dims.size()))
        return fail(TENON_SECTION_TYPES, i, "its dimensions do not follow those of the type before it");
      if (!check_sizes(i, t)) return false;
    }
    for (std::uint32_t i = 0; i < s_.dims.size(); ++i)
      if (!within_or_none(s_.dims[i].expression, s_.expressions.size()))
        return fail(TENON_SECTION_DIMS, i, "there is no expression " + number(s_.dims[i].expression));
    return next == s_.dims.size() || fail("section dims: not all of it is used");
  }

  /// Constant dimensions are not negative, and their product (0 counts as 1) leaves a count of bytes that fits in 63 bits.
  bool check_sizes(std::uint32_t i, const TenonType& t) {
    std::int64_t bytes = t.kind == TENON_TYPE_TENSOR ? static_cast<std::int64_t>(size_of(static_cast<DType>(t.dtype))) : 1;
    for (std::uint32_t k = 0; k < t.rank; ++k) {
      const TenonDim& d = s_.dims[t.first_dim + k];
      if (d.expression != TENON_NONE) continue;
      if (d.value < 0) return fail(TENON_SECTION_DIMS, t.first_dim + k, "a dimension is negative");
      if (d.value > 0 && __builtin_mul_overflow(bytes, d.value, &bytes)) return fail(TENON_SECTION_TYPES, i, "its bytes cannot be counted in 63 bits");
    }
    return true;
  }

  bool check_constants() {
    for (std::uint32_t i = 0; i < s_.constants.size(); ++i) {
      const std::uint32_t t = s_.constants[i].type;
      if (!within(t, s_.types.size()) || s_.types[t].kind != TENON_TYPE_TENSOR)
        return fail(TENON_SECTION_CONSTANTS, i, "type " + number(t) + " is not the type of a tensor");
    }
    return true;
  }

  bool check_regions() {
    if (s_.regions.size() == 0) return fail("section regions: there must be at least one");
    depths_.assign(s_.regions.size(), 0);
    next_region_ = 1;
    for (std::uint32_t i = 0; i < s_.regions.size(); ++i)
      if (!check_region(i)) return false;
    return true;
  }

  bool check_region(std::uint32_t i) {
    const TenonRegion& r = s_.regions[i];
    if (!check_owner(i, r)) return false;
    const std::uint64_t values = std::uint64_t{r.input_count} + r.result_count + r.literal_count;
    if (values > s_.values.size() || !follows(r.first_value, static_cast<std::uint32_t>(values), next_value_, s_.values.size()))
      return fail(TENON_SECTION_REGIONS, i, "its values do not follow those of the region before it");
    const std::uint32_t node = next_node_;
    if (!follows(r.first_node, r.node_count, next_node_, s_.nodes.size()))
      return fail(TENON_SECTION_REGIONS, i, "its nodes do not follow those of the region before it");
    if (!check_inputs(r) || !check_literals(r)) return false;
    defined_ = r.first_value + r.input_count;
    for (std::uint32_t n = node; n < next_node_; ++n)
      if (!check_node(n, i, r)) return false;
    if (defined_ != r.first_value + r.input_count + r.result_count)
      return fail(TENON_SECTION_REGIONS, i, "its nodes have another number of results than it says");
    return check_outputs(i, r);
  }

  bool check_owner(std::uint32_t i, const TenonRegion& r) {
    if (i == 0) return r.owner == TENON_NONE || fail(TENON_SECTION_REGIONS, 0, "the graph itself has an owner");
    // Every region that an earlier node lists is below next_region_; check_node has made sure that it names that node.
    if (i >= next_region_) return fail(TENON_SECTION_REGIONS, i, "no node of an earlier region owns it");
    depths_[i] = depths_[s_.nodes[r.owner].region] + 1;
    return depths_[i] <= TENON_MAX_REGION_DEPTH || fail(TENON_SECTION_REGIONS, i, "regions are nested too deeply");
  }

  bool check_inputs(const TenonRegion& r) {
    for (std::uint32_t k = 0; k < r.input_count; ++k) {
      const TenonValue& v = s_.values[r.first_value + k];
      if (v.kind != TENON_VALUE_INPUT || v.node != TENON_NONE || v.index != k || !within(v.type, s_.types.size()))
        return fail(TENON_SECTION_VALUES, r.first_value + k, "it is not input " + number(k) + " with a known type");
    }
    return true;
  }

  bool check_literals(const TenonRegion& r) {
    const std::uint32_t first = r.first_value + r.input_count + r.result_count;
    for (std::uint32_t k = 0; k < r.literal_count; ++k, ++next_literal_) {
      const TenonValue& v = s_.values[first + k];
      if (v.kind != TENON_VALUE_LITERAL || v.node != TENON_NONE || v.index != next_literal_ || !within(v.index, s_.literals.size()) ||
          !within(v.type, s_.types.size()))
        return fail(TENON_SECTION_VALUES, first + k, "it is not the next literal with a known type");
      const TenonLiteral& l = s_.literals[v.index];
      const TenonType& t = s_.types[v.type];
      static constexpr std::uint8_t kDType[] = {TENON_BOOL, TENON_I64, TENON_F64};
      if (l.kind >= TENON_LITERAL_KINDS || (l.kind == TENON_LITERAL_BOOL && (l.bits < 0 || l.bits > 1)) ||
          !within_or_none(l.expression, l.kind == TENON_LITERAL_INT ? s_.expressions.size() : 0))
        return fail(TENON_SECTION_LITERALS, v.index, "an unknown kind, or a value that does not fit it");
      if (t.kind != TENON_TYPE_TENSOR || t.dtype != kDType[l.kind] || t.rank != 0)
        return fail(TENON_SECTION_VALUES, first + k, "its type is not that of its literal");
    }
    return true;
  }

  bool check_node(std::uint32_t n, std::uint32_t region, const TenonRegion& r) {
    const TenonNode& node = s_.nodes[n];
    const OpName op = op_name(node.op);
    if (op == OpName::wrong || node.region != region) return fail(TENON_SECTION_NODES, n, "its op or region does not exist");
    if (!follows(node.first_operand, node.operand_count, next_operand_, s_.operands.size()) ||
        !follows(node.first_attribute, node.attribute_count, next_attribute_, s_.attributes.size()) ||
        !follows(node.first_region, node.region_count, next_region_, s_.regions.size()))
      return fail(TENON_SECTION_NODES, n, "its operands, attributes or regions do not follow those of the node before it");
    for (std::uint32_t k = node.first_operand; k < next_operand_; ++k)
      if (!is_defined(s_.operands[k], r))
        return fail(TENON_SECTION_NODES, n, "operand " + number(k - node.first_operand) + " is value " + number(s_.operands[k]) + ", which is not defined before it");
    for (std::uint32_t k = node.first_region; k < next_region_; ++k)
      if (s_.regions[k].owner != n) return fail(TENON_SECTION_REGIONS, k, "its owner is not node " + number(n));
    return check_attributes(node) && check_results(n, node, r) && (op != OpName::constant || check_constant_node(n, node));
  }

  /// Looked at once for each string.
  OpName op_name(std::uint32_t string) {
    if (!within(string, s_.strings.strings.size())) return OpName::wrong;
    OpName& name = ops_[string];
    if (name == OpName::unseen) name = !is_name(string) ? OpName::wrong : s_.strings[string] == "constant" ? OpName::constant : OpName::other;
    return name;
  }

  /// An input, a result of an earlier node, or a literal, of this region.
  bool is_defined(std::uint32_t value, const TenonRegion& r) const {
    return (value >= r.first_value && value < defined_) ||
           (value >= r.first_value + r.input_count + r.result_count && value < next_value_);
  }

  bool check_results(std::uint32_t n, const TenonNode& node, const TenonRegion& r) {
    if (!follows(node.first_result, node.result_count, defined_, r.first_value + r.input_count + r.result_count))
      return fail(TENON_SECTION_NODES, n, "its results do not follow those of the node before it");
    for (std::uint32_t k = 0; k < node.result_count; ++k) {
      const TenonValue& v = s_.values[node.first_result + k];
      if (v.kind != TENON_VALUE_RESULT || v.node != n || v.index != k || !within(v.type, s_.types.size()))
        return fail(TENON_SECTION_VALUES, node.first_result + k, "it is not result " + number(k) + " of node " + number(n) + " with a known type");
    }
    return true;
  }

  bool check_attributes(const TenonNode& node) {
    std::uint32_t last = TENON_NONE;
    for (std::uint32_t k = node.first_attribute; k < next_attribute_; ++k) {
      const TenonAttribute& a = s_.attributes[k];
      if (!is_next_name(last, a.name) && !check_next_name(k, last, a.name)) return false;
      if (!check_attribute_value(a)) return fail(TENON_SECTION_ATTRIBUTES, k, "an unknown kind, or a value that does not fit it");
      last = a.name;
    }
    return true;
  }

  /// Nodes of one op have the same attributes: that one name may follow the other was mostly found before.
  bool is_next_name(std::uint32_t last, std::uint32_t name) const { return pairs_[pair_slot(last, name)] == std::pair(last, name); }

  bool check_next_name(std::uint32_t k, std::uint32_t last, std::uint32_t name) {
    if (!is_name(name)) return fail(TENON_SECTION_ATTRIBUTES, k, "its name does not exist, or is too long");
    if (last != TENON_NONE && s_.strings[last] >= s_.strings[name]) return fail(TENON_SECTION_ATTRIBUTES, k, "attributes are not sorted by name");
    pairs_[pair_slot(last, name)] = {last, name};
    return true;
  }

  static std::size_t pair_slot(std::uint32_t last, std::uint32_t name) { return (last * 31 + name) % kPairs; }

  bool check_text(std::uint32_t string) {
    if (!within(string, s_.strings.strings.size())) return false;
    text_ += s_.strings.strings[string].size;
    return text_ <= TENON_MAX_TEXT;
  }

  bool check_attribute_value(const TenonAttribute& a) {
    const bool list = a.kind == TENON_ATTRIBUTE_INTS || a.kind == TENON_ATTRIBUTE_FLOATS;
    if (!list && a.count != 0) return false;
    switch (a.kind) {
      case TENON_ATTRIBUTE_NONE:
      case TENON_ATTRIBUTE_FLOAT: return a.ref == TENON_NONE;
      case TENON_ATTRIBUTE_BOOL: return a.ref == TENON_NONE && (a.bits == 0 || a.bits == 1);
      case TENON_ATTRIBUTE_INT: return within_or_none(a.ref, s_.expressions.size());
      case TENON_ATTRIBUTE_STRING: return check_text(a.ref);
      case TENON_ATTRIBUTE_DTYPE: return a.ref == TENON_NONE && a.bits >= 0 && a.bits < TENON_DTYPES;
      case TENON_ATTRIBUTE_INTS: return check_items(a, s_.expressions.size());
      case TENON_ATTRIBUTE_FLOATS: return check_items(a, 0);
      default: return false;
    }
  }

  bool check_items(const TenonAttribute& a, std::uint32_t expressions) {
    if (!follows(a.ref, a.count, next_item_, s_.items.size())) return false;
    for (std::uint32_t i = a.ref; i < next_item_; ++i)
      if (!within_or_none(s_.items[i].expression, expressions)) return false;
    return true;
  }

  bool check_constant_node(std::uint32_t n, const TenonNode& node) {
    for (std::uint32_t k = node.first_attribute; k < next_attribute_; ++k) {
      const TenonAttribute& a = s_.attributes[k];
      if (s_.strings[a.name] != "index") continue;
      if (a.kind != TENON_ATTRIBUTE_INT || a.ref != TENON_NONE || a.bits < 0 || a.bits >= s_.constants.size()) break;
      if (node.result_count == 1 && s_.values[node.first_result].type == s_.constants[static_cast<std::uint32_t>(a.bits)].type) return true;
    }
    return fail(TENON_SECTION_NODES, n, "it has no index of a constant of its result's type");
  }

  bool check_outputs(std::uint32_t region, const TenonRegion& r) {
    const std::uint32_t first = next_output_;
    if (!follows(r.first_output, r.output_count, next_output_, s_.outputs.size()))
      return fail(TENON_SECTION_REGIONS, region, "its outputs do not follow those of the region before it");
    std::vector<bool> updated;
    for (std::uint32_t k = first; k < next_output_; ++k) {
      const TenonOutput& o = s_.outputs[k];
      if (o.kind >= TENON_OUTPUT_KINDS || (region != 0 && o.kind != TENON_OUTPUT_RESULT))
        return fail(TENON_SECTION_OUTPUTS, k, "kind " + number(o.kind) + " is not allowed here");
      if (o.value < r.first_value || o.value >= defined_) return fail(TENON_SECTION_OUTPUTS, k, "value " + number(o.value) + " is no input or result of its region");
      if (o.kind != TENON_OUTPUT_UPDATE) {
        if (o.target != TENON_NONE) return fail(TENON_SECTION_OUTPUTS, k, "only an update has a target");
        continue;
      }
      if (o.target < r.first_value || o.target - r.first_value >= r.input_count) return fail(TENON_SECTION_OUTPUTS, k, "its target is no input");
      updated.resize(r.input_count);
      if (updated[o.target - r.first_value]) return fail(TENON_SECTION_OUTPUTS, k, "its target has another update");
      updated[o.target - r.first_value] = true;
      if (!same_shape(s_.types[s_.values[o.value].type], s_.types[s_.values[o.target].type]))
        return fail(TENON_SECTION_OUTPUTS, k, "its dtype or shape is not that of its target");
    }
    return true;
  }

  bool same_shape(const TenonType& a, const TenonType& b) const {
    if (a.kind != b.kind || a.dtype != b.dtype || a.rank != b.rank) return false;
    for (std::uint32_t i = 0; i < a.rank; ++i) {
      const TenonDim &x = s_.dims[a.first_dim + i], &y = s_.dims[b.first_dim + i];
      if (x.expression != y.expression || (x.expression == TENON_NONE && x.value != y.value)) return false;
    }
    return true;
  }

  bool check_ends() {
    if (next_region_ != s_.regions.size()) return fail("section regions: not all of it is used");
    if (next_node_ != s_.nodes.size()) return fail("section nodes: not all of it is used");
    if (next_value_ != s_.values.size()) return fail("section values: not all of it is used");
    if (next_literal_ != s_.literals.size()) return fail("section literals: not all of it is used");
    if (next_operand_ != s_.operands.size()) return fail("section operands: not all of it is used");
    if (next_output_ != s_.outputs.size()) return fail("section outputs: not all of it is used");
    if (next_attribute_ != s_.attributes.size()) return fail("section attributes: not all of it is used");
    if (next_item_ != s_.items.size()) return fail("section items: not all of it is used");
    return true;
  }

  static constexpr std::size_t kPairs = 64;

  SemanticSections s_;
  std::vector<std::uint32_t> depths_;
  std::vector<OpName> ops_;  // by string
  std::array<std::pair<std::uint32_t, std::uint32_t>, kPairs> pairs_;  // attribute names that may follow each other
  std::uint64_t text_ = 0;     // bytes of string attributes so far
  std::uint32_t defined_ = 0;  // one past the last input or result that is defined so far, in the current region
  // Where the next range must start, for each section.
  std::uint32_t next_region_ = 0, next_node_ = 0, next_value_ = 0, next_literal_ = 0, next_operand_ = 0, next_output_ = 0,
                next_attribute_ = 0, next_item_ = 0;
};

}  // namespace tenon::detail
