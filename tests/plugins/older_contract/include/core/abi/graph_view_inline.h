// Bodies of graph_view.h.
#pragma once

#include "core/abi/graph_view.h"

namespace tenon {

namespace detail {

/// The verifier bounds the size of an expression, and with it the depth of this recursion.
inline std::int64_t evaluate(const Table<TenonExpression>& table, std::uint32_t id, const std::int64_t* symbols) {
  const TenonExpression& e = table[id];
  if (e.kind == TENON_EXPRESSION_CONSTANT) return e.value;
  if (e.kind == TENON_EXPRESSION_SYMBOL) return symbols[e.a];
  const std::int64_t a = evaluate(table, e.a, symbols);
  const std::int64_t b = evaluate(table, e.b, symbols);
  switch (e.kind) {
    case TENON_EXPRESSION_ADD: return checked_add(a, b);
    case TENON_EXPRESSION_MUL: return checked_mul(a, b);
    case TENON_EXPRESSION_FLOOR_DIV: return checked_floor_div(a, b);
    case TENON_EXPRESSION_MOD: return checked_mod(a, b);
    case TENON_EXPRESSION_MIN: return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

}  // namespace detail

// ---- DimView, DimRange

inline std::int64_t DimView::constant() const {
  if (!is_constant()) throw std::logic_error("a size or attribute depends on symbols; this place takes constants only");
  return value_;
}

inline std::int64_t DimView::evaluate(const std::int64_t* symbols) const {
  if (is_constant()) return value_;
  if (!symbols) throw std::logic_error("a size depends on symbols, and no symbol values were given");
  return detail::evaluate(graph_->sections().expressions, expression_, symbols);
}

inline std::optional<std::uint32_t> DimView::as_symbol() const {
  if (is_constant()) return std::nullopt;
  const TenonExpression& e = graph_->sections().expressions[expression_];
  return e.kind == TENON_EXPRESSION_SYMBOL ? std::optional(e.a) : std::nullopt;
}

inline bool DimRange::is_constant() const {
  for (std::uint32_t i = 0; i < count_; ++i)
    if (!(*this)[i].is_constant()) return false;
  return true;
}

inline std::vector<std::int64_t> DimRange::evaluate(const std::int64_t* symbols) const {
  std::vector<std::int64_t> values(count_);
  for (std::uint32_t i = 0; i < count_; ++i) values[i] = (*this)[i].evaluate(symbols);
  return values;
}

// ---- TypeView

inline const TenonType& TypeView::record() const { return graph_->sections().types[id_]; }

inline DimRange TypeView::dims() const { return {graph_, graph_->sections().dims, record().first_dim, record().rank}; }

inline DimRange TypeView::stated_strides() const {
  const TenonType& t = record();
  return {graph_, graph_->sections().dims, t.first_dim + t.rank, t.has_strides ? t.rank : 0};
}

inline bool TypeView::is_static() const { return dims().is_constant() && stated_strides().is_constant(); }

inline std::vector<std::int64_t> TypeView::strides(const std::int64_t* symbols) const {
  if (has_strides()) return stated_strides().evaluate(symbols);
  std::vector<std::int64_t> result = shape(symbols);
  std::int64_t stride = 1;
  for (std::size_t i = result.size(); i-- > 0;) {
    const std::int64_t size = result[i];
    result[i] = stride;
    if (i > 0) stride = detail::checked_mul(stride, size > 1 ? size : 1);
  }
  return result;
}

inline std::int64_t TypeView::element_count(const std::int64_t* symbols) const {
  std::int64_t count = 1;
  for (std::int64_t size : shape(symbols)) {
    if (size == 0) return 0;
    count = detail::checked_mul(count, size);
  }
  return count;
}

inline std::int64_t TypeView::byte_count(const std::int64_t* symbols) const {
  return detail::checked_mul(element_count(symbols), static_cast<std::int64_t>(size_of(dtype())));
}

// ---- AttributeView

inline const TenonAttribute& AttributeView::record() const { return graph_->sections().attributes[id_]; }

inline std::string_view AttributeView::name() const { return graph_->sections().strings[record().name]; }

inline const TenonAttribute& AttributeView::record_of(std::uint32_t kind, const char* what) const {
  const TenonAttribute& a = record();
  if (a.kind != kind) throw std::invalid_argument("attribute '" + std::string(name()) + "' is not " + what);
  return a;
}

inline bool AttributeView::flag() const { return record_of(TENON_ATTRIBUTE_BOOL, "a bool").bits != 0; }

inline DimView AttributeView::dim() const {
  const TenonAttribute& a = record_of(TENON_ATTRIBUTE_INT, "an integer");
  return {graph_, a.bits, a.ref};
}

inline double AttributeView::number() const {
  if (kind() == TENON_ATTRIBUTE_INT) return static_cast<double>(integer());
  return std::bit_cast<double>(record_of(TENON_ATTRIBUTE_FLOAT, "a number").bits);
}

inline std::string_view AttributeView::text() const {
  return graph_->sections().strings[record_of(TENON_ATTRIBUTE_STRING, "a string").ref];
}

inline DType AttributeView::dtype() const { return static_cast<DType>(record_of(TENON_ATTRIBUTE_DTYPE, "a dtype").bits); }

inline DimRange AttributeView::dims() const {
  const TenonAttribute& a = record_of(TENON_ATTRIBUTE_INTS, "a list of integers");
  return {graph_, graph_->sections().items, a.ref, a.count};
}

inline std::vector<double> AttributeView::numbers() const {
  const TenonAttribute& a = record_of(TENON_ATTRIBUTE_FLOATS, "a list of floats");
  std::vector<double> values(a.count);
  for (std::uint32_t i = 0; i < a.count; ++i) values[i] = std::bit_cast<double>(graph_->sections().items[a.ref + i].value);
  return values;
}

// ---- ValueView, OutputView, RegionView

inline const TenonValue& ValueView::record() const { return graph_->sections().values[id_]; }
inline const TenonLiteral& ValueView::literal() const { return graph_->sections().literals[record().index]; }
inline NodeView ValueView::node() const { return {graph_, record().node}; }
inline std::string_view ValueView::name() const { return graph_->debug().name(graph_->debug().value_names, id_); }

inline double ValueView::number(const std::int64_t* symbols) const {
  const TenonLiteral& l = literal();
  return l.kind == TENON_LITERAL_FLOAT ? std::bit_cast<double>(l.bits) : static_cast<double>(literal_int().evaluate(symbols));
}

inline OutputView::OutputView(const GraphView* graph, std::uint32_t id)
    : value(graph, graph->sections().outputs[id].value), kind(graph->sections().outputs[id].kind) {
  const std::uint32_t t = graph->sections().outputs[id].target;
  if (t != TENON_NONE) target.emplace(graph, t);
}

inline const TenonRegion& RegionView::record() const { return graph_->sections().regions[id_]; }
inline std::string_view RegionView::name() const { return graph_->debug().name(graph_->debug().region_names, id_); }

// ---- NodeView

inline const TenonNode& NodeView::record() const { return graph_->sections().nodes[id_]; }
inline std::string_view NodeView::op() const { return graph_->sections().strings[record().op]; }

inline ViewRange<ValueView> NodeView::operands() const {
  return {graph_, record().first_operand, record().operand_count, &graph_->sections().operands};
}

inline AttributeView NodeView::attribute(std::string_view name) const {
  for (AttributeView a : attributes())
    if (a.name() == name) return a;
  return {graph_, TENON_NONE};
}

inline AttributeView NodeView::given(std::string_view name, bool has_default) const {
  const AttributeView a = attribute(name);
  if (a && !a.is_none()) return a;
  if (has_default) return {graph_, TENON_NONE};
  throw std::invalid_argument("node " + std::to_string(id_) + " (" + std::string(op()) + ") has no attribute '" + std::string(name) + "'");
}

inline bool NodeView::flag(std::string_view name, std::optional<bool> otherwise) const {
  const AttributeView a = given(name, otherwise.has_value());
  return a ? a.flag() : *otherwise;
}

inline std::int64_t NodeView::integer(std::string_view name, std::optional<std::int64_t> otherwise) const {
  const AttributeView a = given(name, otherwise.has_value());
  return a ? a.integer() : *otherwise;
}

inline double NodeView::number(std::string_view name, std::optional<double> otherwise) const {
  const AttributeView a = given(name, otherwise.has_value());
  return a ? a.number() : *otherwise;
}

inline std::string_view NodeView::text(std::string_view name, std::optional<std::string_view> otherwise) const {
  const AttributeView a = given(name, otherwise.has_value());
  return a ? a.text() : *otherwise;
}

inline std::vector<std::int64_t> NodeView::integers(std::string_view name, std::optional<std::vector<std::int64_t>> otherwise) const {
  const AttributeView a = given(name, otherwise.has_value());
  if (!a) return *std::move(otherwise);
  if (!a.dims().is_constant()) throw std::logic_error("attribute '" + std::string(name) + "' depends on symbols");
  return a.dims().evaluate();
}

inline LocationView NodeView::location() const {
  const detail::DebugSections& d = graph_->debug();
  if (id_ >= d.node_locations.size() || d.node_locations[id_] == TENON_NONE) return {};
  const TenonLocation& l = d.locations[d.node_locations[id_]];
  return {d.strings[l.file], l.line, d.strings[l.function], d.strings[l.code]};
}

inline std::uint32_t NodeView::origin() const {
  const detail::DebugSections& d = graph_->debug();
  return id_ < d.node_origins.size() && d.node_origins[id_] != TENON_NONE ? d.node_origins[id_] : id_;
}

}  // namespace tenon
