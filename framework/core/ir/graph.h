// The graph: pure operations in static single assignment form, over an arena with typed indices.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/ir/attribute.h"
#include "core/ir/type_table.h"

namespace tenon::ir {

class Graph;

/// Where a node came from in the user's program. Empty strings and line 0 mean unknown.
struct Location {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;  // the source text of the line, stripped
  friend bool operator==(const Location&, const Location&) = default;
};

/// A location that all nodes of a line share: cheap to copy. Never null: without one it reads as the unknown location.
class SharedLocation {
 public:
  SharedLocation() = default;
  SharedLocation(Location location) : location_(std::make_shared<const Location>(std::move(location))) {}

  const Location& operator*() const {
    static const Location unknown;
    return location_ ? *location_ : unknown;
  }
  const Location* operator->() const { return &**this; }
  bool is_known() const { return location_ && *location_ != Location(); }
  /// Whether both are copies of one.
  friend bool same(const SharedLocation& a, const SharedLocation& b) { return a.location_ == b.location_; }

 private:
  std::shared_ptr<const Location> location_;
};

/// A symbolic integer of the graph, with the range in which the graph holds (both ends included).
struct SymbolInfo {
  std::string name;
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
  std::int64_t hint = -1;  // a value that it had where the graph was made, for what only costs depend on; -1: not known
};

/// An immediate number used as an operand: 0-d, and weak in type promotion (torch: a wrapped number; NumPy: a Python scalar).
/// Its type is bool[], i64[] or f64[]; an operation converts it to the dtype that its tensor operands share.
using Literal = std::variant<bool, Dim, double>;

enum class ValueKind : std::uint8_t { input, literal, result };

struct Value {
  ValueKind kind = ValueKind::input;
  TypeId type;              // in the graph's table; Graph::type reads it
  NodeId node;              // result: the node that defines it
  std::uint32_t index = 0;  // input: position among the inputs; result: position among the node's results
  Literal literal;          // literal
  std::string name;         // for people; unique in the graph, never empty for inputs and results
};

struct Node {
  Name op;  // the catalogue's name
  std::vector<ValueId> operands;
  Attributes attributes;
  std::vector<ValueId> results;
  std::vector<RegionId> regions;
  SharedLocation location;

  /// The attribute of that name, or null.
  const Attribute* attribute(std::string_view name) const;
};

enum class OutputKind : std::uint8_t {
  result,  // returned to the caller
  update,  // written back into an input when the call succeeds
  saved,   // kept for a backward graph
};

struct Output {
  ValueId value;
  OutputKind kind = OutputKind::result;
  ValueId target = {};  // update: the input that takes the value
  friend bool operator==(const Output&, const Output&) = default;
};

/// A tensor whose bytes belong to the graph's creator. The node `constant` reads it. The bytes live outside the graph, in
/// row-major order; `data` may be null where only the type matters (a parsed file without its side file).
struct Constant {
  Type type;
  const void* data = nullptr;
  std::shared_ptr<const void> owner;  // keeps the bytes alive; may be null for memory that outlives the graph
  std::string name;
};

/// A graph. Nodes are stored in an order in which every operand is defined before its use; `nodes()` gives that order.
/// Regions (branches, loop bodies) are graphs of their own that see only their inputs, and the symbols of the outermost graph.
/// Ids stay valid until the value or node is erased, and are never reused.
class Graph {
 public:
  Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  /// A deep copy with the same ids; constants share their bytes.
  Graph clone() const;

  std::string name = "main";

  // ---- reading
  std::span<const NodeId> nodes() const { return order_; }
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const Output> outputs() const { return outputs_; }
  std::span<const SymbolInfo> symbols() const { return symbols_; }
  std::span<const Constant> constants() const { return constants_; }
  const Node& node(NodeId id) const { return nodes_[id.value]; }
  const Value& value(ValueId id) const { return values_[id.value]; }
  const Type& type(ValueId id) const { return types_[values_[id.value].type]; }
  /// The types of the values, and of values that were.
  const TypeTable& types() const { return types_; }
  const Graph& region(RegionId id) const { return *regions_[id.value]; }
  /// One past the largest id in use: for tables indexed by id.
  std::size_t node_capacity() const { return nodes_.size(); }
  std::size_t value_capacity() const { return values_.size(); }
  std::size_t region_capacity() const { return regions_.size(); }
  /// Which nodes read each value, indexed by ValueId; a node occurs once for each operand position.
  std::vector<std::vector<NodeId>> users() const;

  // ---- writing
  /// Makes room for so many nodes and values.
  void reserve(std::size_t nodes, std::size_t values);
  /// Symbols and constants get a name where they have none; names that are taken, or that the text form cannot have, are changed.
  SymbolId add_symbol(SymbolInfo info);
  ConstantId add_constant(Constant constant);
  ValueId add_input(Type type, std::string name = {});
  ValueId add_literal(Literal literal);
  RegionId add_region(Graph graph);
  /// Appends a node (or inserts it before `before`) with results of the given types. `names`: of the results, made unique; those
  /// that are empty or not given come from the op. Attributes need not be sorted.
  NodeId add_node(Name op, std::vector<ValueId> operands, Attributes attributes, std::vector<Type> result_types,
                  SharedLocation location = {}, std::vector<RegionId> regions = {}, std::optional<NodeId> before = {},
                  std::span<const std::string> names = {});
  void add_output(Output output) { outputs_.push_back(output); }
  void set_outputs(std::vector<Output> outputs) { outputs_ = std::move(outputs); }
  void set_name(ValueId value, std::string name);
  void set_type(ValueId value, Type type) { values_[value.value].type = types_.intern(std::move(type)); }
  /// Strides in elements, one for each dimension; none for a contiguous row-major layout.
  void set_strides(ValueId value, std::optional<Shape> strides);
  Node& mutable_node(NodeId id) { return nodes_[id.value]; }
  Value& mutable_value(ValueId id) { return values_[id.value]; }
  Graph& mutable_region(RegionId id) { return *regions_[id.value]; }
  SymbolInfo& mutable_symbol(SymbolId id) { return symbols_[id.value]; }
  /// Makes every operand and output that reads `from` read `to`. Types are the caller's concern.
  void replace_uses(ValueId from, ValueId to);
  /// Removes nodes whose results nothing reads.
  void erase_nodes(std::span<const NodeId> ids);
  /// Removes the constants that no node reads, here and in regions, and renumbers the others. Gives their old ids, in order.
  std::vector<ConstantId> drop_unused_constants();

 private:
  std::string unique_name(std::string_view wish);

  std::vector<NodeId> order_;
  std::vector<ValueId> inputs_;
  std::vector<Output> outputs_;
  std::vector<SymbolInfo> symbols_;
  std::vector<Constant> constants_;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  TypeTable types_;
  std::vector<std::unique_ptr<Graph>> regions_;
  struct Names;
  std::unique_ptr<Names> names_;
};

}  // namespace tenon::ir
