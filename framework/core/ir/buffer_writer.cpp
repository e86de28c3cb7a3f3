#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "core/abi/buffer_layout.h"
#include "core/base/hash.h"
#include "core/ir/buffer.h"
#include "core/ir/record_table.h"

namespace tenon::ir {
namespace {

std::uint64_t word_at(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

/// Up to 7 bytes as one word. Not a memcpy of unknown length: names are short, and this is where writing spends its time.
std::uint64_t short_word(const char* p, std::size_t n) {
  std::uint32_t low, high;
  if (n >= 4) {
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    return std::uint64_t{high} << 32 | low;
  }
  if (n == 0) return 0;
  const auto byte = [p](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(p[i])); };
  return byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
}

std::uint64_t hash_of(std::string_view s) {
  if (s.size() < 8) return mix(s.size(), short_word(s.data(), s.size()));
  std::uint64_t h = s.size();
  const char* last = s.data() + s.size() - 8;
  for (const char* p = s.data(); p < last; p += 8) h = mix(h, word_at(p));
  return mix(h, word_at(last));
}

bool same_bytes(const char* a, const char* b, std::size_t n) {
  if (n < 8) return short_word(a, n) == short_word(b, n);
  for (std::size_t i = 0; i + 8 < n; i += 8)
    if (word_at(a + i) != word_at(b + i)) return false;
  return word_at(a + n - 8) == word_at(b + n - 8);
}

/// Text and string records of one part.
struct Strings {
  std::vector<char> text;
  std::vector<TenonString> records;
  RecordTable table;

  bool is(std::uint32_t id, std::string_view s) const { return records[id].size == s.size() && same_bytes(text.data() + records[id].offset, s.data(), s.size()); }

  /// Stores a string that is not expected to occur again.
  std::uint32_t append(std::string_view s) {
    records.push_back({static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(s.size())});
    text.insert(text.end(), s.begin(), s.end());
    text.push_back(0);
    return static_cast<std::uint32_t>(records.size() - 1);
  }

  std::uint32_t intern(std::string_view s) {
    return table.find_or_make(hash_of(s), [&](std::uint32_t id) { return is(id, s); }, [&] { return append(s); });
  }

  std::uint32_t intern_or_none(std::string_view s) { return s.empty() ? TENON_NONE : intern(s); }
};

/// Expressions, each (kind, operands) once; operands come first.
struct Expressions {
  std::vector<TenonExpression> records;
  RecordTable table;

  std::uint32_t record(std::uint32_t kind, std::uint32_t a, std::uint32_t b, std::int64_t value) {
    std::uint64_t h = mix(mix(kind, std::uint64_t{a} << 32 | b), static_cast<std::uint64_t>(value));
    const auto equals = [&](std::uint32_t id) {
      const TenonExpression& e = records[id];
      return e.kind == kind && e.a == a && e.b == b && e.value == value;
    };
    return table.find_or_make(h, equals, [&] {
      records.push_back({kind, a, b, 0, value});
      return static_cast<std::uint32_t>(records.size() - 1);
    });
  }

  std::uint32_t constant(std::int64_t value) { return record(TENON_EXPRESSION_CONSTANT, 0, 0, value); }

  std::uint32_t atom(const DimAtom& atom) {
    if (atom.op == DimOp::symbol) return record(TENON_EXPRESSION_SYMBOL, atom.symbol.value, 0, 0);
    static constexpr std::uint32_t kKinds[] = {0, TENON_EXPRESSION_FLOOR_DIV, TENON_EXPRESSION_MOD, TENON_EXPRESSION_MIN, TENON_EXPRESSION_MAX};
    const std::uint32_t a = expression(atom.operands[0]), b = expression(atom.operands[1]);
    return record(kKinds[static_cast<std::size_t>(atom.op)], a, b, 0);
  }

  std::uint32_t term(const DimTerm& term) {
    std::uint32_t product = atom(term.atoms[0]);
    for (std::size_t i = 1; i < term.atoms.size(); ++i) product = record(TENON_EXPRESSION_MUL, product, atom(term.atoms[i]), 0);
    return term.coefficient == 1 ? product : record(TENON_EXPRESSION_MUL, product, constant(term.coefficient), 0);
  }

  std::uint32_t expression(const Dim& dim) {
    if (dim.is_constant()) return constant(dim.offset());
    std::uint32_t sum = term(dim.terms()[0]);
    for (std::size_t i = 1; i < dim.terms().size(); ++i) sum = record(TENON_EXPRESSION_ADD, sum, term(dim.terms()[i]), 0);
    return dim.offset() == 0 ? sum : record(TENON_EXPRESSION_ADD, sum, constant(dim.offset()), 0);
  }

  TenonDim dim(const Dim& d) { return d.is_constant() ? TenonDim{d.offset(), TENON_NONE, 0} : TenonDim{0, expression(d), 0}; }
};

/// Types, each once.
struct Types {
  std::vector<TenonType> records;
  std::vector<TenonDim> dims;
  std::vector<const Type*> types;
  RecordTable table;
  std::uint32_t last = 0;
  Expressions& expressions;

  explicit Types(Expressions& e) : expressions(e) {}

  static std::uint64_t hash_of(const Type& t) {
    std::uint64_t h = mix(static_cast<std::uint64_t>(t.kind) << 8 | static_cast<std::uint64_t>(t.dtype), static_cast<std::uint64_t>(t.device.kind));
    h = mix(h, static_cast<std::uint64_t>(t.device.index));
    for (const Dim& d : t.shape) h = mix(h, d.is_constant() ? static_cast<std::uint64_t>(d.offset()) : d.hash());
    if (t.strides)
      for (const Dim& d : *t.strides) h = mix(h + 1, d.is_constant() ? static_cast<std::uint64_t>(d.offset()) : d.hash());
    return h;
  }

  /// Constants are compared here: calls of Dim's own comparison would be half of the work.
  static bool same(const Shape& a, const Shape& b) {
    const auto same_dim = [](const Dim& x, const Dim& y) { return x.is_constant() && y.is_constant() ? x.offset() == y.offset() : x == y; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_dim);
  }

  static bool same(const Type& a, const Type& b) {
    return a.kind == b.kind && a.dtype == b.dtype && a.device == b.device && same(a.shape, b.shape) && a.strides.has_value() == b.strides.has_value() &&
           (!a.strides || same(*a.strides, *b.strides));
  }

  /// Neighbours often have the same type.
  std::uint32_t intern(const Type& t) {
    if (!types.empty() && same(*types[last], t)) return last;
    return last = table.find_or_make(hash_of(t), [&](std::uint32_t id) { return same(*types[id], t); }, [&] { return append(t); });
  }

  std::uint32_t append(const Type& t) {
    const auto first = static_cast<std::uint32_t>(dims.size());
    for (const Dim& d : t.shape) dims.push_back(expressions.dim(d));
    if (t.strides)
      for (const Dim& d : *t.strides) dims.push_back(expressions.dim(d));
    records.push_back({static_cast<std::uint8_t>(t.kind), static_cast<std::uint8_t>(t.dtype), static_cast<std::uint8_t>(t.device.kind),
                       static_cast<std::uint8_t>(t.strides.has_value()), t.device.index, first, static_cast<std::uint32_t>(t.rank())});
    types.push_back(&t);
    return static_cast<std::uint32_t>(records.size() - 1);
  }
};

/// A part under assembly: sections as spans of bytes, in the order of the table.
class Part {
 public:
  template <class Record>
  void add(const std::vector<Record>& records) {
    if (records.size() > UINT32_MAX) throw Exception(Code::unsupported, "the graph does not fit into a buffer of 4 GB");
    sections_.push_back({records.data(), static_cast<std::uint32_t>(records.size()), sizeof(Record)});
  }

  std::uint64_t size() const {
    std::uint64_t bytes = sizeof(TenonBufferHeader) + sections_.size() * sizeof(TenonBufferSection);
    for (const Section& s : sections_) bytes = padded(bytes + std::uint64_t{s.count} * s.stride);
    return bytes;
  }

  /// Appends the part; the vector has room for it.
  void write(std::vector<std::uint8_t>& out, std::uint64_t magic) const {
    const std::size_t start = out.size();
    append(out, TenonBufferHeader{magic, TENON_BUFFER_SCHEMA, sizeof(TenonBufferHeader), static_cast<std::uint32_t>(size()), static_cast<std::uint32_t>(sections_.size())});
    std::uint64_t offset = sizeof(TenonBufferHeader) + sections_.size() * sizeof(TenonBufferSection);
    for (const Section& s : sections_) {
      append(out, TenonBufferSection{static_cast<std::uint32_t>(offset), s.count, s.stride, 0});
      offset = padded(offset + std::uint64_t{s.count} * s.stride);
    }
    for (const Section& s : sections_) {
      const auto* bytes = static_cast<const std::uint8_t*>(s.data);
      out.insert(out.end(), bytes, bytes + std::size_t{s.count} * s.stride);
      out.resize(start + padded(out.size() - start));
    }
  }

 private:
  struct Section {
    const void* data;
    std::uint32_t count, stride;
  };
  template <class Record>
  static void append(std::vector<std::uint8_t>& out, const Record& record) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
    out.insert(out.end(), bytes, bytes + sizeof record);
  }
  static std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }
  std::vector<Section> sections_;
};

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
    nodes_.reserve(nodes);
    values_.reserve(root_.value_capacity());
    operands_.reserve(nodes * 2);
    attributes_.reserve(nodes * 4);
    items_.reserve(nodes * 4);
    if (!options_.debug) return;
    value_names_.reserve(root_.value_capacity());
    node_locations_.reserve(nodes);
    debug_strings_.records.reserve(root_.value_capacity());
    debug_strings_.text.reserve(root_.value_capacity() * 12);
  }

  void write_region(const Graph& g, std::uint32_t owner) {
    graph_ = &g;
    ids_.assign(g.value_capacity(), TENON_NONE);
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
    values_.push_back({kind, types_.intern(value.type), node, index});
    if (options_.debug) value_names_.push_back(value.name.empty() ? TENON_NONE : debug_strings_.append(value.name));
  }

  void write_node(NodeId id, std::uint32_t region) {
    const Node& node = graph_->node(id);
    const auto number = static_cast<std::uint32_t>(nodes_.size());
    TenonNode record{};
    record.op = strings_.intern(node.op);
    record.region = region;
    record.first_operand = static_cast<std::uint32_t>(operands_.size());
    record.operand_count = static_cast<std::uint32_t>(node.operands.size());
    record.first_attribute = static_cast<std::uint32_t>(attributes_.size());
    record.attribute_count = static_cast<std::uint32_t>(node.attributes.size());
    record.first_result = static_cast<std::uint32_t>(values_.size());
    record.result_count = static_cast<std::uint32_t>(node.results.size());
    record.first_region = static_cast<std::uint32_t>(queue_.size());
    record.region_count = static_cast<std::uint32_t>(node.regions.size());
    for (ValueId v : node.operands) operands_.push_back(operand(v));
    for (const NamedAttribute& a : node.attributes) write_attribute(a);
    for (RegionId r : node.regions) queue_.push_back({&graph_->region(r), number});
    nodes_.push_back(record);
    for (std::uint32_t i = 0; i < node.results.size(); ++i) write_value(node.results[i], TENON_VALUE_RESULT, number, i);
    if (options_.debug) {
      node_locations_.push_back(location(node.location));
      if (!options_.origins.empty()) node_origins_.push_back(graph_ == &root_ && id.value < options_.origins.size() ? options_.origins[id.value] : TENON_NONE);
    }
  }

  std::uint32_t operand(ValueId v) {
    const Value& value = graph_->value(v);
    if (value.kind == ValueKind::literal) return literal(value);
    TENON_CHECK(ids_[v.value] != TENON_NONE, "value %{} is used before it is defined", value.name);
    return ids_[v.value];
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
      region_literals_.push_back({l, &value.type});
      return static_cast<std::uint32_t>(region_literals_.size() - 1);
    });
    return first_literal_ + index;
  }

  void write_literals() {
    for (const RegionLiteral& l : region_literals_) {
      values_.push_back({TENON_VALUE_LITERAL, types_.intern(*l.type), TENON_NONE, static_cast<std::uint32_t>(literals_.size())});
      literals_.push_back(l.record);
      if (options_.debug) value_names_.push_back(TENON_NONE);
    }
  }

  void write_attribute(const NamedAttribute& a) {
    TenonAttribute record{strings_.intern(a.name), static_cast<std::uint32_t>(a.value.index()), TENON_NONE, 0, 0};
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
        for (const Dim& d : std::get<std::vector<Dim>>(a.value)) items_.push_back(expressions_.dim(d));
        record.count = static_cast<std::uint32_t>(items_.size()) - record.ref;
        break;
      case TENON_ATTRIBUTE_FLOATS:
        record.ref = static_cast<std::uint32_t>(items_.size());
        for (double d : std::get<std::vector<double>>(a.value)) items_.push_back({std::bit_cast<std::int64_t>(d), TENON_NONE, 0});
        record.count = static_cast<std::uint32_t>(items_.size()) - record.ref;
        break;
      default: break;
    }
    attributes_.push_back(record);
  }

  void write_output(const Output& o) {
    TENON_CHECK(graph_->value(o.value).kind != ValueKind::literal, "a literal is an output");
    const std::uint32_t target = o.kind == OutputKind::update ? operand(o.target) : TENON_NONE;
    outputs_.push_back({operand(o.value), static_cast<std::uint32_t>(o.kind), target, 0});
  }

  std::uint32_t location(const Location& l) {
    if (l.line == 0 && l.file.empty() && l.function.empty() && l.code.empty()) return TENON_NONE;
    if (last_location_ && l.line == last_location_->line && l == *last_location_) return last_location_id_;
    const TenonLocation record{debug_strings_.intern_or_none(l.file), static_cast<std::uint32_t>(l.line < 0 ? 0 : l.line),
                               debug_strings_.intern_or_none(l.function), debug_strings_.intern_or_none(l.code)};
    const std::uint64_t h = mix(mix(std::uint64_t{record.file} << 32 | record.line, record.function), record.code);
    const auto equals = [&](std::uint32_t id) { return std::memcmp(&locations_[id], &record, sizeof record) == 0; };
    last_location_ = &l;
    return last_location_id_ = location_table_.find_or_make(h, equals, [&] {
      locations_.push_back(record);
      return static_cast<std::uint32_t>(locations_.size() - 1);
    });
  }

  void write_names() {
    for (const SymbolInfo& s : root_.symbols()) symbol_names_.push_back(debug_strings_.append(s.name));
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
    const Type* type;
  };
  const Graph* graph_ = nullptr;
  std::vector<std::uint32_t> ids_;  // ValueId → value of the buffer
  std::vector<RegionLiteral> region_literals_;
  RecordTable literals_of_region_;
  std::uint32_t first_literal_ = 0;

  Strings strings_, debug_strings_;
  Expressions expressions_;
  Types types_;
  std::vector<TenonSymbol> symbols_;
  std::vector<TenonConstant> constants_;
  std::vector<TenonRegion> regions_;
  std::vector<TenonNode> nodes_;
  std::vector<TenonValue> values_;
  std::vector<TenonLiteral> literals_;
  std::vector<std::uint32_t> operands_;
  std::vector<TenonOutput> outputs_;
  std::vector<TenonAttribute> attributes_;
  std::vector<TenonDim> items_;

  std::vector<std::uint32_t> value_names_, symbol_names_, constant_names_, region_names_, node_locations_, node_origins_;
  std::vector<TenonLocation> locations_;
  RecordTable location_table_;
  const Location* last_location_ = nullptr;
  std::uint32_t last_location_id_ = 0;
};

}  // namespace

std::vector<std::uint8_t> write_buffer(const Graph& graph, const WriteOptions& options) { return Writer(graph, options).write(); }

}  // namespace tenon::ir
