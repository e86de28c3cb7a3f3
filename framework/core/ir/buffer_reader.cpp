#include <bit>

#include "core/abi/buffer_verifier.h"
#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"

namespace tenon::ir {
namespace {

/// Builds graphs from a verified buffer.
class Reader {
 public:
  explicit Reader(TenonBytes bytes) : s_(bytes.data) {
    const std::uint32_t semantic = detail::header_of(bytes.data).part_size;
    if (bytes.size > semantic) debug_ = detail::DebugSections(bytes.data + semantic);
  }

  Graph read(std::span<const DLTensor* const> constants) {
    read_expressions();
    read_types();
    read_locations();
    // A region is nested in an earlier one: built from the last to the first, each is complete when its owner takes it.
    graphs_.resize(s_.regions.size());
    for (std::uint32_t i = s_.regions.size(); i-- > 0;) {
      if (i == 0) read_symbols_and_constants(constants);
      read_region(i);
    }
    return std::move(graphs_[0]);
  }

 private:
  void read_expressions() {
    expressions_.reserve(s_.expressions.size());
    for (std::uint32_t i = 0; i < s_.expressions.size(); ++i) expressions_.push_back(expression(s_.expressions[i]));
  }

  Dim expression(const TenonExpression& e) const {
    switch (e.kind) {
      case TENON_EXPRESSION_CONSTANT: return e.value;
      case TENON_EXPRESSION_SYMBOL: return Dim::symbol(SymbolId(e.a));
      case TENON_EXPRESSION_ADD: return expressions_[e.a] + expressions_[e.b];
      case TENON_EXPRESSION_MUL: return expressions_[e.a] * expressions_[e.b];
      case TENON_EXPRESSION_FLOOR_DIV: return floor_div(expressions_[e.a], expressions_[e.b]);
      case TENON_EXPRESSION_MOD: return mod(expressions_[e.a], expressions_[e.b]);
      case TENON_EXPRESSION_MIN: return min(expressions_[e.a], expressions_[e.b]);
      default: return max(expressions_[e.a], expressions_[e.b]);
    }
  }

  Dim dim(std::int64_t value, std::uint32_t expression) const { return expression == TENON_NONE ? Dim(value) : expressions_[expression]; }

  Shape dims(const detail::Table<TenonDim>& table, std::uint32_t first, std::uint32_t count) const {
    Shape result(count);
    for (std::uint32_t i = 0; i < count; ++i) result[i] = dim(table[first + i].value, table[first + i].expression);
    return result;
  }

  void read_types() {
    types_.reserve(s_.types.size());
    for (std::uint32_t i = 0; i < s_.types.size(); ++i) {
      const TenonType& t = s_.types[i];
      Type type;
      type.kind = static_cast<Type::Kind>(t.kind);
      type.dtype = static_cast<DType>(t.dtype);
      type.shape = dims(s_.dims, t.first_dim, t.rank);
      if (t.has_strides) type.strides = dims(s_.dims, t.first_dim + t.rank, t.rank);
      type.device = {t.device_kind, t.device_index};
      types_.push_back(std::move(type));
    }
  }

  void read_symbols_and_constants(std::span<const DLTensor* const> tensors) {
    for (std::uint32_t i = 0; i < s_.symbols.size(); ++i)
      graphs_[0].add_symbol({std::string(debug_.name(debug_.symbol_names, i)), s_.symbols[i].min, s_.symbols[i].max,
                             i < debug_.symbol_hints.size() ? debug_.symbol_hints[i] : -1});
    for (std::uint32_t i = 0; i < s_.constants.size(); ++i) {
      Constant c{types_[s_.constants[i].type], nullptr, nullptr, std::string(debug_.name(debug_.constant_names, i))};
      if (!tensors.empty()) c.data = data_of(*tensors[i], c, i);
      graphs_[0].add_constant(std::move(c));
    }
  }

  /// The first element of a tensor that is what the graph says.
  static const void* data_of(const DLTensor& tensor, const Constant& c, std::uint32_t index) {
    TENON_USER_CHECK(dtype_of(tensor.dtype) == c.type.dtype, "constant {} ('{}') is not of the graph's dtype {}", index, c.name, name_of(c.type.dtype));
    TENON_USER_CHECK(tensor.ndim >= 0 && static_cast<std::size_t>(tensor.ndim) == c.type.rank(), "constant {} ('{}') has {} dimensions, the graph says {}", index, c.name,
                     tensor.ndim, c.type.rank());
    const Device there = ir::device_of(tensor.device);
    const bool same_memory = there == c.type.device || (there.is_host() && c.type.device.is_host());
    TENON_USER_CHECK(!tensor.data || same_memory, "constant {} ('{}') is on {}, the graph says {}", index, c.name, device_text(there), device_text(c.type.device));
    std::int64_t stride = 1;
    for (std::size_t k = c.type.rank(); k-- > 0;) {
      TENON_USER_CHECK(!c.type.shape[k].is_constant() || tensor.shape[k] == c.type.shape[k].constant(), "constant {} ('{}') has another size in dimension {} than the graph says: {}", index,
                       c.name, k, tensor.shape[k]);
      TENON_USER_CHECK(!tensor.strides || tensor.shape[k] == 1 || tensor.strides[k] == stride, "constant {} ('{}') is not row-major", index, c.name);
      stride *= tensor.shape[k] > 1 ? tensor.shape[k] : 1;
    }
    return static_cast<const char*>(tensor.data) + tensor.byte_offset;
  }

  void read_region(std::uint32_t i) {
    const TenonRegion& r = s_.regions[i];
    Graph& g = graphs_[i];
    if (const auto name = debug_.name(debug_.region_names, i); !name.empty()) g.name = name;
    g.reserve(r.node_count, r.input_count + r.result_count + r.literal_count);
    for (std::uint32_t k = 0; k < r.input_count; ++k) g.add_input(type_of(r.first_value + k), name_of_value(r.first_value + k));
    for (std::uint32_t k = 0; k < r.node_count; ++k) read_node(g, r, r.first_node + k);
    for (std::uint32_t k = 0; k < r.literal_count; ++k) g.add_literal(literal(s_.literals[s_.values[r.first_value + r.input_count + r.result_count + k].index]));
    for (std::uint32_t k = 0; k < r.output_count; ++k) {
      const TenonOutput& o = s_.outputs[r.first_output + k];
      g.add_output({local(r, o.value), static_cast<OutputKind>(o.kind), o.target == TENON_NONE ? ValueId() : local(r, o.target)});
    }
  }

  /// Values are added in the order of the buffer, so ids differ by the region's first value only; literals come last, and are
  /// referred to before they are added.
  static ValueId local(const TenonRegion& r, std::uint32_t value) { return ValueId(value - r.first_value); }

  void read_node(Graph& g, const TenonRegion& r, std::uint32_t id) {
    const TenonNode& n = s_.nodes[id];
    std::vector<ValueId> operands(n.operand_count);
    for (std::uint32_t k = 0; k < n.operand_count; ++k) operands[k] = local(r, s_.operands[n.first_operand + k]);
    Attributes attributes(n.attribute_count);
    for (std::uint32_t k = 0; k < n.attribute_count; ++k) {
      const TenonAttribute& a = s_.attributes[n.first_attribute + k];
      attributes[k] = {name(a.name), attribute(a)};
    }
    std::vector<Type> types(n.result_count);
    std::vector<std::string> names(n.result_count);
    for (std::uint32_t k = 0; k < n.result_count; ++k) {
      types[k] = type_of(n.first_result + k);
      names[k] = name_of_value(n.first_result + k);
    }
    std::vector<RegionId> regions(n.region_count);
    for (std::uint32_t k = 0; k < n.region_count; ++k) regions[k] = g.add_region(std::move(graphs_[n.first_region + k]));
    g.add_node(name(n.op), std::move(operands), std::move(attributes), std::move(types), location(id), std::move(regions), {}, names);
  }

  /// The name of an op or attribute, looked up once.
  Name name(std::uint32_t string) {
    if (names_.empty()) names_.resize(s_.strings.strings.size());
    std::optional<Name>& name = names_[string];
    if (!name) name = Name(s_.strings[string]);
    return *name;
  }

  const Type& type_of(std::uint32_t value) const { return types_[s_.values[value].type]; }
  std::string name_of_value(std::uint32_t value) const { return std::string(debug_.name(debug_.value_names, value)); }

  void read_locations() {
    for (std::uint32_t i = 0; i < debug_.locations.size(); ++i) {
      const TenonLocation& l = debug_.locations[i];
      locations_.push_back(Location{std::string(debug_.strings[l.file]), static_cast<int>(l.line), std::string(debug_.strings[l.function]), std::string(debug_.strings[l.code])});
    }
  }

  SharedLocation location(std::uint32_t node) const {
    if (node >= debug_.node_locations.size() || debug_.node_locations[node] == TENON_NONE) return {};
    return locations_[debug_.node_locations[node]];
  }

  Literal literal(const TenonLiteral& l) const {
    switch (l.kind) {
      case TENON_LITERAL_BOOL: return l.bits != 0;
      case TENON_LITERAL_INT: return dim(l.bits, l.expression);
      default: return std::bit_cast<double>(l.bits);
    }
  }

  Attribute attribute(const TenonAttribute& a) const {
    switch (a.kind) {
      case TENON_ATTRIBUTE_BOOL: return a.bits != 0;
      case TENON_ATTRIBUTE_INT: return dim(a.bits, a.ref);
      case TENON_ATTRIBUTE_FLOAT: return std::bit_cast<double>(a.bits);
      case TENON_ATTRIBUTE_STRING: return std::string(s_.strings[a.ref]);
      case TENON_ATTRIBUTE_DTYPE: return static_cast<DType>(a.bits);
      case TENON_ATTRIBUTE_INTS: return dims(s_.items, a.ref, a.count);
      case TENON_ATTRIBUTE_FLOATS: {
        std::vector<double> values(a.count);
        for (std::uint32_t i = 0; i < a.count; ++i) values[i] = std::bit_cast<double>(s_.items[a.ref + i].value);
        return values;
      }
      default: return std::monostate();
    }
  }

  detail::SemanticSections s_;
  detail::DebugSections debug_;
  std::vector<Dim> expressions_;
  std::vector<Type> types_;
  std::vector<SharedLocation> locations_;
  std::vector<std::optional<Name>> names_;  // by string of the buffer
  std::vector<Graph> graphs_;
};

}  // namespace

Result<Graph> read_buffer(TenonBytes buffer, std::span<const DLTensor* const> constants) {
  if (!buffer.data && buffer.size) return error(Code::malformed, "graph buffer: it is null, and said to have {} bytes", buffer.size);
  if (std::string wrong = verify_buffer(buffer); !wrong.empty()) return error(Code::malformed, "graph buffer: {}", wrong);
  const std::uint32_t expected = detail::SemanticSections(buffer.data).constants.size();
  if (!constants.empty() && constants.size() != expected)
    return error(Code::invalid_argument, "the graph has {} constants, {} were given", expected, constants.size());
  try {
    return Reader(buffer).read(constants);
  } catch (const Exception& e) {
    return e.error();
  }
}

}  // namespace tenon::ir
