#include "python/symbols/symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/ops/infer.h"
#include "python/objects/graph_break.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

using Operator = ir::Relation::Operator;
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();

thread_local Symbols* t_active = nullptr;

bool is_special(std::int64_t value) { return value >= -1 && value <= 1; }

/// The range in which an extent of that value varies.
NumberFacts::Range range_of_extent(std::int64_t value) {
  if (is_special(value)) return {value, value};
  return value > 0 ? NumberFacts::Range{2, kMost} : NumberFacts::Range{kLeast, -2};
}

/// The range of an int that has had these values.
NumberFacts::Range range_of_integer(NumberHistory::Span span) { return {span.least >= 0 ? 0 : kLeast, span.most <= 0 ? 0 : kMost}; }

/// Whose multiple is the whole for some numbers alone; a difference gives it back for all.
bool is_quotient(const ir::Dim& dim) { return dim.terms().size() == 1 && dim.terms()[0].atoms.size() == 1 && dim.terms()[0].atoms[0].op == ir::DimOp::floor_div; }

}  // namespace

Symbols::Symbols(ir::Graph& graph, Dynamic dynamic, NumberHistory& history, NumberFacts& facts)
    : graph_(graph), dynamic_(dynamic), history_(history), facts_(facts), outer_(std::exchange(t_active, this)), asking_(this) {}

Symbols::~Symbols() { t_active = outer_; }

Symbols* Symbols::active() { return t_active; }

// ---- making symbols

bool Symbols::varies(const std::string& name, std::int64_t bits, bool from_the_start) {
  if (dynamic_ == Dynamic::never) return false;
  const bool seen_to = history_.varies(name, bits);
  return (seen_to || (dynamic_ == Dynamic::always && from_the_start)) && !facts_.is_fixed(facts_.position(name));
}

void Symbols::fix(const std::string& name, const char* why) {
  if (!facts_.fix(facts_.position(name))) return;
  learned_ = true;
  if (logs().recompiles && said_.insert(name).second) log_line(fmt::format("tenon: {} is taken as a constant: {}", name, why));
}

ir::Dim Symbols::number(NumberSource source, std::int64_t value, bool from_the_start) {
  const bool varying = varies(source.name, value, from_the_start);
  const std::size_t name = facts_.position(source.name);
  if (const auto made = made_.find(name); made != made_.end()) return made->second;
  if (!varying) return value;
  if (const NumberFacts::Range range = range_of(source, value); range.least == range.most || !range.holds(value)) return value;
  return make(name, std::move(source), value);
}

/// A new symbol as the capture sees it: as itself, or as what it is defined to be.
ir::Dim Symbols::make(std::size_t name, NumberSource source, std::int64_t value) {
  const ir::Dim dim = symbol(name, std::move(source), value);
  raw_.emplace(name, dim);
  ir::Dim seen = dim;
  if (const std::optional<ir::Dim> definition = facts_.definition(name)) {
    bool by_difference = false;
    definition->for_each_symbol([&](SymbolId part) {
      const std::optional<ir::Dim>& expression = facts_.expression(part.value);
      if (!expression) return;
      by_difference |= !is_quotient(*expression);
      make_expression(part.value);
    });
    seen = over_symbols(*definition).value_or(dim);
    if (!(seen == dim) && !by_difference) note({Operator::equal, dim, seen});
  }
  made_.emplace(name, seen);
  return seen;
}

void Symbols::make_expression(std::size_t name) {
  if (made_.contains(name)) return;
  bool all = true;
  facts_.expression(name)->for_each_symbol([&](SymbolId part) { all = all && raw_.contains(part.value); });
  if (!all) return;
  const ir::Dim difference = facts_.expression(name)->substitute([&](SymbolId part) { return raw_.at(part.value); });
  const std::int64_t value = difference.evaluate(values_);
  if (!facts_.is_fixed(name)) {
    make(name, {.kind = NumberSource::Kind::expression, .name = facts_.names()[name], .value = difference}, value);
    return;
  }
  note({Operator::equal, difference, value});
  made_.emplace(name, value);
}

/// The range in which a number of that value varies; an empty one where it does not.
NumberFacts::Range Symbols::range_of(const NumberSource& source, std::int64_t value) const {
  if (source.kind == NumberSource::Kind::expression) return {};
  const bool is_extent = source.kind == NumberSource::Kind::extent || source.kind == NumberSource::Kind::stride;
  return is_extent ? range_of_extent(value) : range_of_integer(history_.span(source.name));
}

ir::Dim Symbols::symbol(std::size_t name, NumberSource source, std::int64_t value) {
  const NumberFacts::Range sign = range_of(source, value), known = facts_.range(name);
  const NumberFacts::Range range{std::max(sign.least, known.least), std::min(sign.most, known.most)};
  ir::SymbolInfo info;
  info.name = fmt::format("s{}", graph_.symbols().size());
  info.min = range.least;
  info.max = range.most;
  info.hint = std::max<std::int64_t>(value, -1);  // of sizes: one below 0 has none
  const SymbolId id = graph_.add_symbol(std::move(info));
  const ir::Dim dim = ir::Dim::symbol(id);
  sources_.resize(id.value + 1);
  values_.resize(id.value + 1);
  names_.resize(id.value + 1);
  sources_[id.value] = std::move(source);
  values_[id.value] = value;
  names_[id.value] = name;
  guard_range(dim, range);
  return dim;
}

void Symbols::guard_range(const ir::Dim& dim, const NumberFacts::Range& range) {
  if (range.least != kLeast) relations_.push_back({Operator::less_equal, range.least, dim});
  if (range.most != kMost) relations_.push_back({Operator::less_equal, dim, range.most});
}

/// Nothing where the capture has not come to one of the names yet.
std::optional<ir::Dim> Symbols::over_symbols(const ir::Dim& over_names) const {
  bool all = true;
  over_names.for_each_symbol([&](SymbolId name) { all = all && made_.contains(name.value); });
  if (!all) return std::nullopt;
  return over_names.substitute([&](SymbolId name) { return made_.at(name.value); });
}

// ---- values and decisions

bool Symbols::is_known(const ir::Dim& dim) const {
  bool known = true;
  dim.for_each_symbol([&](SymbolId s) { known = known && s.value < sources_.size() && sources_[s.value].kind != NumberSource::Kind::data; });
  return known;
}

std::int64_t Symbols::value(const ir::Dim& dim) const {
  if (!is_known(dim)) throw GraphBreak("a size that depends on data", kDataSizeHint);
  return dim.evaluate(values_);
}

std::vector<std::int64_t> Symbols::values(std::span<const ir::Dim> dims) const {
  std::vector<std::int64_t> all;
  for (const ir::Dim& dim : dims) all.push_back(value(dim));
  return all;
}

std::vector<std::int64_t> Symbols::hints(std::span<const ir::Dim> dims) const {
  std::vector<std::int64_t> all;
  for (const ir::Dim& dim : dims) all.push_back(dim.evaluate(values_));
  return all;
}

std::vector<std::int64_t> Symbols::values_where_data_is(std::int64_t size, std::span<const ir::Dim> dims) const {
  std::vector<std::int64_t> values = values_, all;
  for (std::size_t s = 0; s < values.size(); ++s)
    if (sources_[s].kind == NumberSource::Kind::data) values[s] = size;
  for (const ir::Dim& dim : dims) all.push_back(dim.evaluate(values));
  return all;
}

void Symbols::require_data_of_at_least(std::int64_t least, const ir::Dim& dim) {
  dim.for_each_symbol([&](SymbolId s) {
    if (is_known(ir::Dim::symbol(s))) return;
    std::int64_t& min = graph_.mutable_symbol(s).min;
    min = std::max(min, least);
  });
}

void Symbols::take_data_symbols() {
  if (sources_.size() < graph_.symbols().size() && !history_.late_sizes) throw GraphBreak("a size that depends on data, and has been 0", kDataSizeHint);
  for (std::size_t s = sources_.size(); s < graph_.symbols().size(); ++s) {
    graph_.mutable_symbol(SymbolId(s)).min = 1;
    sources_.emplace_back();
    values_.push_back(made_up_size(s));
    names_.push_back(0);
    any_data_ = true;
  }
}

bool Symbols::note(ir::Relation relation) {
  if (std::ranges::find(relations_, relation) == relations_.end()) relations_.push_back(std::move(relation));
  return true;
}

bool Symbols::decide(Operator op, const ir::Dim& left, const ir::Dim& right) {
  value(left), value(right);  // breaks for one that depends on data
  const ops::infer::Interval difference = ops::infer::range(graph_, left - right);
  const bool holds = ir::Relation{op, left, right}.holds(values_);
  const bool proven = (op == Operator::equal || op == Operator::not_equal)
                          ? left == right || difference.least > 0 || difference.most < 0 || (holds == (op == Operator::equal) && ir::are_always_equal(left, right))
                          : (op == Operator::less ? difference.most < 0 || difference.least >= 0 : difference.most <= 0 || difference.least > 0);
  if (proven) return holds;
  if (holds) return note({op, left, right});
  switch (op) {
    case Operator::equal: note({Operator::not_equal, left, right}); break;
    case Operator::not_equal: note({Operator::equal, left, right}); break;
    case Operator::less: note({Operator::less_equal, right, left}); break;
    default: note({Operator::less, right, left}); break;
  }
  return false;
}

std::optional<bool> Symbols::all_equal(std::span<const std::pair<ir::Dim, ir::Dim>> pairs) {
  try {
    ir::Dim squares = 0;
    std::size_t open = 0;
    for (const auto& [left, right] : pairs) {
      const ir::Dim difference = left - right;
      if (const ops::infer::Interval range = ops::infer::range(graph_, difference); range.least > 0 || range.most < 0) return false;
      open += !difference.is_constant();
      squares = squares + difference * difference;
    }
    if (open > 1 && value(squares) != 0) return decide(Operator::equal, squares, 0);
  } catch (const Exception&) {  // larger than expressions may be
  }
  return std::nullopt;
}

bool Symbols::branch(Operator op, const ir::Dim& left, const ir::Dim& right) {
  const bool constant = left.is_constant() && right.is_constant();
  if (!constant && is_known(left) && is_known(right)) {
    const bool both = history_.answers_vary(fmt::format("{} {} {}", describe(left), static_cast<int>(op), describe(right)), ir::Relation{op, left, right}.holds(values_));
    if (both && history_.may_break && history_.splits) {
      broke_ = true;
      throw GraphBreak("a branch on a number that keeps varying, where there are many variants already", "what follows is compiled for either way");
    }
  }
  return decide(op, left, right);
}

std::int64_t Symbols::specialise(const ir::Dim& dim, const char* why) {
  const std::int64_t now = value(dim);
  if (dim.is_constant()) return now;
  note({Operator::equal, dim, now});
  say_constant(describe(dim), now, why);
  return now;
}

std::int64_t Symbols::specialise_or_break(const ir::Dim& dim, const char* why) {
  value(dim);  // breaks for one that depends on data
  if (wear_out(names_of(dim))) throw GraphBreak(fmt::format("a number that keeps varying is needed as it is: {}", why), "an index into a tensor, or a loop over the items themselves, takes all values");
  return specialise(dim, why);
}

bool Symbols::wear_out(std::span<const std::string> names) {
  for (const std::string& name : names) broke_ |= history_.wears_out(name);
  return broke_;
}

bool Symbols::rounds_keep_varying(std::span<const std::string> bounds) {
  bool many = false;
  for (const std::string& name : bounds) many |= history_.takes_many(name);
  return many;
}

bool Symbols::is_exact_in_floats(const ir::Dim& integer) {
  const SymbolId symbol = integer.is_constant() ? SymbolId() : integer.as_symbol();
  if (symbol && sources_[symbol.value].kind == NumberSource::Kind::extent) return true;  // no tensor has more elements
  return decide(Operator::less_equal, integer, kMostExactInFloats) && decide(Operator::less_equal, -kMostExactInFloats, integer);
}

std::optional<FloatTape::Position> Symbols::as_float(const ir::Dim& integer) {
  if (!is_exact_in_floats(integer)) return std::nullopt;
  if (integer.is_constant()) return float_step({.number = static_cast<double>(integer.constant()), .words = describe(integer)});
  return float_step({.op = FloatTape::Op::integer, .integer = integer, .words = describe(integer)});
}

std::optional<ir::Dim> Symbols::whole(FloatTape::Position step) {
  const double now = floats_.value(step);
  if (!(std::abs(now) <= kMostExactInFloats)) return std::nullopt;
  const auto value = static_cast<std::int64_t>(now);
  const std::string name = fmt::format("{} at step {}", floats_.words(step), step);  // long words are not told apart
  vary(name, value);
  const ir::Dim dim = number({.kind = NumberSource::Kind::whole_float, .name = name, .step = step}, value, true);
  if (dim.is_constant())
    if (const auto constant = float_step({.number = now, .words = std::to_string(value)})) floats_.compare(FloatTape::Comparison::equal, step, *constant);
  return dim;
}

std::optional<ir::Dim> Symbols::whole_of(const ir::Dim& integer, std::string_view name, double (*function)(double)) {
  const auto argument = history_.graph_alone ? std::nullopt : as_float(integer);
  const auto step = argument ? float_step({.op = FloatTape::Op::function, .left = *argument, .function = function, .words = fmt::format("{}({})", name, floats_.words(*argument))}) : std::nullopt;
  return step ? whole(*step) : std::nullopt;
}

void Symbols::compute(const ir::Dim& dim) {
  if (!dim.is_constant() && !dim.as_symbol()) computed_.push_back(dim);
}

ir::Dim Symbols::over_names(const ir::Dim& over_symbols) const {
  return over_symbols.substitute([&](SymbolId s) { return ir::Dim::symbol(SymbolId(names_[s.value])); });
}

void Symbols::refine(bool news) {
  refined_ |= news;
  learned_ |= news;
}

void Symbols::say_constant(const std::string& words, std::int64_t value, const char* why) {
  if (logs().recompiles && said_.insert(words).second) log_line(fmt::format("tenon: {} is taken as the constant {}: {}{}{}", words, value, why, call_.empty() ? "" : ", in ", call_));
}

/// Without symbols that stand for expressions.
ir::Dim Symbols::as_read(const ir::Dim& dim) const {
  return dim.substitute([&](SymbolId s) { return sources_[s.value].kind == NumberSource::Kind::expression ? as_read(sources_[s.value].value) : ir::Dim::symbol(s); });
}

std::optional<ChosenPlace> Symbols::place(const ir::Dim& given) const {
  ChosenPlace place;
  const ir::Dim dim = as_read(given);
  bool of_ints = true;
  dim.for_each_symbol([&](SymbolId s) { of_ints = of_ints && (sources_[s.value].kind == NumberSource::Kind::integer || sources_[s.value].kind == NumberSource::Kind::length); });
  if (!of_ints) return std::nullopt;
  place.index = dim.substitute([&](SymbolId s) {
    const SourceId number = sources_[s.value].source;
    const auto found = std::ranges::find(place.numbers, number);
    const auto position = static_cast<std::size_t>(found - place.numbers.begin());
    if (found == place.numbers.end()) place.numbers.push_back(number);
    return ir::Dim::symbol(SymbolId(position));
  });
  return place;
}

std::vector<std::string> Symbols::names_of(const ir::Dim& dim) const {
  std::vector<std::string> names;
  dim.for_each_symbol([&](SymbolId s) { names.push_back(facts_.names()[names_[s.value]]); });
  return names;
}

/// For c*s + k: narrows the range of s so that its sign is what it is now. False for other expressions.
bool Symbols::narrow_single(const ir::Dim& dim) {
  if (dim.terms().size() != 1) return false;
  const ir::DimTerm& term = dim.terms()[0];
  if (term.atoms.size() != 1 || term.atoms[0].op != ir::DimOp::symbol || (term.coefficient != 1 && term.coefficient != -1)) return false;
  narrow_sign(names_[term.atoms[0].symbol.value], value(dim) >= 0, term.coefficient == 1, dim.offset());
  return true;
}

/// Narrows the range of a name so that `offset` plus or minus it (`rises`) keeps the sign.
void Symbols::narrow_sign(std::size_t name, bool natural, bool rises, std::int64_t offset) {
  const std::int64_t edge = rises ? -offset : offset;  // where the expression is 0
  NumberFacts::Range range;
  if (rises == natural) range.least = natural ? edge : edge + 1;
  else range.most = natural ? edge : edge - 1;
  refine(facts_.narrow(name, range));
}

// ---- ending

std::shared_ptr<NumberCheck> Symbols::guard() {
  if (!guard_ && (any() || any_data_ || floats_.some_source())) guard_ = std::make_shared<NumberCheck>(sources_, relations_, computed_, floats_);
  return guard_;
}

std::string Symbols::describe(const ir::Dim& dim) const {
  return dim.to_string([&](SymbolId s) { return s.value < sources_.size() && !sources_[s.value].name.empty() ? sources_[s.value].name : fmt::format("s{}", s.value); });
}

}  // namespace tenon::python
