// Seeded random graphs that the verifier accepts, with everything a graph can hold. The ops are made up: nothing here means anything.
#pragma once

#include <bit>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::testing {

struct RandomGraphOptions {
  std::size_t nodes = 12;
  std::uint32_t region_depth = 2;
};

class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed, RandomGraphOptions options = {}) : random_(seed), options_(options) {}

  ir::Graph make() {
    ir::Graph g;
    g.name = pick<std::string>({"main", "f", "model.forward", "a graph"});
    for (std::size_t i = below(4); i-- > 0;) {
      const std::int64_t min = static_cast<std::int64_t>(below(5));
      g.add_symbol({pick<std::string>({"", "n", "batch", "f32"}), min, chance(2) ? INT64_MAX : min + static_cast<std::int64_t>(below(1000)), chance(2) ? -1 : static_cast<std::int64_t>(below(5000))});
    }
    symbols_ = g.symbols().size();
    for (std::size_t i = below(4); i-- > 0;) g.add_constant(constant());
    root_ = &g;
    fill(g, options_.nodes, 0);
    return g;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }
  template <class T>
  T pick(std::vector<T> choices) {
    return choices[below(choices.size())];
  }

  std::int64_t number() { return pick<std::int64_t>({0, 1, -1, 2, 3, 7, 64, 4096, -5, INT64_MAX, INT64_MIN}); }

  double real() {
    return pick<double>({0.0, -0.0, 1.0, -1.5, 1e-5, 3.141592653589793, 1e300, 5e-324, std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
                         std::bit_cast<double>(0xfff8000000000123ull), 100.0});
  }

  std::string text() { return pick<std::string>({"", "same", "a \"quoted\" \\ string", "line\nline\ttab", std::string("nul\0x01\x01", 6), "grüße", "# no comment"}); }

  ir::Dim small_dim(int depth = 2) {
    if (symbols_ == 0 || chance(3)) return static_cast<std::int64_t>(below(7));
    const ir::Dim s = ir::Dim::symbol(SymbolId(below(symbols_)));
    if (depth == 0 || chance(2)) return s;
    const ir::Dim a = small_dim(depth - 1), b = small_dim(depth - 1);
    switch (below(7)) {
      case 0: return a + b;
      case 1: return a * b;
      case 2: return s - a;
      case 3: return floor_div(a, b.is_constant() && b.constant() == 0 ? ir::Dim(2) : b);
      case 4: return mod(a, b.is_constant() && b.constant() == 0 ? ir::Dim(2) : b);
      case 5: return min(a, b);
      default: return max(a, b);
    }
  }

  ir::Dim size() {
    const ir::Dim d = small_dim();
    return d.is_constant() && d.constant() < 0 ? ir::Dim(1) : d;
  }

  ir::Type type() {
    if (chance(10)) return ir::Type::token();
    ir::Type t = ir::Type::tensor(static_cast<DType>(below(kDTypeCount)), {});
    for (std::size_t i = below(5); i-- > 0;) t.shape.push_back(size());
    if (chance(4)) {
      t.strides.emplace();
      for (std::size_t i = t.rank(); i-- > 0;) t.strides->push_back(chance(3) ? ir::Dim(-1) : small_dim());
    }
    if (chance(4)) t.device = {pick<std::uint8_t>({1, 2, 8, 9}), static_cast<std::int32_t>(below(3))};
    return t;
  }

  ir::Constant constant() {
    ir::Type t = ir::Type::tensor(static_cast<DType>(below(kDTypeCount)), {});
    for (std::size_t i = below(3); i-- > 0;) t.shape.push_back(static_cast<std::int64_t>(below(4)));
    return {std::move(t), nullptr, nullptr, pick<std::string>({"", "weight", "layers.0.weight", "a name"})};
  }

  ir::Attribute attribute() {
    switch (below(8)) {
      case 0: return std::monostate();
      case 1: return chance(2);
      case 2: return chance(2) ? ir::Dim(number()) : small_dim();
      case 3: return real();
      case 4: return text();
      case 5: return static_cast<DType>(below(kDTypeCount));
      case 6: {
        std::vector<ir::Dim> list(below(4));
        for (ir::Dim& d : list) d = chance(2) ? ir::Dim(number()) : small_dim();
        return list;
      }
      default: {
        std::vector<double> list(below(4));
        for (double& d : list) d = real();
        return list;
      }
    }
  }

  ir::Attributes attributes() {
    ir::Attributes list;
    for (const char* name : {"dim", "keepdim", "a", "padding.mode", "_x"})
      if (chance(3)) list.push_back({name, attribute()});
    return list;
  }

  ir::Literal literal() {
    switch (below(3)) {
      case 0: return chance(2);
      case 1: return chance(2) ? ir::Dim(number()) : small_dim();
      default: return real();
    }
  }

  ir::SharedLocation location() {
    if (chance(3)) return {};
    return ir::Location{pick<std::string>({"model.py", "", "a \"b\".py"}), static_cast<int>(below(3)), pick<std::string>({"", "forward"}), text()};
  }

  void fill(ir::Graph& g, std::size_t nodes, std::uint32_t depth) {
    std::vector<ValueId> values;
    for (std::size_t i = below(4); i-- > 0;) values.push_back(g.add_input(type(), pick<std::string>({"x", "", "weight", "in put"})));
    const std::vector<ValueId> inputs = values;
    for (std::size_t i = 0; i < nodes; ++i) {
      if (!root_->constants().empty() && chance(6)) {
        values.push_back(add_constant_node(g));
        continue;
      }
      std::vector<ValueId> operands;
      for (std::size_t k = below(4); k-- > 0;) operands.push_back(values.empty() || chance(4) ? g.add_literal(literal()) : values[below(values.size())]);
      std::vector<ir::Type> types(below(3) + (chance(8) ? 0 : 1));
      for (ir::Type& t : types) t = !values.empty() && chance(3) ? g.type(values[below(values.size())]) : type();
      std::vector<RegionId> regions;
      while (depth < options_.region_depth && chance(5)) {
        ir::Graph region;
        region.name = pick<std::string>({"then", "else", "body"});
        fill(region, below(5), depth + 1);
        regions.push_back(g.add_region(std::move(region)));
      }
      const NodeId n = g.add_node(pick<std::string>({"add", "mul", "vendor::op", "native_batch_norm", "relu_"}), operands, attributes(), types, location(), regions);
      for (ValueId r : g.node(n).results) values.push_back(r);
    }
    add_outputs(g, values, inputs, depth);
  }

  ValueId add_constant_node(ir::Graph& g) {
    const std::size_t index = below(root_->constants().size());
    const NodeId n = g.add_node("constant", {}, {{"index", ir::Dim(static_cast<std::int64_t>(index))}}, {root_->constants()[index].type});
    return g.node(n).results[0];
  }

  void add_outputs(ir::Graph& g, const std::vector<ValueId>& values, const std::vector<ValueId>& inputs, std::uint32_t depth) {
    if (values.empty()) return;
    for (std::size_t i = below(4); i-- > 0;) {
      const bool saved = depth == 0 && chance(3);
      g.add_output({values[below(values.size())], saved ? ir::OutputKind::saved : ir::OutputKind::result, {}});
    }
    if (depth > 0) return;
    for (ValueId input : inputs)
      for (ValueId v : values) {
        if (!(g.type(v).dtype == g.type(input).dtype && g.type(v).kind == g.type(input).kind && g.type(v).shape == g.type(input).shape && g.type(v).device == g.type(input).device) || chance(2)) continue;
        g.add_output({v, ir::OutputKind::update, input});
        break;
      }
  }

  std::mt19937_64 random_;
  RandomGraphOptions options_;
  std::size_t symbols_ = 0;
  const ir::Graph* root_ = nullptr;
};

}  // namespace tenon::testing
