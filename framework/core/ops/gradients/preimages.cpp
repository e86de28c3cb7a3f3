#include "core/ops/gradients/preimages.h"

#include <algorithm>
#include <numeric>

#include "core/ops/reference/program.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;

constexpr std::int64_t kMostPoints = 1 << 18;  // that are evaluated for a dimension
constexpr std::int64_t kLargestExcess = 3;     // of terms, absent ones among them, over points

template <class T>
ValueId constant(NodeBuilder& b, DType dtype, Shape shape, std::vector<T> elements) {
  const auto owner = std::make_shared<const std::vector<T>>(std::move(elements));
  return b.constant(ir::Type::tensor(dtype, std::move(shape)), {owner, owner->data()});
}

/// Aligned with dimension `first` and the one after it of a tensor of so many.
ValueId beside(NodeBuilder& b, ValueId table, std::size_t first, std::size_t rank) {
  Shape shape(rank - first, Dim(1));
  const Shape own = b.graph().type(table).shape;
  std::ranges::copy(own, shape.begin());
  return b.graph().type(table).shape == shape ? table : b.one("reshape", {table}, {{"shape", shape}});
}

ValueId weights(NodeBuilder& b, const GatheredSum& sum, DType dtype, Shape shape) {
  if (dtype == DType::f64) return constant(b, dtype, std::move(shape), sum.weights);
  return constant(b, DType::f32, std::move(shape), std::vector<float>(sum.weights.begin(), sum.weights.end()));
}

/// What a program of loop indices says of registers that need no more than these.
class LoopFunctions {
 public:
  LoopFunctions(const ScalarProgram& program, std::size_t loops) : program_(program), known_(program.instructions.size()), loops_(program.instructions.size(), std::vector<bool>(loops)) {
    for (std::size_t r = 0; r < known_.size(); ++r) note(r);
  }

  bool are_known(std::uint32_t reg) const { return known_[reg]; }
  const std::vector<bool>& loops(std::uint32_t reg) const { return loops_[reg]; }

  /// The registers at every point of some loops, the last of which runs fastest: one list a register.
  std::vector<std::vector<std::int64_t>> evaluate(std::vector<std::uint32_t> registers, const std::vector<std::size_t>& loops, const Shape& extents, std::int64_t points) const {
    reference::Program run(program_of(std::move(registers)), {}, {}, static_cast<std::size_t>(points));
    std::int64_t inner = 1;
    for (std::size_t l = loops.size(); l-- > 0;) {
      const std::int64_t extent = extents[loops[l]].constant();
      if (std::int64_t* lanes = run.loop_index(loops[l]))
        for (std::int64_t p = 0; p < points; ++p) lanes[p] = p / inner % extent;
      inner *= extent;
    }
    run.run(static_cast<std::size_t>(points));
    std::vector<std::vector<std::int64_t>> values;
    for (std::size_t k = 0; k < run.result_count(); ++k) {
      const bool truth = is_bool(run.result_dtype(k));
      values.emplace_back();
      for (std::int64_t p = 0; p < points; ++p)
        values.back().push_back(truth ? static_cast<const std::uint8_t*>(run.result(k))[p] : static_cast<const std::int64_t*>(run.result(k))[p]);
    }
    return values;
  }

 private:
  void note(std::size_t r) {
    const Instruction& i = program_.instructions[r];
    known_[r] = i.op != Primitive::load && i.op != Primitive::parameter && i.op != Primitive::extent;  // a known size is a constant
    if (i.op == Primitive::loop_index) loops_[r][i.payload] = true;
    for (std::size_t k = 0; k < arity(i.op); ++k) {
      known_[r] = known_[r] && known_[i.args[k]];
      for (std::size_t l = 0; l < loops_[r].size(); ++l) loops_[r][l] = loops_[r][l] || loops_[i.args[k]][l];
    }
  }

  ScalarProgram program_of(std::vector<std::uint32_t> registers) const {
    std::vector<bool> needed(program_.instructions.size());
    for (std::uint32_t r : registers) needed[r] = true;
    for (std::size_t r = needed.size(); r-- > 0;)
      for (std::size_t k = 0; needed[r] && k < arity(program_.instructions[r].op); ++k) needed[program_.instructions[r].args[k]] = true;
    ScalarProgram part{.dims = program_.dims};
    std::vector<std::uint32_t> moved(needed.size());
    for (std::size_t r = 0; r < needed.size(); ++r) {
      if (!needed[r]) continue;
      Instruction i = program_.instructions[r];
      for (std::uint32_t& a : i.args) a = a < r ? moved[a] : 0;
      moved[r] = static_cast<std::uint32_t>(part.instructions.size());
      part.instructions.push_back(i);
    }
    for (std::uint32_t r : registers) part.results.push_back(moved[r]);
    return part;
  }

  const ScalarProgram& program_;
  std::vector<bool> known_;               // whether a register needs nothing but loop indices and known sizes
  std::vector<std::vector<bool>> loops_;  // which loops a register depends on
};

/// The registers whose conjunction a mask is.
std::vector<std::uint32_t> conjuncts(const ScalarProgram& program, std::uint32_t mask) {
  const Instruction& i = program.instructions[mask];
  if (i.op != Primitive::logical_and) return {mask};
  std::vector<std::uint32_t> all = conjuncts(program, i.args[0]);
  std::ranges::copy(conjuncts(program, i.args[1]), std::back_inserter(all));
  return all;
}

/// What the analysis of a load collects of one dimension before anything is evaluated.
struct Dimension {
  std::uint32_t index;
  std::vector<std::size_t> loops;
  std::vector<std::uint32_t> masks;

  bool has(const std::vector<bool>& others) const {
    for (std::size_t l = 0; l < others.size(); ++l)
      if (others[l] && !std::ranges::binary_search(loops, l)) return false;
    return true;
  }
};

std::optional<std::vector<Dimension>> dimensions(const ScalarProgram& program, const Instruction& load, const LoopFunctions& functions) {
  std::vector<Dimension> found;
  std::vector<std::size_t> taken;
  for (std::uint32_t k = 0; k < load.index_count; ++k) {
    Dimension d{program.indices[load.first_index + k], {}, {}};
    if (!functions.are_known(d.index)) return {};
    for (std::size_t l = 0; l < functions.loops(d.index).size(); ++l)
      if (functions.loops(d.index)[l]) d.loops.push_back(l);
    if (d.loops.empty() || std::ranges::any_of(d.loops, [&](std::size_t l) { return std::ranges::find(taken, l) != taken.end(); })) return {};
    std::ranges::copy(d.loops, std::back_inserter(taken));
    found.push_back(std::move(d));
  }
  for (const std::uint32_t mask : load.masked ? conjuncts(program, load.args[0]) : std::vector<std::uint32_t>()) {
    if (!functions.are_known(mask)) return {};
    const auto its = std::ranges::find_if(found, [&](const Dimension& d) { return d.has(functions.loops(mask)); });
    if (its == found.end()) return {};
    its->masks.push_back(mask);
  }
  return found;
}

/// How many points loops have together; nothing where that is not known or too many.
std::optional<std::int64_t> points_of(const std::vector<std::size_t>& loops, const Shape& extents) {
  std::int64_t points = 1;
  for (std::size_t l : loops) {
    if (!extents[l].is_constant() || extents[l].constant() <= 0) return {};
    points *= extents[l].constant();
    if (points > kMostPoints) return {};
  }
  return points;
}

std::optional<GatheredSum> sum_of(const Dimension& d, const LoopFunctions& functions, const Shape& extents, std::int64_t size) {
  const auto points = points_of(d.loops, extents);
  if (!points || size > kMostPoints) return {};
  std::vector<std::uint32_t> registers{d.index};
  std::ranges::copy(d.masks, std::back_inserter(registers));
  const auto values = functions.evaluate(std::move(registers), d.loops, extents, *points);
  std::vector<GatheredSum::Term> terms;
  for (std::int64_t p = 0; p < *points; ++p) {
    const auto at = static_cast<std::size_t>(p);
    if (std::any_of(values.begin() + 1, values.end(), [&](const auto& mask) { return !mask[at]; })) continue;
    GatheredSum::Term term{values[0][at], std::vector<std::int64_t>(d.loops.size())};
    if (term.element < 0 || term.element >= size) return {};
    for (std::int64_t l = std::ssize(d.loops) - 1, rest = p; l >= 0; --l) {
      const std::int64_t extent = extents[d.loops[static_cast<std::size_t>(l)]].constant();
      term.place[static_cast<std::size_t>(l)] = rest % extent;
      rest /= extent;
    }
    terms.push_back(std::move(term));
  }
  GatheredSum sum(size, d.loops.size(), terms);
  if (sum.terms * size > kLargestExcess * *points + size) return {};
  return sum;
}

}  // namespace

GatheredSum::GatheredSum(std::int64_t size, std::size_t dimensions, std::span<const Term> given) : size(size) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(size));
  for (const Term& t : given) terms = std::max(terms, ++count[static_cast<std::size_t>(t.element)]);
  terms = std::max<std::int64_t>(terms, 1);
  const auto all = static_cast<std::size_t>(terms * size);
  places.assign(dimensions, std::vector<std::int64_t>(all));
  present.resize(all);
  const bool weighted = std::ranges::any_of(given, [](const Term& t) { return t.weight != 1; });
  if (weighted) weights.resize(all);
  std::ranges::fill(count, 0);
  for (const Term& t : given) {
    const auto at = static_cast<std::size_t>(count[static_cast<std::size_t>(t.element)]++ * size + t.element);
    for (std::size_t d = 0; d < dimensions; ++d) places[d][at] = t.place[d];
    present[at] = 1;
    if (weighted) weights[at] = t.weight;
  }
}

GatheredSum readers(ScalarProgram program, std::size_t taps, std::int64_t in, std::int64_t out) {
  const auto lanes = static_cast<std::size_t>(out);
  reference::Program run(std::move(program), {}, {}, lanes);
  if (std::int64_t* index = run.loop_index(0)) std::iota(index, index + out, 0);
  run.run(lanes);
  const auto weight = [&](std::size_t k, std::size_t at) -> double {
    if (run.result_count() == taps) return 1;
    const void* all = run.result(taps + k);
    return run.result_dtype(taps + k) == DType::f64 ? static_cast<const double*>(all)[at] : static_cast<const float*>(all)[at];
  };
  std::vector<GatheredSum::Term> terms;
  for (std::size_t at = 0; at < lanes; ++at)
    for (std::size_t k = 0; k < taps; ++k) {
      GatheredSum::Term term{static_cast<const std::int64_t*>(run.result(k))[at], {static_cast<std::int64_t>(at)}, weight(k, at)};
      if (k > 0 && terms.back().element == term.element) terms.back().weight += term.weight;  // taps that an edge holds together
      else terms.push_back(std::move(term));
    }
  return GatheredSum(in, 1, terms);
}

ValueId gathered_sum(NodeBuilder& b, ValueId from, std::size_t first, const GatheredSum& sum) {
  const DType dtype = b.graph().type(from).dtype;
  const Shape shape = sum.terms == 1 ? Shape{Dim(sum.size)} : Shape{Dim(sum.terms), Dim(sum.size)};
  std::vector<ValueId> operands{from};
  std::vector<Dim> dims;
  for (const auto& places : sum.places) {
    operands.push_back(constant(b, DType::i64, shape, places));
    dims.emplace_back(static_cast<std::int64_t>(first + dims.size()));
  }
  ValueId taken = b.one("index", std::move(operands), {{"dims", dims}});
  const std::size_t rank = b.graph().type(taken).rank();
  if (std::ranges::find(sum.present, 0) != sum.present.end())
    taken = b.one("where", {beside(b, constant(b, DType::b8, shape, sum.present), first, rank), taken, b.literal(0.0)});
  if (!sum.weights.empty()) taken = b.one("mul", {taken, beside(b, weights(b, sum, dtype, shape), first, rank)});
  return sum.terms == 1 ? taken : b.one("sum", {taken}, {{"dim", std::vector<Dim>{Dim(static_cast<std::int64_t>(first))}}, {"dtype", dtype}, {"keepdim", false}});
}

std::optional<std::vector<LoadedDimension>> loaded_dimensions(const ScalarProgram& program, const Instruction& load, const Shape& extents, const Shape& shape) {
  const LoopFunctions functions(program, extents.size());
  const auto found = dimensions(program, load, functions);
  if (!found) return {};
  std::vector<LoadedDimension> loaded;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    const Dimension& d = (*found)[k];
    const bool is_loop = program.instructions[d.index].op == Primitive::loop_index && extents[d.loops[0]] == shape[k];
    loaded.push_back({d.loops, {}});
    if (is_loop && d.masks.empty()) continue;
    if (!shape[k].is_constant()) return {};
    loaded.back().sum = sum_of(d, functions, extents, shape[k].constant());
    if (!loaded.back().sum) return {};
  }
  return loaded;
}

}  // namespace tenon::ops
