// Padding in every mode of torch and NumPy.
#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

enum class Mode : std::uint8_t { constant, reflect, replicate, circular, symmetric };

Mode mode_named(const std::string& name) {
  constexpr std::string_view kNames[] = {"constant", "reflect", "replicate", "circular", "symmetric"};
  for (std::size_t i = 0; i < std::size(kNames); ++i)
    if (kNames[i] == name) return static_cast<Mode>(i);
  throw Exception(
      error(Code::invalid_argument, "unknown padding mode '{}': constant, reflect, replicate, circular and symmetric are known", name));
}

struct Padding {
  std::vector<Dim> before, after;
  Mode mode;

  explicit Padding(const OpQuery& q)
      : before(q.integers("before")), after(q.integers("after")), mode(mode_named(q.text("mode", "constant"))) {
    const std::size_t rank = q.type(0).rank();
    TENON_USER_CHECK(before.size() == rank && after.size() == rank, "'before' and 'after' take one number a dimension ({})", rank);
  }
  bool idle(std::size_t dim) const { return before[dim] == Dim(0) && after[dim] == Dim(0); }
  /// No element lies further out than `room` beyond an edge.
  bool within(const ir::Graph& graph, std::size_t dim, const Dim& room) const {
    return infer::range(graph, room - before[dim]).least >= 0 && infer::range(graph, room - after[dim]).least >= 0;
  }
};

Shape padded_shape(const OpQuery& q) {
  const Padding p(q);
  Shape shape = q.type(0).shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Dim size = shape[d] + p.before[d] + p.after[d];
    TENON_USER_CHECK(infer::may_be_positive_or_0(q.graph(), size), "the padded size of dimension {} is negative: {}", d,
                     infer::text(q.graph(), size));
    TENON_USER_CHECK(p.mode == Mode::constant || p.idle(d) || infer::taken_positive_or_0(q.graph(), shape[d] - Dim(1)),
                     "dimension {} is empty: there is nothing to pad it with", d);
    shape[d] = size;
  }
  return shape;
}

/// Mirrors an index about the edges of [0, size): once is enough where the padding is smaller than the tensor, else by the period.
Scalar mirrored(Scalars& s, const OpQuery& q, const Padding& p, std::size_t d, Scalar i) {
  IndexMath m(s);
  const Dim size = q.type(0).shape[d];
  const bool edge_counts_twice = p.mode == Mode::symmetric;
  if (p.within(q.graph(), d, edge_counts_twice ? size : size - Dim(1))) {
    const Dim top = edge_counts_twice ? size + size - Dim(1) : size + size - Dim(2);
    i = s.maximum(i, edge_counts_twice ? s.sub(m.of(-1), i) : s.neg(i));
    return s.minimum(i, s.sub(m.of(top), i));
  }
  const Dim period = edge_counts_twice ? size + size : max(size + size - Dim(2), Dim(1));
  i = s.binary(Primitive::remainder, i, m.of(period));
  return s.select(s.ge(i, m.of(size)), s.sub(m.of(edge_counts_twice ? period - Dim(1) : period), i), i);
}

Scalar source_index(Scalars& s, const OpQuery& q, const Padding& p, std::size_t d, Scalar i) {
  IndexMath m(s);
  const Dim size = q.type(0).shape[d];
  switch (p.mode) {
    case Mode::replicate: return s.minimum(s.maximum(i, m.of(0)), m.of(size - Dim(1)));
    case Mode::circular: return m.mod(i, size);
    case Mode::reflect:
    case Mode::symmetric: return mirrored(s, q, p, d, i);
    case Mode::constant: break;
  }
  return i;
}

LoopBody pad_loop(const OpQuery& q) {
  const Padding p(q);
  Shape shape = padded_shape(q);
  const std::size_t rank = shape.size();
  return elementwise(std::move(shape), [&](Scalars& s) {
    IndexMath m(s);
    auto index = m.loops(rank);
    std::optional<Scalar> inside;
    for (std::size_t d = 0; d < rank; ++d) {
      if (p.idle(d)) continue;
      index[d] = source_index(s, q, p, d, m.add(index[d], Dim(0) - p.before[d]));
      if (p.mode != Mode::constant) continue;
      const Scalar here = s.logical_and(s.ge(index[d], m.of(0)), s.lt(index[d], m.of(q.type(0).shape[d])));
      inside = inside ? s.logical_and(*inside, here) : here;
    }
    const DType t = q.type(0).dtype;
    if (!inside) return s.load(0, t, index);
    return s.load_if(*inside, 0, t, index, s.constant(compute_type(t), q.number("value", 0)));
  });
}

// ---- foreign calls

Values padded(ForeignArguments& a, ir::ValueId x, std::vector<Dim> before, std::vector<Dim> after, const std::string& mode, double value) {
  return a.call("pad", {x}, {{"after", std::move(after)}, {"before", std::move(before)}, {"mode", mode}, {"value", value}});
}

/// torch gives pairs from the last dimension on.
Values torch_pad(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const auto pairs = a.integers("pad");
  const std::size_t rank = a.type(x).rank();
  TENON_USER_CHECK(pairs.size() % 2 == 0, "Padding length must be divisible by 2");
  TENON_USER_CHECK(
      pairs.size() / 2 <= rank,
      "Padding length should be less than or equal to two times the input dimension but got padding length {} and input of dimension {}",
      pairs.size(), rank);
  std::vector<Dim> before(rank, Dim(0)), after(rank, Dim(0));
  for (std::size_t k = 0; k < pairs.size() / 2; ++k) {
    before[rank - 1 - k] = pairs[2 * k];
    after[rank - 1 - k] = pairs[2 * k + 1];
  }
  const std::string mode = a.text("mode", "constant");
  TENON_USER_CHECK(mode == "constant" || a.number("value", 0) == 0, "Padding mode \"{}\" doesn't take in value argument", mode);
  const std::size_t padded_dimensions = pairs.size() / 2;
  TENON_USER_CHECK(mode == "constant" || (padded_dimensions <= 3 && (rank == padded_dimensions + 1 || rank == padded_dimensions + 2)),
                   "Padding size {} is not supported for {}D input tensor in mode '{}'", pairs.size(), rank, mode);
  const Shape& shape = a.type(x).shape;
  for (std::size_t d = 0; d < rank; ++d) {
    const Dim room = mode == "reflect" ? shape[d] - Dim(1) : shape[d];
    const bool idle = before[d] == Dim(0) && after[d] == Dim(0);
    if (!idle && (mode == "reflect" || mode == "circular"))
      TENON_USER_CHECK(
          infer::may_be_positive_or_0(a.graph(), room - before[d]) && infer::may_be_positive_or_0(a.graph(), room - after[d]),
          "Padding size should be less than the corresponding input dimension, but got padding ({}, {}) at dimension {} of size {}",
          infer::text(a.graph(), before[d]), infer::text(a.graph(), after[d]), d, infer::text(a.graph(), shape[d]));
  }
  if (mode != "circular") return padded(a, x, std::move(before), std::move(after), mode, a.number("value", 0));
  // What negative padding takes away is gone before the rest is wrapped around.
  std::vector<Dim> cut_before(rank, Dim(0)), cut_after = cut_before;
  bool cuts = false;
  for (std::size_t d = 0; d < rank; ++d)
    for (auto [pad, cut] : {std::pair(&before[d], &cut_before[d]), std::pair(&after[d], &cut_after[d])})
      if (infer::is_negative(a.graph(), *pad)) {
        std::swap(*pad, *cut);
        cuts = true;
      }
  const ir::ValueId kept = cuts ? padded(a, x, cut_before, cut_after, "constant", 0)[0] : x;
  return padded(a, kept, std::move(before), std::move(after), mode, 0);
}

/// NumPy's pad_width: a number, (before, after), ((before, after),) or one pair a dimension.
void read_widths(const ForeignArgument& width, std::size_t rank, std::vector<Dim>& before, std::vector<Dim>& after) {
  if (const Dim* all = width.as<Dim>()) {
    before.assign(rank, *all);
    after.assign(rank, *all);
    return;
  }
  const ForeignList* list = width.as<ForeignList>();
  if (!list || list->empty()) throw Exception(Code::unsupported, "this form of pad_width");
  if (list->front().as<ForeignList>()) {
    TENON_USER_CHECK(list->size() == rank || list->size() == 1, "pad_width has {} pairs for {} dimensions", list->size(), rank);
    for (std::size_t d = 0; d < rank; ++d) {
      std::vector<Dim> b, e;
      read_widths((*list)[list->size() == 1 ? 0 : d], 1, b, e);
      before.push_back(b[0]);
      after.push_back(e[0]);
    }
    return;
  }
  const Dim* first = list->front().as<Dim>();
  const Dim* second = list->back().as<Dim>();
  if (!first || !second || list->size() > 2) throw Exception(Code::unsupported, "this form of pad_width");
  before.assign(rank, *first);
  after.assign(rank, *second);
}

Values numpy_pad(ForeignArguments& a) {
  const ir::ValueId x = a.tensor(a.value("self"));
  std::vector<Dim> before, after;
  read_widths(a["pad_width"], a.type(x).rank(), before, after);
  for (const auto& widths : {before, after})
    for (const Dim& w : widths) TENON_USER_CHECK(infer::may_be_positive_or_0(a.graph(), w), "index can't contain negative values");
  a.refuse({"stat_length", "end_values", "reflect_type"});
  const std::string mode = a.text("mode", "constant");
  const std::pair<std::string_view, const char*> kModes[] = {
      {"constant", "constant"}, {"edge", "replicate"}, {"reflect", "reflect"}, {"symmetric", "symmetric"}, {"wrap", "circular"}};
  for (const auto& [numpy, ours] : kModes) {
    if (numpy != mode) continue;
    if (a["constant_values"].as<ForeignList>()) throw Exception(Code::unsupported, "different constant_values for different edges");
    if (a.is_tensor("constant_values")) throw Exception(Code::unsupported, "constant_values as an array");
    return padded(a, x, before, after, ours, a.number("constant_values", 0));
  }
  throw Exception(error(Code::unsupported, "numpy.pad with mode '{}'", mode));
}

Op pad_op() {
  Op op;
  op.name = "pad";
  op.schema = "(Tensor self, int[] before, int[] after, str mode='constant', Scalar value=0) -> Tensor";
  op.aliases =
      names({"torch.nn.functional.pad"}, "(input -> self, pad, mode='constant', value=None)", torch_pad) +
      names({"torch.constant_pad_nd"}, "(self, pad, value=0)", torch_pad) +
      names({"numpy.pad"},
            "(array -> self, pad_width, mode='constant', *, constant_values=0, stat_length=None, end_values=None, reflect_type='even')",
            numpy_pad);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    return infer::one(q, q.type(0).dtype, padded_shape(q));
  };
  op.loop = pad_loop;
  op.grad = written(gradients::pad);
  op.samples = [] {
    const auto pad = [](std::vector<Dim> before, std::vector<Dim> after, const char* mode, double value = 0) {
      return ir::Attributes{{"after", std::move(after)}, {"before", std::move(before)}, {"mode", std::string(mode)}, {"value", value}};
    };
    auto all =
        movement_samples({3, 5}, {pad({1, 2}, {0, 3}, "constant", 1), pad({0, -1}, {2, -2}, "constant"), pad({2, 0}, {1, 4}, "reflect"),
                                  pad({1, 2}, {2, 1}, "replicate"), pad({3, 0}, {1, 5}, "circular"), pad({3, 1}, {2, 2}, "symmetric")});
    for (Sample& s :
         movement_samples({2, 3}, {pad({5, 0}, {4, 7}, "reflect"), pad({5, 4}, {1, 9}, "symmetric"), pad({7, 1}, {3, 8}, "circular")}))
      all.push_back(std::move(s));
    for (Sample& s : movement_samples({1}, {pad({2}, {3}, "reflect")})) all.push_back(std::move(s));
    return all;
  };
  return op;
}

}  // namespace

Family padding_ops() { return {pad_op()}; }

}  // namespace tenon::ops
