#include "core/ir/parser.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/abi/graph_buffer.h"
#include "core/base/float16.h"
#include "core/ir/lexer.h"
#include "core/ir/names.h"
#include "core/ir/verifier.h"

namespace tenon::ir {
namespace {

constexpr int kMaxParentheses = 100;

/// Values of the graph being parsed.
struct Scope {
  Graph graph;
  std::unordered_map<std::string, ValueId> values;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }

  Graph parse() {
    Graph g = parse_whole();
    for (SymbolInfo& s : symbols_) g.add_symbol(std::move(s));
    for (Constant& c : constants_) g.add_constant(std::move(c));
    return g;
  }

 private:
  // ---- tokens

  void advance() { token_ = lexer_.next(); }

  [[noreturn]] void unexpected(std::string_view expected) const {
    const std::string found = token_.kind == TokenKind::end ? "the end of the text" : fmt::format("'{}'", token_.spelling.substr(0, 40));
    lexer_.fail(token_.offset, fmt::format("expected {}, found {}", expected, found));
  }

  bool at(char c) const { return token_.kind == TokenKind::punctuation && token_.spelling.size() == 1 && token_.spelling[0] == c; }
  bool at_word(std::string_view word) const { return token_.kind == TokenKind::name && token_.text == word; }

  bool take(char c) {
    const bool there = at(c);
    if (there) advance();
    return there;
  }

  bool take_word(std::string_view word) {
    const bool there = at_word(word);
    if (there) advance();
    return there;
  }

  void expect(char c) {
    if (!take(c)) unexpected(fmt::format("'{}'", c));
  }

  std::string expect_token(TokenKind kind, std::string_view what) {
    if (token_.kind != kind) unexpected(what);
    std::string text = std::move(token_.text);
    advance();
    return text;
  }

  /// `open item, item close`, both ends already decided by the caller: the opening one has been read.
  template <class Item>
  void list_until(char close, Item&& item) {
    if (take(close)) return;
    do item();
    while (take(','));
    expect(close);
  }

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
    Location location;
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

  // ---- numbers

  /// A float with its sign, or nothing if no float stands here.
  std::optional<double> parse_float() {
    if (!at('-')) return parse_unsigned_float();
    // A sign is part of a float or of an integer expression: look one token ahead.
    const Lexer saved_lexer = lexer_;
    const Token saved_token = token_;
    advance();
    if (const std::optional<double> d = parse_unsigned_float()) return -*d;
    lexer_ = saved_lexer;
    token_ = saved_token;
    return std::nullopt;
  }

  std::optional<double> parse_unsigned_float() {
    if (take_word("inf")) return std::numeric_limits<double>::infinity();
    if (take_word("nan")) return parse_nan();
    if (token_.kind != TokenKind::floating) return std::nullopt;
    double value = 0;
    const std::string_view s = token_.spelling;
    const auto [end, problem] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (problem == std::errc::result_out_of_range) lexer_.fail(token_.offset, fmt::format("{} is outside the range of float64", s));
    if (problem != std::errc() || end != s.data() + s.size()) unexpected("a float");
    advance();
    return value;
  }

  double parse_nan() {
    if (!take('(')) return std::bit_cast<double>(0x7ff8000000000000ull);
    const std::size_t offset = token_.offset;
    const auto value = std::bit_cast<double>(parse_unsigned("the bits of a NaN"));
    if (value == value) lexer_.fail(offset, "these are not the bits of a NaN");
    expect(')');
    return value;
  }

  std::uint64_t parse_unsigned(std::string_view what) {
    if (token_.kind != TokenKind::integer) unexpected(what);
    std::string_view s = token_.spelling;
    const int base = s.substr(0, 2) == "0x" ? 16 : 10;
    if (base == 16) s.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(s.data(), s.data() + s.size(), value, base);
    if (problem == std::errc::result_out_of_range) lexer_.fail(token_.offset, fmt::format("{} does not fit in 64 bits", token_.spelling));
    if (problem != std::errc() || end != s.data() + s.size()) unexpected(what);
    advance();
    return value;
  }

  std::int64_t parse_integer() {
    const std::size_t offset = token_.offset;
    const bool negative = take('-');
    const std::uint64_t magnitude = parse_unsigned("an integer");
    if (magnitude > static_cast<std::uint64_t>(INT64_MAX) + negative) lexer_.fail(offset, "this integer does not fit in 64 bits");
    return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  }

  // ---- symbolic integers: sums of products

  bool at_dim() const { return token_.kind == TokenKind::integer || token_.kind == TokenKind::name || at('-') || at('('); }

  Dim parse_dim() {
    const std::size_t offset = token_.offset;
    if (++parentheses_ > kMaxParentheses) lexer_.fail(offset, "parentheses are nested too deeply");
    try {
      Dim sum = parse_product();
      for (;;) {
        if (take('+')) sum = sum + parse_product();
        else if (take('-')) sum = sum - parse_product();
        else break;
      }
      --parentheses_;
      return sum;
    } catch (const Exception& e) {
      if (e.code() == Code::malformed) throw;
      lexer_.fail(offset, e.what());
    }
  }

  Dim parse_product() {
    Dim product = parse_factor();
    while (take('*')) product = product * parse_factor();
    return product;
  }

  Dim parse_factor() {
    if (token_.kind == TokenKind::integer) return parse_integer();
    if (at('-')) {
      const std::size_t offset = token_.offset;
      advance();
      if (token_.kind == TokenKind::integer) return parse_negative(offset);
      if (++parentheses_ > kMaxParentheses) lexer_.fail(offset, "signs are nested too deeply");
      const Dim factor = parse_factor();
      --parentheses_;
      return -factor;
    }
    if (take('(')) {
      Dim inner = parse_dim();
      expect(')');
      return inner;
    }
    if (token_.kind != TokenKind::name) unexpected("an integer or a symbol");
    return parse_symbolic();
  }

  Dim parse_negative(std::size_t offset) {
    const std::uint64_t magnitude = parse_unsigned("an integer");
    if (magnitude > static_cast<std::uint64_t>(INT64_MAX) + 1) lexer_.fail(offset, "this integer does not fit in 64 bits");
    return static_cast<std::int64_t>(0 - magnitude);
  }

  Dim parse_symbolic() {
    const std::size_t offset = token_.offset;
    const std::string name = expect_token(TokenKind::name, "a symbol");
    if (at('(')) return parse_function(name, offset);
    const auto found = symbol_ids_.find(name);
    if (found == symbol_ids_.end()) lexer_.fail(offset, fmt::format("there is no symbol {}", name));
    return Dim::symbol(found->second);
  }

  Dim parse_function(const std::string& name, std::size_t offset) {
    expect('(');
    const Dim a = parse_dim();
    expect(',');
    const Dim b = parse_dim();
    expect(')');
    if (name == "floor_div") return floor_div(a, b);
    if (name == "mod") return mod(a, b);
    if (name == "min") return min(a, b);
    if (name == "max") return max(a, b);
    lexer_.fail(offset, fmt::format("'{}' is no function of sizes; floor_div, mod, min and max are", name));
  }

  // ---- types and constants

  Type parse_type() {
    if (take_word("token")) return Type::token();
    const std::optional<DType> dtype = token_.kind == TokenKind::name ? dtype_named(token_.text) : std::nullopt;
    if (!dtype) unexpected("a type, like f32[2, 3]");
    advance();
    const std::size_t offset = token_.offset;
    expect('[');
    Type type = Type::tensor(*dtype, {});
    list_until(']', [&] { type.shape.push_back(parse_size()); });
    if (type.rank() > TENON_MAX_RANK) lexer_.fail(offset, fmt::format("{} dimensions are more than {}", type.rank(), TENON_MAX_RANK));
    if (!bytes_are_countable(type.shape, size_of(type.dtype))) lexer_.fail(offset, "the bytes of this tensor cannot be counted in 63 bits");
    if (at('{')) {
      const std::size_t strides = token_.offset;
      advance();
      type.strides.emplace();
      list_until('}', [&] { type.strides->push_back(parse_dim()); });
      if (type.strides->size() != type.rank()) lexer_.fail(strides, fmt::format("{} strides for {} dimensions", type.strides->size(), type.rank()));
    }
    if (take_word("on")) type.device = parse_device();
    return type;
  }

  Dim parse_size() {
    const std::size_t offset = token_.offset;
    Dim d = parse_dim();
    if (d.is_constant() && d.constant() < 0) lexer_.fail(offset, fmt::format("a dimension cannot be {}", d.constant()));
    return d;
  }

  Device parse_device() {
    const std::size_t offset = token_.offset;
    const std::string name = expect_token(TokenKind::name, "a device, like cuda:0");
    Device device;
    unsigned kind = 0;
    const bool numbered = name.starts_with("device") && std::from_chars(name.data() + 6, name.data() + name.size(), kind).ptr == name.data() + name.size() && kind > 0 && kind < 256;
    if (name == "cuda") device.kind = DeviceKind::cuda;
    else if (numbered) device.kind = static_cast<DeviceKind>(kind);
    else if (name != "cpu") lexer_.fail(offset, fmt::format("'{}' is no device; cpu and cuda are", name));
    if (!take(':')) return device;
    const std::int64_t index = parse_integer();
    if (index < INT32_MIN || index > INT32_MAX) lexer_.fail(offset, "this is no number of a device");
    device.index = static_cast<std::int32_t>(index);
    return device;
  }

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

  double parse_number() {
    if (const std::optional<double> d = parse_float()) return *d;
    return static_cast<double>(parse_integer());
  }

  /// The decimal number nearest in float32 directly: by way of float64 it would be rounded twice.
  float parse_float32() {
    const std::string_view s = token_.spelling;
    float value = 0;
    const bool plain = token_.kind == TokenKind::floating && std::from_chars(s.data(), s.data() + s.size(), value).ec == std::errc();
    if (!plain && at('-')) {
      advance();
      return -parse_float32();
    }
    if (!plain) return static_cast<float>(parse_number());
    advance();
    return value;
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

  Lexer lexer_;
  Token token_;
  int parentheses_ = 0;
  std::vector<SymbolInfo> symbols_;
  std::unordered_map<std::string, SymbolId> symbol_ids_;
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
