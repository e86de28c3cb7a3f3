#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/ops/gradients/gradients.h"

namespace tenon::ops::gradients {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;

/// Windows that an element may be in: reading so many costs no more than adding to places one by one.
constexpr std::size_t kMostWindows = 4;

struct PoolWindows {
  std::int64_t kernel, stride, padding, dilation;
};

/// By dimension the windows where they slide by known steps; nothing for adaptive ones.
std::vector<PoolWindows> windows_of(const OpQuery& q, std::size_t spatial) {
  const auto known = [&](const char* name) {
    const std::vector<Dim> numbers = q.find(name) ? q.integers(name) : std::vector<Dim>();
    return numbers.size() == spatial && std::ranges::all_of(numbers, [](const Dim& d) { return d.is_constant(); });
  };
  std::vector<PoolWindows> windows;
  if (q.find("output_size") || !known("kernel_size") || !known("stride") || !known("padding") || !known("dilation")) return windows;
  const auto number = [&](const char* name, std::size_t d) { return q.integers(name)[d].constant(); };
  for (std::size_t d = 0; d < spatial; ++d) windows.push_back({number("kernel_size", d), number("stride", d), number("padding", d), number("dilation", d)});
  return windows;
}

/// By turn a table that says of each element of a dimension one window that it may be in, in ascending order; then others, where fewer may be.
std::vector<std::vector<std::int64_t>> tables_of(const PoolWindows& w, std::int64_t elements, std::int64_t count) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // the first window, and how many
  std::int64_t most = 0;
  for (std::int64_t e = 0; e < elements; ++e) {
    const std::int64_t before = e + w.padding - (w.kernel - 1) * w.dilation;
    const std::int64_t first = before <= 0 ? 0 : (before + w.stride - 1) / w.stride, last = std::min(count - 1, (e + w.padding) / w.stride);
    ranges.emplace_back(first, std::max<std::int64_t>(0, last - first + 1));
    most = std::max(most, ranges.back().second);
  }
  std::vector<std::vector<std::int64_t>> tables(static_cast<std::size_t>(most));
  for (const auto& [first, windows] : ranges)
    for (std::int64_t turn = 0; turn < most; ++turn) {
      const std::int64_t other = turn - windows;  // among those that the element is not in: before the first, or behind the last
      tables[static_cast<std::size_t>(turn)].push_back(other < 0 ? first + turn : other < first ? other : turn);
    }
  return tables;
}

ValueId table(GradBuilder& g, const std::vector<std::int64_t>& elements) {
  const auto owner = std::make_shared<const std::vector<std::int64_t>>(elements);
  return g.nodes().constant(ir::Type::tensor(DType::i64, {Dim(static_cast<std::int64_t>(elements.size()))}), {owner, owner->data()});
}

/// One window for each element of a dimension. Where `there` is given and false, none.
struct Turn {
  ValueId window;
  std::optional<ValueId> there;
};

/// What a table says, computed where the tensors are: constants lie in the host's memory.
Turn computed_turn(GradBuilder& g, const PoolWindows& w, std::int64_t elements, std::int64_t count, std::int64_t turn) {
  const auto number = [&](std::int64_t n) { return g.nodes().literal(Dim(n)); };
  const ValueId moved = g.one("add", {g.positions({Dim(elements)}, 0), number(w.padding - (w.kernel - 1) * w.dilation + w.stride - 1)});
  const ValueId first = g.one("maximum", {g.one("floor_divide", {moved, number(w.stride)}), number(0)});
  const ValueId window = turn == 0 ? first : g.one("add", {first, number(turn)});
  const std::int64_t last = std::max<std::int64_t>(0, (elements - 1 + w.padding - (w.kernel - 1) * w.dilation + w.stride - 1) / w.stride) + turn;
  if (last < count) return {window, {}};
  return {g.one("minimum", {window, number(count - 1)}), g.one("lt", {window, number(count)})};
}

/// The windows that elements of a dimension may be in, by turn.
std::vector<Turn> turns_of(GradBuilder& g, const PoolWindows& w, std::int64_t elements, std::int64_t count) {
  std::vector<Turn> turns;
  const bool on_host = g.type(g.operand()).device.is_host();
  for (const auto& windows : tables_of(w, elements, count))
    turns.push_back(on_host ? Turn{table(g, windows), {}} : computed_turn(g, w, elements, count, std::ssize(turns)));
  return turns;
}

/// What lies in some windows, once for each element; and the places of their largest elements.
struct Read {
  ValueId places, gradient;
};

/// Of windows that are not there the places are none's.
Read taken(GradBuilder& g, const Read& read, const Turn& turn, std::size_t dim) {
  const auto at_turn = [&](ValueId v) { return g.one("index", {v, turn.window}, {{"dims", std::vector<Dim>{Dim(static_cast<std::int64_t>(dim))}}}); };
  Read made{at_turn(read.places), at_turn(read.gradient)};
  if (!turn.there) return made;
  Shape beside(g.shape(made.places).size() - dim, Dim(1));
  beside[0] = g.shape(*turn.there)[0];
  made.places = g.one("where", {g.reshape(*turn.there, beside), made.places, g.nodes().literal(Dim(-1))});
  return made;
}

/// The windows that each element may be in, of all dimensions, in their order; nothing where they are too many, or not known.
std::vector<Read> windows_by_element(GradBuilder& g, ValueId places, std::size_t spatial) {
  const std::vector<PoolWindows> windows = windows_of(g.query(), spatial);
  const Shape in = g.shape(g.operand()), out = g.shape(places);
  if (windows.size() != spatial) return {};
  std::vector<Read> reads{{places, g.gradient()}};
  for (std::size_t d = 0; d < spatial; ++d) {
    const std::size_t dim = in.size() - spatial + d;
    const Dim &elements = in[dim], &count = out[dim];
    if (!elements.is_constant() || !count.is_constant() || count.constant() == 0) return {};
    if (reads.size() * tables_of(windows[d], elements.constant(), count.constant()).size() > kMostWindows) return {};
    std::vector<Read> of_dimension;
    const std::vector<Turn> turns = turns_of(g, windows[d], elements.constant(), count.constant());
    for (const Read& read : reads)
      for (const Turn& turn : turns) of_dimension.push_back(taken(g, read, turn, dim));
    reads = std::move(of_dimension);
  }
  return reads;
}

/// The place of each element among those of its picture, as `max_pool_with_indices` counts them.
ValueId own_places(GradBuilder& g, std::size_t spatial) {
  const Shape shape = g.shape(g.operand());
  Shape picture(shape.end() - static_cast<std::ptrdiff_t>(spatial), shape.end());
  const Shape flat{ir::product(picture)};
  Shape beside(shape.size() - spatial, Dim(1));
  beside.insert(beside.end(), picture.begin(), picture.end());
  return g.reshape(g.positions(flat, 0), beside);
}

ValueId flat(GradBuilder& g, ValueId v, std::size_t spatial) {
  Shape shape = g.type(v).shape;
  const Dim count = ir::product(std::span(shape).subspan(shape.size() - spatial));
  shape.resize(shape.size() - spatial);
  shape.push_back(count);
  return g.reshape(v, shape);
}

}  // namespace

/// Each result's gradient goes to the first largest element of its window: each element adds up those of the windows whose place is its own, or where
/// these are many, each window adds to a place.
GradBuilder::Values max_pool(GradBuilder& g) {
  const OpQuery& q = g.query();
  const ir::Attributes attributes = q.attributes();
  const ValueId places = g.result_count() == 2 ? g.result(1) : g.nodes().call("max_pool_with_indices", {g.operand()}, attributes)[1];
  const std::size_t spatial = q.find("output_size") ? q.integers("output_size").size() : q.integers("kernel_size").size();
  const std::vector<Read> reads = windows_by_element(g, places, spatial);
  if (reads.empty()) {
    const ValueId x = flat(g, g.operand(), spatial);
    const ValueId sums = added_at(g, x, flat(g, places, spatial), flat(g, g.gradient(), spatial), g.type(x).rank() - 1);
    return {g.reshape(sums, g.type(g.operand()).shape)};
  }
  const ValueId own = own_places(g, spatial);
  ValueId sum;
  for (const Read& read : reads) {
    const ValueId here = g.one("where", {g.one("eq", {read.places, own}), read.gradient, g.number(0)});
    sum = sum ? g.one("add", {sum, here}) : here;
  }
  return {sum};
}

}  // namespace tenon::ops::gradients
