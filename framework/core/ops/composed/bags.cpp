// Sums and means of bags of embeddings. No op is declared here: the names belong to `embedding`.
#include "core/ops/notation/formula.h"
#include "core/ops/notation/index_rules.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

V zeros(ForeignArguments& a, DType t, Shape shape) { return Formula(a).filled(0, t, std::move(shape)); }

V as_column(ForeignArguments& a, V x) {
  Shape shape = a.type(x).shape;
  shape.emplace_back(1);
  return reshape_to(a.builder(), x, std::move(shape));
}

/// The embeddings by index, weighed, and whether each counts: those of the padding do not.
struct Members {
  V rows;
  std::optional<V> counts;
};

Members members_of(ForeignArguments& a) {
  Formula f(a);
  const V indices = a.value("indices"), weight = a.value("weight");
  ir::Attributes for_gradient;
  for (const char* option : {"scale_grad_by_freq", "sparse"})
    if (a.flag(option)) for_gradient.emplace_back(option, true);
  Members m{a.one("embedding", {weight, indices}, std::move(for_gradient)), {}};
  if (a.given("per_sample_weights")) m.rows = f.mul(m.rows, as_column(a, a.value("per_sample_weights")));
  if (!a.given("padding_idx")) return m;
  Dim padding = a.integer("padding_idx");
  if (!padding.is_constant()) throw Exception(Code::unsupported, "a padding index that is not known");
  if (padding.constant() < 0) padding = padding + f.shape(weight)[0];
  m.counts = f.two("ne", indices, a.builder().literal(padding));
  m.rows = f.where(as_column(a, *m.counts), m.rows, f.number(0));
  return m;
}

V divided(ForeignArguments& a, V sums, V counts) {
  Formula f(a);
  return f.div(sums, as_column(a, f.at_least(f.cast(counts, f.dtype(sums)), 1)));
}

/// Bags of one size: the rows of the indices.
V even_bags(ForeignArguments& a, bool mean) {
  Formula f(a);
  const Members m = members_of(a);
  const V sums = f.sum(m.rows, {Dim(1)});
  if (!mean) return sums;
  if (m.counts) return divided(a, sums, a.one("sum", {*m.counts}, {{"dim", std::vector<Dim>{Dim(1)}}, {"dtype", DType::i64}, {"keepdim", false}}));
  const V size = a.builder().literal(infer::at_least(a.graph(), f.shape(m.rows)[1], Dim(1)));
  return f.div(sums, size);
}

/// Zero, unless the number is outside of [0, most]: then the call fails.
V checked(ForeignArguments& a, V number, const Dim& most, DType t) {
  return a.one("index_select", {zeros(a, t, {most + Dim(1)}), number}, {{"dim", Dim(0)}});
}

/// Bags that start at the offsets: each index belongs to the last bag that starts at it or before.
V bags_at(ForeignArguments& a, V offsets, bool mean) {
  Formula f(a);
  const Members m = members_of(a);
  const DType t = f.dtype(m.rows);
  const Dim count = f.shape(m.rows)[0], bags = f.shape(offsets)[0];
  const V numbers = a.one("arange", {}, {{"dtype", f.dtype(offsets)}, {"end", count}, {"start", Dim(0)}, {"step", Dim(1)}});
  const V bag = f.sub(a.one("searchsorted", {offsets, numbers}, {{"right", true}}), f.integer(1));
  const auto total = [&](V rows, Shape shape) { return a.one("index_add", {zeros(a, f.dtype(rows), std::move(shape)), bag, rows}, {{"dim", Dim(0)}}); };
  V sums = total(m.rows, {bags, f.shape(m.rows)[1]});
  if (mean) sums = divided(a, sums, total(m.counts ? f.cast(*m.counts, DType::i64) : f.add(zeros(a, DType::i64, {count}), f.integer(1)), {bags}));
  const V first = slice_of(a.builder(), offsets, 0, {{}, Dim(1), {}}), last = slice_of(a.builder(), offsets, 0, {Dim(-1), {}, {}});
  const V valid = f.add(checked(a, first, Dim(0), t), checked(a, last, count, t));
  sums = f.add(sums, valid);
  return a.flag("include_last_offset") ? slice_of(a.builder(), sums, 0, {{}, Dim(-1), {}}) : sums;
}

/// In the words of torch.nn.functional. The greatest of a bag leaves nan aside unless it comes first: that stays with ATen.
Values embedding_bag(ForeignArguments& a) {
  Formula f(a);
  a.refuse({"max_norm"});
  const std::string mode = a.text("mode", "mean");
  const V indices = a.value("indices"), weight = a.value("weight");
  const std::size_t rank = f.rank(indices);
  const bool plain = is_int(f.dtype(indices)) && is_float(f.dtype(weight)) && (mode == "sum" || mode == "mean") && a.given("offsets") == (rank == 1);
  if (!plain || rank < 1 || rank > 2) throw Exception(Code::unsupported, "this form of embedding_bag");
  if (a.given("per_sample_weights") && (mode != "sum" || f.dtype(a.value("per_sample_weights")) != f.dtype(weight) || f.shape(a.value("per_sample_weights")) != f.shape(indices)))
    throw Exception(Code::unsupported, "these weights of embedding_bag's indices");
  if (rank == 2) return {even_bags(a, mode == "mean")};
  const V offsets = a.value("offsets");
  if (f.rank(offsets) != 1 || f.dtype(offsets) != f.dtype(indices) || !(infer::range(a.graph(), f.shape(offsets)[0]).least >= 1))
    throw Exception(Code::unsupported, "these offsets of embedding_bag");
  return {bags_at(a, offsets, mode == "mean")};
}

}  // namespace

std::vector<Alias> embedding_bag_names() {
  return names({"torch.nn.functional.embedding_bag"},
               "(input -> indices, weight, offsets=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode='mean', sparse=False, "
               "per_sample_weights=None, include_last_offset=False, padding_idx=None)",
               embedding_bag);
}

}  // namespace tenon::ops
