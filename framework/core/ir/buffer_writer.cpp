#include <bit>
#include <cstring>
#include <string>

#include "core/ir/buffer.h"
#include "core/ir/buffer_part.h"
#include "core/ir/buffer_tables.h"

namespace tenon::ir {
namespace {

using tables::Expressions;
using tables::Strings;
using tables::Types;

class Writer {
 public:
  Writer(const Graph& graph, const WriteOptions& options) : root_(graph), options_(options), types_(expressions_) {}

  std::vector<std::uint8_t> write() {
    reserve();
    for (const SymbolInfo& s : root_.symbols()) symbols_.push_back({s.min, s.max});
    for (const Constant& c : root_.constants()) constants_.push_back({types_.intern(c.type), 0});
    queue_.push_back({&root_, TENON_NONE});
    for (std::size_t i = 0; i < queue_.size(); ++i) write_region(*queue_[i].graph, queue_[i].owner);
    if (options_.debug) write_names();
    return assemble();
  }

 private:
  struct Pending {
    const Graph* graph;
    std::uint32_t owner;
  };

  void reserve() {
    const std::size_t nodes = root_.nodes().size();
    nodes_.make_room(nodes);
    values_.make_room(root_.value_capacity());
    operands_.make_room(nodes * 2);
    attributes_.make_room(nodes * 4);
    items_.make_room(nodes * 4);
    if (!options_.debug) return;
    value_names_.make_room(root_.value_capacity());
    node_locations_.make_room(nodes);
    debug_strings_.records.make_room(root_.value_capacity());
    debug_strings_.text.make_room(root_.value_capacity() * 12);
  }

  void write_region(const Graph& g, std::uint32_t owner) {
    graph_ = &g;
    ids_.assign(g.value_capacity(), TENON_NONE);
    type_ids_.assign(g.types().size(), TENON_NONE);
    literals_of_region_ = RecordTable();
    region_literals_.clear();
    std::uint32_t results = 0;
    for (NodeId n : g.nodes()) results += static_cast<std::uint32_t>(g.node(n).results.size());

    TenonRegion region{};
    region.owner = owner;
    region.first_node = static_cast<std::uint32_t>(nodes_.size());
    region.node_count = static_cast<std::uint32_t>(g.nodes().size());
    region.first_value = static_cast<std::uint32_t>(values_.size());
    region.input_count = static_cast<std::uint32_t>(g.inputs().size());
    region.result_count = results;
    region.first_output = static_cast<std::uint32_t>(outputs_.size());
    region.output_count = static_cast<std::uint32_t>(g.outputs().size());
    first_literal_ = region.first_value + region.input_count + results;

    for (std::uint32_t i = 0; i < g.inputs().size(); ++i) write_value(g.inputs()[i], TENON_VALUE_INPUT, TENON_NONE, i);
    const auto index = static_cast<std::uint32_t>(regions_.size());
    for (NodeId n : g.nodes()) write_node(n, index);
    for (const Output& o : g.outputs()) write_output(o);
    write_literals();
    region.literal_count = static_cast<std::uint32_t>(region_literals_.size());
    regions_.push_back(region);
  }

  void write_value(ValueId v, std::uint32_t kind, std::uint32_t node, std::uint32_t index) {
    const Value& value = graph_->value(v);
    ids_[v.value] = static_cast<std::uint32_t>(values_.size());
    values_.make_room(1);
    values_.put({kind, type_id(value.type), node, index});
    if (!options_.debug) return;
    value_names_.make_room(1);
    value_names_.put(value.name.empty() ? TENON_NONE : debug_strings_.append(value.name));
  }

  std::uint32_t type_id(TypeId t) {
    std::uint32_t& id = type_ids_[t.value];
    if (id == TENON_NONE) id = types_.intern(graph_->types()[t]);
    return id;
  }

  void write_node(NodeId id, std::uint32_t region) {
    const Node& node = graph_->node(id);
    const auto number = static_cast<std::uint32_t>(nodes_.size());
    TenonNode record{};
    record.op = name_id(node.op);
    record.region = region;
    record.first_operand = static_cast<std::uint32_t>(operands_.size());
    record.operand_count = static_cast<std::uint32_t>(node.operands.size());
    record.first_attribute = static_cast<std::uint32_t>(attributes_.size());
    record.attribute_count = static_cast<std::uint32_t>(node.attributes.size());
    record.first_result = static_cast<std::uint32_t>(values_.size());
    record.result_count = static_cast<std::uint32_t>(node.results.size());
    record.first_region = static_cast<std::uint32_t>(queue_.size());
    record.region_count = static_cast<std::uint32_t>(node.regions.size());
    operands_.make_room(node.operands.size());
    for (ValueId v : node.operands) operands_.put(operand(v));
    attributes_.make_room(node.attributes.size());
    for (const NamedAttribute& a : node.attributes) write_attribute(a);
    for (RegionId r : node.regions) queue_.push_back({&graph_->region(r), number});
    nodes_.make_room(1);
    nodes_.put(record);
    for (std::uint32_t i = 0; i < node.results.size(); ++i) write_value(node.results[i], TENON_VALUE_RESULT, number, i);
    if (options_.debug) {
      node_locations_.make_room(1);
      node_locations_.put(location_of(node));
      if (!options_.origins.empty()) node_origins_.push_back(graph_ == &root_ && id.value < options_.origins.size() ? options_.origins[id.value] : TENON_NONE);
    }
  }

  std::uint32_t name_id(Name name) {
    if (name.number() >= name_ids_.size()) name_ids_.resize(name.number() + 1, TENON_NONE);
    std::uint32_t& id = name_ids_[name.number()];
    if (id == TENON_NONE) id = strings_.intern(name);
    return id;
  }

  std::uint32_t operand(ValueId v) {
    if (ids_[v.value] != TENON_NONE) return ids_[v.value];  // without a look at the value, which may be far away
    const Value& value = graph_->value(v);
    TENON_CHECK(value.kind == ValueKind::literal, "value %{} is used before it is defined", value.name);
    return literal(value);
  }

  std::uint32_t literal(const Value& value) {
    TenonLiteral l{static_cast<std::uint32_t>(value.literal.index()), TENON_NONE, 0};
    if (const bool* b = std::get_if<bool>(&value.literal)) l.bits = *b;
    if (const double* d = std::get_if<double>(&value.literal)) l.bits = std::bit_cast<std::int64_t>(*d);
    if (const Dim* d = std::get_if<Dim>(&value.literal)) {
      const TenonDim dim = expressions_.dim(*d);
      l.bits = dim.value;
      l.expression = dim.expression;
    }
    const auto equals = [&](std::uint32_t id) {
      const TenonLiteral& other = region_literals_[id].record;
      return other.kind == l.kind && other.expression == l.expression && other.bits == l.bits;
    };
    const std::uint32_t index = literals_of_region_.find_or_make(mix(mix(l.kind, l.expression), static_cast<std::uint64_t>(l.bits)), equals, [&] {
      region_literals_.push_back({l, value.type});
      return static_cast<std::uint32_t>(region_literals_.size() - 1);
    });
    return first_literal_ + index;
  }

  void write_literals() {
    for (const RegionLiteral& l : region_literals_) {
      values_.make_room(1);
      values_.put({TENON_VALUE_LITERAL, type_id(l.type), TENON_NONE, static_cast<std::uint32_t>(literals_.size())});
      literals_.push_back(l.record);
      value_names_.make_room(1);
      if (options_.debug) value_names_.put(TENON_NONE);
    }
  }

  void write_attribute(const NamedAttribute& a) {
    TenonAttribute record{name_id(a.name), static_cast<std::uint32_t>(a.value.index()), TENON_NONE, 0, 0};
    switch (record.kind) {
      case TENON_ATTRIBUTE_BOOL: record.bits = std::get<bool>(a.value); break;
      case TENON_ATTRIBUTE_INT: {
        const TenonDim d = expressions_.dim(std::get<Dim>(a.value));
        record.ref = d.expression;
        record.bits = d.value;
        break;
      }
      case TENON_ATTRIBUTE_FLOAT: record.bits = std::bit_cast<std::int64_t>(std::get<double>(a.value)); break;
      case TENON_ATTRIBUTE_STRING: record.ref = strings_.intern(std::get<std::string>(a.value)); break;
      case TENON_ATTRIBUTE_DTYPE: record.bits = static_cast<std::int64_t>(std::get<DType>(a.value)); break;
      case TENON_ATTRIBUTE_INTS:
        record.ref = static_cast<std::uint32_t>(items_.size());
        items_.make_room(std::get<std::vector<Dim>>(a.value).size());
        for (const Dim& d : std::get<std::vector<Dim>>(a.value)) items_.put(expressions_.dim(d));
        record.count = static_cast<std::uint32_t>(items_.size()) - record.ref;
        break;
      case TENON_ATTRIBUTE_FLOATS:
        record.ref = static_cast<std::uint32_t>(items_.size());
        items_.make_room(std::get<std::vector<double>>(a.value).size());
        for (double d : std::get<std::vector<double>>(a.value)) items_.put({std::bit_cast<std::int64_t>(d), TENON_NONE, 0});
        record.count = static_cast<std::uint32_t>(items_.size()) - record.ref;
        break;
      default: break;
    }
    attributes_.put(record);
  }

  void write_output(const Output& o) {
    TENON_CHECK(graph_->value(o.value).kind != ValueKind::literal, "a literal is an output");
    const std::uint32_t target = o.kind == OutputKind::update ? operand(o.target) : TENON_NONE;
    outputs_.push_back({operand(o.value), static_cast<std::uint32_t>(o.kind), target, 0});
  }

  /// Neighbours mostly share theirs.
  std::uint32_t location_of(const Node& node) {
    if (!last_location_ || !same(node.location, *last_location_)) {
      last_location_ = &node.location;
      last_location_id_ = node.location.is_known() ? location(*node.location) : TENON_NONE;
    }
    return last_location_id_;
  }

  std::uint32_t location(const Location& l) {
    const TenonLocation record{debug_strings_.intern_or_none(l.file), static_cast<std::uint32_t>(l.line < 0 ? 0 : l.line),
                               debug_strings_.intern_or_none(l.function), debug_strings_.intern_or_none(l.code)};
    const std::uint64_t h = mix(mix(std::uint64_t{record.file} << 32 | record.line, record.function), record.code);
    const auto equals = [&](std::uint32_t id) { return std::memcmp(&locations_[id], &record, sizeof record) == 0; };
    return location_table_.find_or_make(h, equals, [&] {
      locations_.push_back(record);
      return static_cast<std::uint32_t>(locations_.size() - 1);
    });
  }

  void write_names() {
    for (const SymbolInfo& s : root_.symbols()) symbol_names_.push_back(debug_strings_.append(s.name)), symbol_hints_.push_back(s.hint);
    for (const Constant& c : root_.constants()) constant_names_.push_back(debug_strings_.append(c.name));
    for (const Pending& p : queue_) region_names_.push_back(debug_strings_.append(p.graph->name));
  }

  std::vector<std::uint8_t> assemble() const {
    Part semantic, debug;
    semantic.add(strings_.text);
    semantic.add(strings_.records);
    semantic.add(symbols_);
    semantic.add(expressions_.records);
    semantic.add(types_.dims);
    semantic.add(types_.records);
    semantic.add(constants_);
    semantic.add(regions_);
    semantic.add(nodes_);
    semantic.add(values_);
    semantic.add(literals_);
    semantic.add(operands_);
    semantic.add(outputs_);
    semantic.add(attributes_);
    semantic.add(items_);
    debug.add(debug_strings_.text);
    debug.add(debug_strings_.records);
    debug.add(value_names_);
    debug.add(symbol_names_);
    debug.add(constant_names_);
    debug.add(region_names_);
    debug.add(locations_);
    debug.add(node_locations_);
    debug.add(node_origins_);
    debug.add(symbol_hints_);
    const std::uint64_t semantic_size = semantic.size(), debug_size = options_.debug ? debug.size() : 0;
    if (semantic_size > UINT32_MAX || debug_size > UINT32_MAX)
      throw Exception(Code::unsupported, "the graph does not fit into a buffer of 4 GB");
    std::vector<std::uint8_t> buffer;
    buffer.reserve(semantic_size + debug_size);
    semantic.write(buffer, TENON_BUFFER_MAGIC);
    if (options_.debug) debug.write(buffer, TENON_BUFFER_DEBUG_MAGIC);
    return buffer;
  }

  const Graph& root_;
  const WriteOptions& options_;
  std::vector<Pending> queue_;  // regions in the order of their numbers

  // The region being written.
  struct RegionLiteral {
    TenonLiteral record;
    TypeId type;
  };
  const Graph* graph_ = nullptr;
  std::vector<std::uint32_t> ids_;       // ValueId → value of the buffer
  std::vector<std::uint32_t> type_ids_;  // TypeId → type of the buffer
  std::vector<RegionLiteral> region_literals_;
  RecordTable literals_of_region_;
  std::uint32_t first_literal_ = 0;

  Strings strings_, debug_strings_;
  std::vector<std::uint32_t> name_ids_;  // by Name::number: the string of the buffer
  Expressions expressions_;
  Types types_;
  std::vector<TenonSymbol> symbols_;
  std::vector<TenonConstant> constants_;
  std::vector<TenonRegion> regions_;
  RecordColumn<TenonNode> nodes_;
  RecordColumn<TenonValue> values_;
  std::vector<TenonLiteral> literals_;
  RecordColumn<std::uint32_t> operands_;
  std::vector<TenonOutput> outputs_;
  RecordColumn<TenonAttribute> attributes_;
  RecordColumn<TenonDim> items_;

  RecordColumn<std::uint32_t> value_names_, node_locations_;
  std::vector<std::uint32_t> symbol_names_, constant_names_, region_names_, node_origins_;
  std::vector<std::int64_t> symbol_hints_;
  std::vector<TenonLocation> locations_;
  RecordTable location_table_;
  const SharedLocation* last_location_ = nullptr;
  std::uint32_t last_location_id_ = 0;
};

}  // namespace

std::vector<std::uint8_t> write_buffer(const Graph& graph, const WriteOptions& options) { return Writer(graph, options).write(); }

}  // namespace tenon::ir
