#include "core/ir/parser.h"

#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include "core/abi/graph_buffer.h"
#include "core/base/float16.h"
#include "core/ir/names.h"
#include "core/ir/token_reader.h"
#include "core/ir/verifier.h"

namespace tenon::ir {
namespace {

/// Values of the graph being parsed.
struct Scope {
  Graph graph;
  std::unordered_map<std::string, ValueId> values;
};

class Parser : TokenReader {
 public:
  using TokenReader::TokenReader;

  Graph parse() {
    Graph g = parse_whole();
    for (SymbolInfo& s : symbols_) g.add_symbol(std::move(s));
    for (Constant& c : constants_) g.add_constant(std::move(c));
    return g;
  }

 private:
  // ---- graphs

  /// What the graph itself refuses (sizes that overflow) is reported where it was found.
  Graph parse_whole() {
    try {
      Graph g = parse_graph(0);
      if (token_.kind != TokenKind::end) unexpected("the end of the text");
      return g;
    } catch (const Exception& e) {
      if (e.code() == Code::malformed) throw;
      lexer_.fail(token_.offset, e.what());
    }
  }

  Graph parse_graph(std::uint32_t depth) {
    if (!take_word("graph")) unexpected("'graph'");
    Scope scope;
    scope.graph.name = expect_token(TokenKind::at_name, "the graph's name, like @main");
    if (at('[')) {
      if (depth > 0) lexer_.fail(token_.offset, "a region has no symbols of its own");
      advance();
      list_until(']', [&] { parse_symbol(); });
    }
    expect('(');
    list_until(')', [&] {
      const std::size_t offset = token_.offset;
      std::string name = expect_token(TokenKind::value, "an input, like %x");
      expect(':');
      Type type = parse_type();
      define(scope, scope.graph.add_input(std::move(type), name), name, offset);
    });
    expect('{');
    while (!at_word("return")) parse_statement(scope, depth);
    advance();
    parse_outputs(scope);
    expect('}');
    return std::move(scope.graph);
  }

  void define(Scope& scope, ValueId id, const std::string& name, std::size_t offset) {
    if (!scope.values.emplace(name, id).second) lexer_.fail(offset, fmt::format("there is a value %{} already", name));
  }

  void parse_symbol() {
    const std::size_t offset = token_.offset;
    SymbolInfo s;
    s.name = expect_token(TokenKind::name, "a symbol, like s0");
    if (!is_name(s.name) || is_reserved(s.name)) lexer_.fail(offset, fmt::format("'{}' is no name for a symbol", s.name));
    if (!symbol_ids_.emplace(s.name, SymbolId(symbols_.size())).second) lexer_.fail(offset, fmt::format("there is a symbol {} already", s.name));
    if (take(':')) {
      s.min = parse_integer();
      if (token_.kind != TokenKind::punctuation || token_.spelling != "..") unexpected("'..'");
      advance();
      if (token_.kind == TokenKind::integer || at('-')) s.max = parse_integer();
      if (s.min > s.max) lexer_.fail(offset, fmt::format("the range {}..{} of symbol {} is empty", s.min, s.max, s.name));
    }
    if (take('~')) s.hint = parse_integer();
    if (s.hint < -1) lexer_.fail(offset, fmt::format("symbol {} has the hint {}, which is negative", s.name, s.hint));
    symbols_.push_back(std::move(s));
  }

  void parse_statement(Scope& scope, std::uint32_t depth) {
    if (!at_word("const")) return parse_node(scope, depth);
    if (depth > 0) lexer_.fail(token_.offset, "a region has no constants of its own");
    advance();
    parse_constant();
  }

  void parse_outputs(Scope& scope) {
    if (at('}')) return;
    do {
      Output o;
      if (take_word("update")) {
        o.kind = OutputKind::update;
        const std::size_t offset = token_.offset;
        o.target = parse_value(scope);
        if (scope.graph.value(o.target).kind != ValueKind::input) lexer_.fail(offset, "only an input can be updated");
        expect('=');
      } else if (take_word("saved")) {
        o.kind = OutputKind::saved;
      }
      o.value = parse_value(scope);
      scope.graph.add_output(o);
    } while (take(','));
  }

  ValueId parse_value(const Scope& scope) {
    const std::size_t offset = token_.offset;
    const std::string name = expect_token(TokenKind::value, "a value, like %x");
    const auto found = scope.values.find(name);
    if (found == scope.values.end()) lexer_.fail(offset, fmt::format("there is no value %{} before this place", name));
    return found->second;
  }

  // ---- nodes

  void parse_node(Scope& scope, std::uint32_t depth) {
    std::vector<std::string> results;
    std::vector<std::size_t> offsets;
    std::vector<Type> types;
    if (token_.kind == TokenKind::value) {
      do {
        offsets.push_back(token_.offset);
        results.push_back(expect_token(TokenKind::value, "a result, like %x"));
        expect(':');
        types.push_back(parse_type());
      } while (take(','));
      expect('=');
    }
    std::string op = expect_token(TokenKind::name, results.empty() ? "a node, 'const' or 'return'" : "the name of an op");
    expect('(');
    std::vector<ValueId> operands;
    list_until(')', [&] { operands.push_back(parse_operand(scope)); });
    Attributes attributes;
    if (take('{')) list_until('}', [&] { parse_attribute(attributes); });
    std::vector<RegionId> regions;
    while (at_word("graph")) {
      if (depth == TENON_MAX_REGION_DEPTH) lexer_.fail(token_.offset, "regions are nested too deeply");
      regions.push_back(scope.graph.add_region(parse_graph(depth + 1)));
    }
    SharedLocation location;
    if (take('@')) location = parse_location();
    const NodeId n = scope.graph.add_node(std::move(op), std::move(operands), std::move(attributes), std::move(types), std::move(location), std::move(regions), {},
                                         results);
    for (std::size_t i = 0; i < results.size(); ++i) define(scope, scope.graph.node(n).results[i], results[i], offsets[i]);
  }

  ValueId parse_operand(Scope& scope) {
    if (token_.kind == TokenKind::value) return parse_value(scope);
    if (take_word("true")) return scope.graph.add_literal(true);
    if (take_word("false")) return scope.graph.add_literal(false);
    if (const std::optional<double> d = parse_float()) return scope.graph.add_literal(*d);
    if (!at_dim()) unexpected("an operand: a value or a number");
    return scope.graph.add_literal(parse_dim());
  }

  Location parse_location() {
    Location l;
    l.file = expect_token(TokenKind::string, "the file, in quotes");
    expect(':');
    const std::size_t offset = token_.offset;
    const std::int64_t line = parse_integer();
    if (line < 0 || line > std::numeric_limits<int>::max()) lexer_.fail(offset, "this is no line number");
    l.line = static_cast<int>(line);
    if (token_.kind == TokenKind::string) l.function = expect_token(TokenKind::string, "the function");
    if (token_.kind == TokenKind::string) l.code = expect_token(TokenKind::string, "the code");
    return l;
  }

  // ---- attributes

  void parse_attribute(Attributes& attributes) {
    const std::size_t offset = token_.offset;
    std::string name = expect_token(TokenKind::name, "the name of an attribute");
    if (!is_name(name)) lexer_.fail(offset, fmt::format("'{}' is no name for an attribute", name));
    for (const NamedAttribute& a : attributes)
      if (a.name == name) lexer_.fail(offset, fmt::format("attribute '{}' is given twice", name));
    expect('=');
    attributes.push_back({std::move(name), parse_attribute_value()});
  }

  Attribute parse_attribute_value() {
    if (token_.kind == TokenKind::string) return expect_token(TokenKind::string, "a string");
    if (token_.kind == TokenKind::at_name) return parse_constant_reference();
    if (take_word("none")) return std::monostate();
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    if (take('[')) return parse_list();
    if (token_.kind == TokenKind::name)
      if (const auto dtype = dtype_named(token_.text)) {
        advance();
        return *dtype;
      }
    if (const std::optional<double> d = parse_float()) return *d;
    if (!at_dim()) unexpected("the value of an attribute");
    return parse_dim();
  }

  Attribute parse_constant_reference() {
    const std::size_t offset = token_.offset;
    const std::string name = expect_token(TokenKind::at_name, "a constant");
    for (std::size_t i = 0; i < constants_.size(); ++i)
      if (constants_[i].name == name) return Dim(static_cast<std::int64_t>(i));
    lexer_.fail(offset, fmt::format("there is no constant @{} before this place", name));
  }

  /// Integers, or floats if the first item is one.
  Attribute parse_list() {
    std::vector<double> floats;
    if (take('.')) return expect(']'), floats;
    if (take(']')) return std::vector<Dim>();
    if (const std::optional<double> first = parse_float()) {
      floats.push_back(*first);
      while (take(',')) {
        const std::optional<double> next = parse_float();
        if (!next) unexpected("a float, as the others in this list");
        floats.push_back(*next);
      }
      expect(']');
      return floats;
    }
    std::vector<Dim> dims;
    do dims.push_back(parse_dim());
    while (take(','));
    expect(']');
    return dims;
  }

  // ---- constants

  void parse_constant() {
    const std::size_t offset = token_.offset;
    Constant c;
    c.name = expect_token(TokenKind::at_name, "the constant's name, like @c0");
    for (const Constant& other : constants_)
      if (other.name == c.name) lexer_.fail(offset, fmt::format("there is a constant @{} already", c.name));
    expect(':');
    c.type = parse_type();
    const bool is_static = c.type.is_tensor() && !c.type.strides && c.type.element_count().is_constant();
    if (!is_static) lexer_.fail(offset, "a constant is a row-major tensor of constant size");
    if (at('=') && !c.type.device.is_host()) lexer_.fail(token_.offset, fmt::format("the elements of a constant on {} are not in the text", device_text(c.type.device)));
    if (take('=')) parse_elements(c, offset);
    constants_.push_back(std::move(c));
  }

  void parse_elements(Constant& c, std::size_t offset) {
    std::vector<char> bytes;
    std::int64_t count = 0;
    expect('[');
    list_until(']', [&] {
      parse_element(c.type.dtype, bytes);
      ++count;
    });
    if (count != c.type.element_count().constant())
      lexer_.fail(offset, fmt::format("constant @{} has {} elements, {} are given", c.name, c.type.element_count().constant(), count));
    // 64-byte aligned, as all tensors that Tenon makes.
    std::shared_ptr<void> owner(::operator new(std::max<std::size_t>(bytes.size(), 1), std::align_val_t(64)), [](void* p) { ::operator delete(p, std::align_val_t(64)); });
    if (!bytes.empty()) std::memcpy(owner.get(), bytes.data(), bytes.size());
    c.data = owner.get();
    c.owner = std::move(owner);
  }

  template <class T>
  static void append(std::vector<char>& bytes, T value) {
    const auto* p = reinterpret_cast<const char*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof value);
  }

  template <class T>
  void append_integer(std::vector<char>& bytes) {
    const std::size_t offset = token_.offset;
    const std::int64_t value = parse_integer();
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) lexer_.fail(offset, fmt::format("{} does not fit in the constant's dtype", value));
    append(bytes, static_cast<T>(value));
  }

  void parse_element(DType dtype, std::vector<char>& bytes) {
    switch (dtype) {
      case DType::b8:
        if (take_word("true")) return append(bytes, true);
        if (take_word("false")) return append(bytes, false);
        unexpected("true or false");
      case DType::u8: return append_integer<std::uint8_t>(bytes);
      case DType::i8: return append_integer<std::int8_t>(bytes);
      case DType::i16: return append_integer<std::int16_t>(bytes);
      case DType::i32: return append_integer<std::int32_t>(bytes);
      case DType::i64: return append_integer<std::int64_t>(bytes);
      case DType::f16: return append(bytes, half_of_float(parse_float32()));
      case DType::bf16: return append(bytes, bfloat16_of_float(parse_float32()));
      case DType::f32: return append(bytes, parse_float32());
      case DType::f64: return append(bytes, parse_number());
      default: lexer_.fail(token_.offset, "complex constants cannot be written out");
    }
  }

  std::vector<SymbolInfo> symbols_;
  std::vector<Constant> constants_;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text) {
  try {
    Graph g = Parser(text).parse();
    if (std::optional<Error> wrong = verify_graph(g)) return *std::move(wrong);
    return g;
  } catch (const Exception& e) {
    return e.error();
  }
}

}  // namespace tenon::ir
