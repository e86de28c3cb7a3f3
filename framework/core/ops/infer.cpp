#include "core/ops/infer.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/ir/printer.h"
#include "core/ir/relation.h"
#include "core/ops/size_questions.h"

namespace tenon::ops::infer {

using ir::Dim;
using ir::Shape;

std::string text(const ir::Graph& graph, const Dim& dim) {
  return dim.to_string([&](SymbolId id) { return id.value < graph.symbols().size() ? graph.symbols()[id.value].name : "?"; });
}

std::string text(const ir::Graph& graph, std::span<const Dim> shape) {
  std::string s = "[";
  for (const Dim& d : shape) s += (s.size() > 1 ? ", " : "") + text(graph, d);
  return s + "]";
}

Dim broadcast(const ir::Graph& graph, const Dim& a, const Dim& b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  require_equal(graph, a, b, "broadcast dimensions");
  return a;
}

void require_equal(const ir::Graph& graph, const Dim& a, const Dim& b, std::string_view what) {
  if (a == b || ir::are_always_equal(a, b)) return;
  if ((a - b).is_constant()) throw Exception(error(Code::invalid_argument, "{} differ: {} and {}", what, text(graph, a), text(graph, b)));
  ask::equal(a, b);
  throw Exception(error(Code::unsupported, "{} cannot be proven equal: {} and {}", what, text(graph, a), text(graph, b)));
}

Shape broadcast(const ir::Graph& graph, std::span<const Dim> a, std::span<const Dim> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Shape shape(a.begin(), a.end());
  const std::size_t lead = a.size() - b.size();
  try {
    for (std::size_t i = 0; i < b.size(); ++i) shape[lead + i] = broadcast(graph, a[lead + i], b[i]);
  } catch (const Exception& e) {
    throw Exception(error(e.code(), "shapes {} and {} do not broadcast: {}", text(graph, a), text(graph, b), e.what()));
  }
  return shape;
}

namespace {

std::int64_t saturate(__int128 v) { return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : static_cast<std::int64_t>(v); }

/// Products with an infinite end stay infinite.
std::int64_t saturated_product(std::int64_t a, std::int64_t b) { return saturate(static_cast<__int128>(a) * b); }

Interval product(Interval a, Interval b) {
  const std::int64_t ends[] = {saturated_product(a.least, b.least), saturated_product(a.least, b.most), saturated_product(a.most, b.least),
                               saturated_product(a.most, b.most)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

Interval sum(Interval a, Interval b) {
  return {saturate(static_cast<__int128>(a.least) + b.least), saturate(static_cast<__int128>(a.most) + b.most)};
}

/// A symbol that stands in each term; none where there are less than two.
SymbolId common_factor(const Dim& dim) {
  if (dim.offset() != 0 || dim.terms().size() < 2) return {};
  for (const ir::DimAtom& atom : dim.terms()[0].atoms) {
    const auto has_it = [&](const ir::DimTerm& term) { return std::ranges::any_of(term.atoms, [&](const ir::DimAtom& other) { return ir::DimAtom::compare(atom, other) == 0; }); };
    if (atom.op == ir::DimOp::symbol && std::ranges::all_of(dim.terms(), has_it)) return atom.symbol;
  }
  return {};
}

/// The expression with y * (x // y) as x - x % y, for the first such product with a symbol y; nothing where there is none.
std::optional<Dim> with_remainder(const Dim& dim) {
  for (const ir::DimTerm& term : dim.terms())
    for (const ir::DimAtom& atom : term.atoms) {
      const SymbolId divisor = atom.op == ir::DimOp::floor_div ? atom.operands[1].as_symbol() : SymbolId();
      const auto is_divisor = [&](const ir::DimAtom& other) { return other.op == ir::DimOp::symbol && other.symbol == divisor; };
      if (!divisor || term.atoms.size() != 2 || std::ranges::none_of(term.atoms, is_divisor)) continue;
      const Dim &x = atom.operands[0], y = Dim::symbol(divisor);
      try {
        return dim + Dim(term.coefficient) * (x - mod(x, y) - y * floor_div(x, y));
      } catch (const Exception&) {  // larger than expressions may be
        return std::nullopt;
      }
    }
  return std::nullopt;
}

/// Whether the term is a number times x // y with a number y greater than 1.
bool is_quotient(const ir::DimTerm& term) {
  return term.atoms.size() == 1 && term.atoms[0].op == ir::DimOp::floor_div && term.atoms[0].operands[1].is_constant() && term.atoms[0].operands[1].constant() > 1;
}

/// The expression times a number, with (x - x % y) / y in place of a summand's x // y; the number. That is 1 where a summand is a multiple of y times its
/// x // y, else y.
std::optional<std::pair<Dim, std::int64_t>> without_division(const Dim& dim) {
  if (dim.terms().size() + (dim.offset() != 0) < 2) return std::nullopt;
  const auto& terms = dim.terms();
  auto found = std::ranges::find_if(terms, [](const ir::DimTerm& term) { return is_quotient(term) && term.coefficient % term.atoms[0].operands[1].constant() == 0; });
  if (found == terms.end()) found = std::ranges::find_if(terms, is_quotient);
  if (found == terms.end()) return std::nullopt;
  const Dim &x = found->atoms[0].operands[0], by = found->atoms[0].operands[1];
  const std::int64_t times = found->coefficient % by.constant() == 0 ? 1 : by.constant();
  try {
    return std::pair((dim - Dim(found->coefficient) * floor_div(x, by)) * Dim(times) + Dim(found->coefficient * times / by.constant()) * (x - mod(x, by)), times);
  } catch (const Exception&) {  // larger than expressions may be
    return std::nullopt;
  }
}

/// The range of what is `times` as much; an end that nothing is known of stays one.
Interval divided(Interval all, std::int64_t times) {
  const auto floor = [&](std::int64_t x) { return x >= 0 ? x / times : -((-(x + 1)) / times) - 1; };
  return {all.least == INT64_MIN ? INT64_MIN : -floor(-all.least), all.most == INT64_MAX ? INT64_MAX : floor(all.most)};
}

Dim dim_of(const ir::DimAtom& atom) {
  switch (atom.op) {
    case ir::DimOp::symbol: return Dim::symbol(atom.symbol);
    case ir::DimOp::floor_div: return floor_div(atom.operands[0], atom.operands[1]);
    case ir::DimOp::mod: return mod(atom.operands[0], atom.operands[1]);
    case ir::DimOp::min: return min(atom.operands[0], atom.operands[1]);
    default: return max(atom.operands[0], atom.operands[1]);
  }
}

bool is_extreme(const ir::DimAtom& atom) { return atom.op == ir::DimOp::max || atom.op == ir::DimOp::min; }

/// By what the atom is multiplied in the expression: the sum of the products that have it, without it.
Dim multiplier_of(const ir::DimAtom& atom, const Dim& dim) {
  Dim sum;
  for (const ir::DimTerm& term : dim.terms()) {
    const auto is_atom = [&](const ir::DimAtom& other) { return ir::DimAtom::compare(atom, other) == 0; };
    const auto found = std::ranges::find_if(term.atoms, is_atom);
    if (found == term.atoms.end()) continue;
    Dim product(term.coefficient);
    for (auto other = term.atoms.begin(); other != term.atoms.end(); ++other)
      if (other != found) product = product * dim_of(*other);
    sum = sum + product;
  }
  return sum;
}

/// The extremes in the products of the expression, each once.
std::vector<ir::DimAtom> extremes_in_products(const Dim& dim) {
  std::vector<ir::DimAtom> found;
  for (const ir::DimTerm& term : dim.terms())
    for (const ir::DimAtom& atom : term.atoms)
      if (term.atoms.size() > 1 && is_extreme(atom) && std::ranges::none_of(found, [&](const ir::DimAtom& other) { return ir::DimAtom::compare(atom, other) == 0; }))
        found.push_back(atom);
  return found;
}

/// Finds the range of an expression by those of its parts. What it finds is kept, as parts come again and again, and after so many of them it goes by
/// terms alone.
class RangeFinder {
 public:
  explicit RangeFinder(const ir::Graph& graph) : graph_(graph) {}

  Interval find(const Dim& dim) { return find(dim, kMostExtremes); }

 private:
  static constexpr int kMostExtremes = 4;     // looked into within each other
  static constexpr int kLeftForProducts = 4;  // as long as so many are left, those in products too
  static constexpr std::size_t kMostParts = 400;

  struct Hash {
    std::size_t operator()(const Dim& dim) const { return dim.hash(); }
  };

  Interval find(const Dim& dim, int extremes_left) {
    if (dim.is_constant()) return {dim.constant(), dim.constant()};
    auto& known = known_[static_cast<std::size_t>(extremes_left)];
    if (const auto found = known.find(dim); found != known.end()) return found->second;
    Interval all = by_terms(dim);
    if (++parts_ <= kMostParts) all = narrowed(dim, extremes_left, all);
    known.emplace(dim, all);
    return all;
  }

  Interval of_atom(const ir::DimAtom& atom) {
    if (atom.op == ir::DimOp::symbol) {
      if (atom.symbol.value >= graph_.symbols().size()) return {0, INT64_MAX};
      const ir::SymbolInfo& info = graph_.symbols()[atom.symbol.value];
      return {info.min, info.max};
    }
    const Interval a = find(atom.operands[0]), b = find(atom.operands[1]);
    switch (atom.op) {
      case ir::DimOp::min: return {std::min(a.least, b.least), std::min(a.most, b.most)};
      case ir::DimOp::max: return {std::max(a.least, b.least), std::max(a.most, b.most)};
      case ir::DimOp::mod: return b.least > 0 ? Interval{0, b.most - 1} : Interval{INT64_MIN, INT64_MAX};
      default: break;
    }
    if (b.least <= 0) return {INT64_MIN, INT64_MAX};
    const auto divided = [](std::int64_t x, std::int64_t y) { return x >= 0 ? x / y : -((-(x + 1)) / y) - 1; };
    return {a.least >= 0 ? divided(a.least, b.most) : divided(a.least, b.least),
            a.most >= 0 ? divided(a.most, b.least) : divided(a.most, b.most)};
  }

  /// By the ranges of the terms, as if they had nothing to do with each other.
  Interval by_terms(const Dim& dim) {
    Interval total{dim.offset(), dim.offset()};
    for (const ir::DimTerm& term : dim.terms()) {
      Interval part{term.coefficient, term.coefficient};
      for (const ir::DimAtom& atom : term.atoms) part = product(part, of_atom(atom));
      total = sum(total, part);
    }
    return total;
  }

  /// By what a summand that is the least or the greatest of two has to do with the others: max(a, b) - a is at least a - a.
  Interval narrowed(const Dim& dim, int extremes_left, Interval all) {
    if (extremes_left == 0) return all;
    const auto both = [&](const Interval& other) { all = {std::max(all.least, other.least), std::min(all.most, other.most)}; };
    if (const SymbolId factor = common_factor(dim)) both(product(of_atom({ir::DimOp::symbol, factor, {}}), find(floor_div(dim, Dim::symbol(factor)), extremes_left - 1)));
    if (const auto other = with_remainder(dim)) both(find(*other, extremes_left - 1));
    if (const auto other = without_division(dim)) both(divided(find(other->first, extremes_left - 1), other->second));
    if (dim.terms().size() + (dim.offset() != 0) < 2) return all;
    for (const ir::DimTerm& term : dim.terms())
      if (term.atoms.size() == 1 && is_extreme(term.atoms[0])) narrow_by(term.atoms[0], Dim(term.coefficient), dim - dim_of(term.atoms[0]) * Dim(term.coefficient), extremes_left, all);
    if (extremes_left >= kLeftForProducts && all.least < 0 && all.most > 0) narrow_by_products(dim, extremes_left, all);
    return all;
  }

  /// (max(a, b) - a) * size is at least 0 where the size is.
  void narrow_by_products(const Dim& dim, int extremes_left, Interval& all) {
    for (const ir::DimAtom& atom : extremes_in_products(dim)) {
      try {
        const Dim times = multiplier_of(atom, dim);
        narrow_by(atom, times, dim - times * dim_of(atom), extremes_left, all);
      } catch (const Exception&) {  // larger than expressions may be
      }
    }
  }

  /// Narrows the range of rest + times * extreme, where the sign of `times` is known.
  void narrow_by(const ir::DimAtom& extreme, const Dim& times, const Dim& rest, int extremes_left, Interval& all) {
    const Interval sign = find(times, extremes_left - 1);
    if (sign.least < 0 && sign.most > 0) return;
    const bool is_above = (extreme.op == ir::DimOp::max) == (sign.least >= 0);  // the whole is not below what either operand would make of it
    for (const Dim& operand : extreme.operands) {
      const Interval with = find(rest + operand * times, extremes_left - 1);
      if (is_above) all.least = std::max(all.least, with.least);
      else all.most = std::min(all.most, with.most);
    }
  }

  const ir::Graph& graph_;
  std::array<std::unordered_map<Dim, Interval, Hash>, kMostExtremes + 1> known_;  // by extremes left
  std::size_t parts_ = 0;
};

}  // namespace

Interval range(const ir::Graph& graph, const Dim& dim) {
  if (dim.is_constant()) return {dim.constant(), dim.constant()};
  return RangeFinder(graph).find(dim);
}

Dim at_least(const ir::Graph& graph, const Dim& dim, const Dim& least) {
  const Interval over = range(graph, dim - least);
  if (over.least < 0 && over.most > 0) ask::clamps(dim - least);
  return over.least >= 0 ? dim : over.most <= 0 ? least : max(dim, least);
}

Dim clamped(const ir::Graph& graph, const Dim& dim, const Dim& least, const Dim& most) {
  const Dim d = at_least(graph, dim, least);
  const Interval room = range(graph, most - d);
  if (room.least < 0 && room.most > 0) ask::clamps(most - d);
  return room.least >= 0 ? d : room.most <= 0 ? most : min(d, most);
}

bool is_divisible(const ir::Dim& size, const ir::Dim& by) {
  const bool known = mod(size, by) == ir::Dim(0);
  if (!known && !(size.is_constant() && by.is_constant())) ask::divisible(size, by);
  return known;
}

bool may_be_positive_or_0(const ir::Graph& graph, const Dim& dim) {
  const Interval all = range(graph, dim);
  if (all.least < 0 && all.most >= 0) ask::not_negative(dim);
  return taken_positive_or_0(graph, dim);
}

bool taken_positive_or_0(const ir::Graph& graph, const Dim& dim) {
  const Interval all = range(graph, dim);
  if (all.least < 0 && all.most >= 0) ask::taken_not_negative(dim);
  return all.most >= 0;
}

bool is_negative(const ir::Graph& graph, const Dim& place) {
  const Interval all = range(graph, place);
  if (all.least >= 0 || all.most < 0) return all.most < 0;
  ask::not_negative(place);
  throw Exception(error(Code::unsupported, "a place whose sign is not known: {}", text(graph, place)));
}

void require_plain_size(const ir::Graph& graph, const Dim& size) {
  if (size.is_constant() || !is_negative(graph, size)) return;
  ask::constant(size);
  throw Exception(error(Code::unsupported, "a negative size that is not known: {}", text(graph, size)));
}

Dim fresh_symbol(const OpQuery& q, std::size_t k) { return Dim::symbol(SymbolId(q.graph().symbols().size() + k)); }

std::int64_t wrap_dim(std::int64_t dim, std::size_t rank) {
  const auto bound = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  TENON_USER_CHECK(dim >= -bound && dim < bound, "dimension {} is out of range: a tensor of {} dimensions takes {} to {}", dim, rank,
                   -bound, bound - 1);
  return dim < 0 ? dim + bound : dim;
}

std::vector<std::size_t> wrapped_dims(const OpQuery& q, std::size_t rank, std::string_view name) {
  std::vector<std::size_t> dims;
  if (q.find(name))
    for (const Dim& d : q.integers(name)) {
      TENON_USER_CHECK(d.is_constant(), "attribute '{}' must be constant", name);
      dims.push_back(static_cast<std::size_t>(wrap_dim(d.constant(), rank)));
    }
  if (dims.empty()) {
    dims.resize(rank);
    std::iota(dims.begin(), dims.end(), 0);
  }
  if (rank == 0) return {};
  std::sort(dims.begin(), dims.end());
  TENON_USER_CHECK(std::adjacent_find(dims.begin(), dims.end()) == dims.end(), "dimension {} appears twice in '{}'",
                   *std::adjacent_find(dims.begin(), dims.end()), name);
  return dims;
}

void require_operands(const OpQuery& q, std::size_t least, std::size_t most) {
  const std::size_t n = q.operand_count();
  TENON_USER_CHECK(n >= least && n <= most, "takes {} operands, {} given",
                   least == most ? std::to_string(least) : fmt::format("{} to {}", least, most), n);
  for (std::size_t i = 0; i < n; ++i) TENON_USER_CHECK(q.type(i).is_tensor(), "operand {} is a token, not a tensor", i);
}

DType shared_dtype(const OpQuery& q, std::size_t first) {
  std::optional<DType> dtype;
  for (std::size_t i = first; i < q.operand_count(); ++i) {
    if (q.literal(i)) continue;
    if (!dtype) dtype = q.type(i).dtype;
    TENON_USER_CHECK(*dtype == q.type(i).dtype, "operands have different dtypes: {} and {}; cast with _to_copy", name_of(*dtype),
                     name_of(q.type(i).dtype));
  }
  if (!dtype) {
    TENON_USER_CHECK(first < q.operand_count(), "takes a tensor, none given");
    dtype = q.type(first).dtype;
  }
  return *dtype;
}

Shape broadcast_operands(const OpQuery& q, std::size_t first) {
  Shape shape;
  for (std::size_t i = first; i < q.operand_count(); ++i)
    if (!q.literal(i)) shape = broadcast(q.graph(), shape, q.type(i).shape);
  return shape;
}

ir::Device device(const OpQuery& q) {
  for (std::size_t i = 0; i < q.operand_count(); ++i)
    if (!q.literal(i) && !q.type(i).is_host_scalar()) return q.type(i).device;
  return {};
}

std::string device_conflict(const OpQuery& q) {
  const ir::Type* first = nullptr;
  for (std::size_t i = 0; i < q.operand_count(); ++i) {
    const ir::Type& type = q.type(i);
    if (q.literal(i) || !type.is_tensor() || type.is_host_scalar()) continue;
    if (first && first->device != type.device)
      return fmt::format("operand {} is {}, and one before it is {}: they are on different devices", i, ir::print_type(q.graph(), type), ir::print_type(q.graph(), *first));
    first = &type;
  }
  return {};
}

ir::Device device_of(const ir::Graph& graph, const ir::Node& node) {
  for (ir::ValueId result : node.results)
    if (graph.type(result).is_tensor()) return graph.type(result).device;
  return {};
}

Types one(const OpQuery& q, DType dtype, Shape shape) { return {ir::Type::tensor(dtype, std::move(shape), device(q))}; }


Types created(const OpQuery& q, DType dtype, Shape shape) {
  const ir::Device own = device(q), asked = q.device("device").value_or(own);
  TENON_USER_CHECK(own.is_host() || own == asked, "the value is on {}, and the result on {}: copy it there with to_device", ir::device_text(own), ir::device_text(asked));
  return {ir::Type::tensor(dtype, std::move(shape), asked)};
}

}  // namespace tenon::ops::infer
