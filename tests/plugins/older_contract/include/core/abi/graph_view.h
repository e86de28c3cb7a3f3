// Reads a graph buffer in place: all that a backend needs to understand a graph. Header-only, depends on nothing but the standard
// library and the headers beside it.
//
//   for (NodeView node : graph.nodes())
//     if (node.op() == "add" && node.type().dtype() == DType::f32) …
//
// Views are two words, borrowed from the GraphView that made them, which borrows the bytes. The bytes must have passed the verifier
// (buffer_verifier.h); what the host hands to a plugin has. Reading is thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "core/abi/buffer_sections.h"
#include "core/abi/checked_int.h"

namespace tenon {

class GraphView;
class NodeView;
class ValueView;

/// Iterates over `count` items whose ids are consecutive, or listed in a table.
template <class Item>
class ViewRange {
 public:
  ViewRange(const GraphView* graph, std::uint32_t first, std::uint32_t count, const detail::Table<std::uint32_t>* ids = nullptr)
      : graph_(graph), ids_(ids), first_(first), count_(count) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  // items are made on the way
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Item;

    Iterator() = default;
    Iterator(const ViewRange* range, std::uint32_t i) : range_(range), i_(i) {}
    Item operator*() const { return (*range_)[i_]; }
    Iterator& operator++() { return ++i_, *this; }
    Iterator operator++(int) { return {range_, i_++}; }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }

   private:
    const ViewRange* range_ = nullptr;
    std::uint32_t i_ = 0;
  };

  std::uint32_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Item operator[](std::uint32_t i) const { return Item(graph_, ids_ ? (*ids_)[first_ + i] : first_ + i); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, count_}; }

 private:
  const GraphView* graph_;
  const detail::Table<std::uint32_t>* ids_;
  std::uint32_t first_, count_;
};

/// An integer that may depend on symbols: a dimension, a stride, an integer attribute.
class DimView {
 public:
  DimView(const GraphView* graph, std::int64_t value, std::uint32_t expression) : graph_(graph), value_(value), expression_(expression) {}

  bool is_constant() const { return expression_ == TENON_NONE; }
  /// The value of a constant. Throws std::logic_error when it depends on symbols.
  std::int64_t constant() const;
  /// The value, given the value of each symbol of the graph (null will do for a constant). Throws std::overflow_error, or
  /// std::domain_error for a division by zero.
  std::int64_t evaluate(const std::int64_t* symbols) const;
  /// The symbol, when it is exactly one.
  std::optional<std::uint32_t> as_symbol() const;
  /// The record in the expressions section, for a backend that lowers the arithmetic itself; TENON_NONE for a constant.
  std::uint32_t expression() const { return expression_; }

 private:
  const GraphView* graph_;
  std::int64_t value_;
  std::uint32_t expression_;
};

/// A list of integers: a shape, strides, a list attribute.
class DimRange {
 public:
  DimRange(const GraphView* graph, const detail::Table<TenonDim>& table, std::uint32_t first, std::uint32_t count)
      : graph_(graph), table_(table), first_(first), count_(count) {}

  std::uint32_t size() const { return count_; }
  DimView operator[](std::uint32_t i) const {
    const TenonDim& dim = table_[first_ + i];
    return {graph_, dim.value, dim.expression};
  }
  bool is_constant() const;
  /// The values; see DimView::evaluate.
  std::vector<std::int64_t> evaluate(const std::int64_t* symbols = nullptr) const;

 private:
  const GraphView* graph_;
  detail::Table<TenonDim> table_;
  std::uint32_t first_, count_;
};

/// The type of a value. Symbol values may be left out where the type is static; a symbolic one then throws std::logic_error.
class TypeView {
 public:
  TypeView(const GraphView* graph, std::uint32_t id) : graph_(graph), id_(id) {}

  /// Equal types of one buffer have equal ids.
  std::uint32_t id() const { return id_; }
  bool is_tensor() const { return record().kind == TENON_TYPE_TENSOR; }
  DType dtype() const { return static_cast<DType>(record().dtype); }
  std::uint32_t rank() const { return record().rank; }
  /// DLPack's number of the kind of device, and which one.
  int device_kind() const { return record().device_kind; }
  int device_index() const { return record().device_index; }
  DimRange dims() const;
  DimView dim(std::uint32_t i) const { return dims()[i]; }
  bool is_static() const;
  /// True when strides are stated. Without, the layout is row-major.
  bool has_strides() const { return record().has_strides != 0; }
  DimRange stated_strides() const;

  std::vector<std::int64_t> shape(const std::int64_t* symbols = nullptr) const { return dims().evaluate(symbols); }
  /// Strides in elements: stated, or row-major (where a dimension of size 0 counts as 1).
  std::vector<std::int64_t> strides(const std::int64_t* symbols = nullptr) const;
  std::int64_t element_count(const std::int64_t* symbols = nullptr) const;
  std::int64_t byte_count(const std::int64_t* symbols = nullptr) const;

 private:
  const TenonType& record() const;
  const GraphView* graph_;
  std::uint32_t id_;
};

class AttributeView {
 public:
  AttributeView(const GraphView* graph, std::uint32_t id) : graph_(graph), id_(id) {}

  /// False when a look-up by name found nothing.
  explicit operator bool() const { return id_ != TENON_NONE; }
  std::string_view name() const;
  std::uint32_t kind() const { return record().kind; }  // TENON_ATTRIBUTE_…
  bool is_none() const { return kind() == TENON_ATTRIBUTE_NONE; }

  /// The value. Throws std::invalid_argument, with the name, when it is of another kind. `number` takes integers too.
  bool flag() const;
  DimView dim() const;
  std::int64_t integer() const { return dim().constant(); }
  double number() const;
  std::string_view text() const;
  DType dtype() const;
  DimRange dims() const;
  std::vector<double> numbers() const;

 private:
  const TenonAttribute& record() const;
  const TenonAttribute& record_of(std::uint32_t kind, const char* what) const;
  const GraphView* graph_;
  std::uint32_t id_;
};

class ValueView {
 public:
  ValueView(const GraphView* graph, std::uint32_t id) : graph_(graph), id_(id) {}

  /// Dense, below GraphView::value_count(): for tables.
  std::uint32_t id() const { return id_; }
  TypeView type() const { return {graph_, record().type}; }
  bool is_input() const { return record().kind == TENON_VALUE_INPUT; }
  bool is_result() const { return record().kind == TENON_VALUE_RESULT; }
  bool is_literal() const { return record().kind == TENON_VALUE_LITERAL; }
  /// The node that defines a result.
  NodeView node() const;
  /// Position among the inputs, or among the node's results.
  std::uint32_t index() const { return record().index; }
  std::string_view name() const;

  /// Of a literal: TENON_LITERAL_…; its value as a number (bools are 0 and 1); an int literal in full.
  std::uint32_t literal_kind() const { return literal().kind; }
  double number(const std::int64_t* symbols = nullptr) const;
  DimView literal_int() const { return {graph_, literal().bits, literal().expression}; }

  friend bool operator==(const ValueView& a, const ValueView& b) { return a.id_ == b.id_; }

 private:
  const TenonValue& record() const;
  const TenonLiteral& literal() const;
  const GraphView* graph_;
  std::uint32_t id_;
};

struct OutputView {
  OutputView(const GraphView* graph, std::uint32_t id);

  ValueView value;
  std::uint32_t kind;                // TENON_OUTPUT_…
  std::optional<ValueView> target;  // update: the input that takes the value
};

/// Where a node came from in the user's program; empty and 0 where unknown.
struct LocationView {
  std::string_view file;
  std::uint32_t line = 0;
  std::string_view function;
  std::string_view code;
};

class RegionView {
 public:
  RegionView(const GraphView* graph, std::uint32_t id) : graph_(graph), id_(id) {}

  std::uint32_t id() const { return id_; }
  std::string_view name() const;
  ViewRange<ValueView> inputs() const { return {graph_, record().first_value, record().input_count}; }
  ViewRange<NodeView> nodes() const { return {graph_, record().first_node, record().node_count}; }
  ViewRange<OutputView> outputs() const { return {graph_, record().first_output, record().output_count}; }

 private:
  const TenonRegion& record() const;
  const GraphView* graph_;
  std::uint32_t id_;
};

class NodeView {
 public:
  NodeView(const GraphView* graph, std::uint32_t id) : graph_(graph), id_(id) {}

  /// The node's number, as in claims and reports. The nodes of the graph itself are 0, 1, … in order; those of regions follow.
  std::uint32_t id() const { return id_; }
  std::string_view op() const;
  ViewRange<ValueView> operands() const;
  ValueView operand(std::uint32_t i) const { return operands()[i]; }
  ViewRange<ValueView> results() const { return {graph_, record().first_result, record().result_count}; }
  ValueView result(std::uint32_t i = 0) const { return results()[i]; }
  /// The type of the first result.
  TypeView type() const { return result().type(); }
  ViewRange<RegionView> regions() const { return {graph_, record().first_region, record().region_count}; }
  RegionView region() const { return {graph_, record().region}; }

  ViewRange<AttributeView> attributes() const { return {graph_, record().first_attribute, record().attribute_count}; }
  /// The attribute of that name; false when there is none.
  AttributeView attribute(std::string_view name) const;
  /// Values of attributes by name. An attribute that is absent or None gives `otherwise`, or without it throws
  /// std::invalid_argument. Symbolic integers throw std::logic_error: use attribute(name).dim().
  bool flag(std::string_view name, std::optional<bool> otherwise = {}) const;
  std::int64_t integer(std::string_view name, std::optional<std::int64_t> otherwise = {}) const;
  double number(std::string_view name, std::optional<double> otherwise = {}) const;
  std::string_view text(std::string_view name, std::optional<std::string_view> otherwise = {}) const;
  std::vector<std::int64_t> integers(std::string_view name, std::optional<std::vector<std::int64_t>> otherwise = {}) const;

  LocationView location() const;
  /// Its number in the graph that this one was cut from, for messages; its own where none is recorded.
  std::uint32_t origin() const;

 private:
  const TenonNode& record() const;
  AttributeView given(std::string_view name, bool has_default) const;
  const GraphView* graph_;
  std::uint32_t id_;
};

/// A graph buffer. Cheap to copy; copies and views of it refer to the same bytes.
class GraphView {
 public:
  explicit GraphView(TenonBytes bytes) noexcept : bytes_(bytes), s_(bytes.data) {
    const std::uint32_t semantic = detail::header_of(bytes.data).part_size;
    if (bytes.size > semantic) debug_ = detail::DebugSections(bytes.data + semantic);
  }

  TenonBytes bytes() const { return bytes_; }
  RegionView root() const { return {this, 0}; }
  std::string_view name() const { return root().name(); }
  ViewRange<ValueView> inputs() const { return root().inputs(); }
  ViewRange<NodeView> nodes() const { return root().nodes(); }
  ViewRange<OutputView> outputs() const { return root().outputs(); }
  /// Any node and value, of regions too.
  NodeView node(std::uint32_t id) const { return {this, id}; }
  ValueView value(std::uint32_t id) const { return {this, id}; }
  std::uint32_t node_count() const { return s_.nodes.size(); }
  std::uint32_t value_count() const { return s_.values.size(); }

  std::uint32_t constant_count() const { return s_.constants.size(); }
  TypeView constant_type(std::uint32_t i) const { return {this, s_.constants[i].type}; }
  std::string_view constant_name(std::uint32_t i) const { return debug_.name(debug_.constant_names, i); }

  std::uint32_t symbol_count() const { return s_.symbols.size(); }
  const TenonSymbol& symbol(std::uint32_t i) const { return s_.symbols[i]; }
  std::string_view symbol_name(std::uint32_t i) const { return debug_.name(debug_.symbol_names, i); }
  /// A value that the symbol had where the graph was made, for what only costs depend on; -1 where that is not known.
  std::int64_t symbol_hint(std::uint32_t i) const { return i < debug_.symbol_hints.size() ? debug_.symbol_hints[i] : -1; }

  /// The records themselves.
  const detail::SemanticSections& sections() const { return s_; }
  const detail::DebugSections& debug() const { return debug_; }

 private:
  TenonBytes bytes_;
  detail::SemanticSections s_;
  detail::DebugSections debug_;
};

}  // namespace tenon

#include "core/abi/graph_view_inline.h"
