// Products in other words: einsum, tensordot, kron, cross, and sums with products. No op is declared here: the names belong to `matmul`.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "core/ops/notation/formula.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

// ---- einsum

/// An operand with one letter a dimension.
struct Labelled {
  V value;
  std::string labels;
};

class Einsum {
 public:
  explicit Einsum(ForeignArguments& a) : a_(a) {}

  V run(std::string equation, Values operands) {
    std::erase_if(equation, [](unsigned char c) { return std::isspace(c); });
    const std::size_t arrow = equation.find("->");
    const std::string inputs = equation.substr(0, arrow);
    std::vector<std::string> subscripts{""};
    for (char c : inputs) c == ',' ? void(subscripts.emplace_back()) : subscripts.back().push_back(c);
    TENON_USER_CHECK(subscripts.size() == operands.size(), "einsum(): {} operands for {} subscripts", operands.size(), subscripts.size());
    std::vector<Labelled> terms;
    for (std::size_t i = 0; i < operands.size(); ++i) terms.push_back(label(operands[i], subscripts[i]));
    std::string result = arrow == std::string::npos ? implicit(inputs) : explicit_labels(equation.substr(arrow + 2));
    for (Labelled& t : terms) t = diagonal(t);
    expand(terms);
    Labelled total = terms[0];
    for (std::size_t i = 1; i < terms.size(); ++i) {
      std::string later = result;
      for (std::size_t k = i + 1; k < terms.size(); ++k) later += terms[k].labels;
      total = product(total, terms[i], later);
    }
    total = summed(total, result);
    std::vector<std::int64_t> order;
    for (char c : result) order.push_back(position(total, c));
    return permute_by(a_.builder(), total.value, order);
  }

 private:
  static std::int64_t position(const Labelled& t, char c) {
    const std::size_t at = t.labels.find(c);
    TENON_USER_CHECK(at != std::string::npos, "einsum(): output subscript {} does not appear in the equation for any input operand", c);
    return static_cast<std::int64_t>(at);
  }

  /// The dimensions of an ellipsis are labelled from the last on: '0', '1', …
  Labelled label(V value, const std::string& subscript) {
    const std::size_t dots = subscript.find("..."), rank = a_.type(value).rank();
    std::string labels = subscript;
    if (dots != std::string::npos) {
      TENON_USER_CHECK(rank + 3 >= subscript.size(), "einsum(): the subscript {} has more dimensions than its operand ({})", subscript, rank);
      const std::size_t count = rank + 3 - subscript.size();
      if (count > 10) throw Exception(Code::unsupported, "einsum with more than ten dimensions in an ellipsis");
      std::string own;
      for (std::size_t k = count; k-- > 0;) own.push_back(static_cast<char>('0' + k));
      labels = subscript.substr(0, dots) + own + subscript.substr(dots + 3);
      ellipsis_ = std::max(ellipsis_, count);
    }
    TENON_USER_CHECK(labels.size() == rank, "einsum(): the number of subscripts in {} does not match its operand's {} dimensions", subscript, rank);
    for (char c : labels) TENON_USER_CHECK(std::isalnum(static_cast<unsigned char>(c)), "einsum(): invalid subscript {}", c);
    return {value, labels};
  }

  std::string ellipsis() const {
    std::string labels;
    for (std::size_t k = ellipsis_; k-- > 0;) labels.push_back(static_cast<char>('0' + k));
    return labels;
  }

  std::string explicit_labels(std::string result) {
    if (const std::size_t dots = result.find("..."); dots != std::string::npos) result = result.substr(0, dots) + ellipsis() + result.substr(dots + 3);
    return result;
  }

  /// Without `->`: the ellipsis, then the letters that appear once, in alphabetical order.
  std::string implicit(const std::string& inputs) {
    std::map<char, int> count;
    for (char c : inputs)
      if (std::isalpha(static_cast<unsigned char>(c))) ++count[c];
    std::string letters;
    for (const auto& [c, n] : count)
      if (n == 1) letters.push_back(c);
    return ellipsis() + letters;
  }

  /// A letter that stands twice takes the diagonal.
  Labelled diagonal(Labelled t) {
    for (std::size_t i = 0; i < t.labels.size(); ++i) {
      const std::size_t again = t.labels.find(t.labels[i], i + 1);
      if (again == std::string::npos) continue;
      const char c = t.labels[i];
      infer::require_equal(a_.graph(), a_.type(t.value).shape[i], a_.type(t.value).shape[again], "the dimensions of a letter that stands twice");
      t.value = a_.one("diagonal", {t.value}, {{"dim1", Dim(static_cast<std::int64_t>(i))}, {"dim2", Dim(static_cast<std::int64_t>(again))}, {"offset", Dim(0)}});
      t.labels.erase(again, 1);
      t.labels.erase(i, 1);
      t.labels.push_back(c);
      return diagonal(t);
    }
    return t;
  }

  /// Dimensions of size 1 take the size that another operand gives their letter.
  void expand(std::vector<Labelled>& terms) {
    std::map<char, Dim> sizes;
    for (const Labelled& t : terms)
      for (std::size_t d = 0; d < t.labels.size(); ++d) {
        const auto [known, fresh] = sizes.emplace(t.labels[d], a_.type(t.value).shape[d]);
        if (!fresh) known->second = infer::broadcast(a_.graph(), known->second, a_.type(t.value).shape[d]);
      }
    for (Labelled& t : terms) {
      Shape shape;
      for (char c : t.labels) shape.push_back(sizes.at(c));
      t.value = expand_to(a_.builder(), t.value, shape);
    }
  }

  Labelled summed(const Labelled& t, const std::string& kept) {
    std::vector<Dim> dims;
    std::string labels;
    for (std::size_t d = 0; d < t.labels.size(); ++d) {
      if (kept.find(t.labels[d]) == std::string::npos) dims.emplace_back(static_cast<std::int64_t>(d));
      else labels.push_back(t.labels[d]);
    }
    if (dims.empty()) return t;
    return {a_.one("sum", {t.value}, {{"dim", dims}, {"dtype", a_.type(t.value).dtype}, {"keepdim", false}}), labels};
  }

  /// As [batch, rows, k] times [batch, k, columns].
  Labelled product(Labelled x, Labelled y, const std::string& later) {
    x = summed(x, later + y.labels);
    y = summed(y, later + x.labels);
    std::string batch, rows, inner, columns;
    for (char c : x.labels) {
      const bool shared = y.labels.find(c) != std::string::npos;
      (!shared ? rows : later.find(c) != std::string::npos ? batch : inner).push_back(c);
    }
    for (char c : y.labels)
      if (x.labels.find(c) == std::string::npos) columns.push_back(c);
    const V left = grouped(x, {batch, rows, inner}), right = grouped(y, {batch, inner, columns});
    Shape shape;
    for (char c : batch + rows) shape.push_back(a_.type(x.value).shape[static_cast<std::size_t>(position(x, c))]);
    for (char c : columns) shape.push_back(a_.type(y.value).shape[static_cast<std::size_t>(position(y, c))]);
    return {reshape_to(a_.builder(), a_.one("bmm", {left, right}), shape), batch + rows + columns};
  }

  V grouped(const Labelled& t, std::initializer_list<std::string> groups) {
    std::vector<std::int64_t> order;
    Shape shape;
    for (const std::string& group : groups) {
      Dim size(1);
      for (char c : group) {
        order.push_back(position(t, c));
        size = size * a_.type(t.value).shape[static_cast<std::size_t>(order.back())];
      }
      shape.push_back(size);
    }
    return reshape_to(a_.builder(), permute_by(a_.builder(), t.value, order), shape);
  }

  ForeignArguments& a_;
  std::size_t ellipsis_ = 0;
};

Values einsum(ForeignArguments& a) {
  const std::string* equation = a["equation"].as<std::string>();
  if (!equation) throw Exception(Code::unsupported, "einsum with lists of subscripts");
  Values operands;
  const ForeignList* list = a["operands"].as<ForeignList>();
  TENON_USER_CHECK(list && !list->empty(), "einsum(): must provide at least one operand");
  if (list->size() == 1 && (*list)[0].as<ForeignList>()) list = (*list)[0].as<ForeignList>();
  for (const ForeignArgument& x : *list) operands.push_back(a.tensor(a.to_value(x)));
  if (a.numpy()) a.promote(operands, Promotion::common);
  for (V v : operands)
    if (a.type(v).dtype != a.type(operands[0]).dtype || is_bool(a.type(v).dtype)) throw Exception(Code::unsupported, "einsum of these dtypes");
  return {Einsum(a).run(*equation, operands)};
}

// ---- tensordot, kron

std::vector<std::int64_t> dims_list(ForeignArguments& a, const ForeignArgument& x, std::size_t rank) {
  std::vector<std::int64_t> dims;
  const auto add = [&](const ForeignArgument& e) {
    const Dim* d = e.as<Dim>();
    if (!d || !d->is_constant()) throw Exception(Code::unsupported, "tensordot over these dimensions");
    dims.push_back(infer::wrap_dim(d->constant(), rank));
  };
  if (const ForeignList* list = x.as<ForeignList>())
    for (const ForeignArgument& e : *list) add(e);
  else add(x);
  (void)a;
  return dims;
}

/// Dimensions of x against dimensions of y; the rest stays, x's first.
Values tensordot(ForeignArguments& a) {
  Values xy{a.tensor(a.value("self")), a.tensor(a.value("other"))};
  if (a.numpy()) a.promote(xy, Promotion::common);
  const std::size_t ranks[] = {a.type(xy[0]).rank(), a.type(xy[1]).rank()};
  std::vector<std::int64_t> left, right;
  if (const Dim* count = a["dims"].as<Dim>(); count && count->is_constant()) {
    for (std::int64_t d = 0; d < count->constant(); ++d) {
      left.push_back(static_cast<std::int64_t>(ranks[0]) - count->constant() + d);
      right.push_back(d);
    }
  } else {
    const ForeignList* both = a["dims"].as<ForeignList>();
    if (!both || both->size() != 2) throw Exception(Code::unsupported, "tensordot over these dimensions");
    left = dims_list(a, (*both)[0], ranks[0]);
    right = dims_list(a, (*both)[1], ranks[1]);
  }
  TENON_USER_CHECK(left.size() == right.size(), "both dimension lists should have same length");
  if (a.numpy() && left.size() == ranks[0] && right.size() == ranks[1]) throw Exception(Code::unsupported, "tensordot over all dimensions: NumPy gives an array");
  std::string x(ranks[0], ' '), y(ranks[1], ' '), result;
  char next = 'A';
  if (ranks[0] + ranks[1] > 26) throw Exception(Code::unsupported, "tensordot of so many dimensions");
  const auto size = [&](std::size_t operand, std::int64_t dim) { return a.type(xy[operand]).shape.at(static_cast<std::size_t>(dim)); };
  for (std::size_t k = 0; a.numpy() && k < left.size(); ++k)  // torch repeats what has one element
    infer::require_equal(a.graph(), size(0, left[k]), size(1, right[k]), "the contracted dimensions");
  for (std::size_t k = 0; k < left.size(); ++k) x.at(static_cast<std::size_t>(left[k])) = y.at(static_cast<std::size_t>(right[k])) = next++;
  for (std::string* s : {&x, &y})
    for (char& c : *s)
      if (c == ' ') result.push_back(c = next++);
  return {Einsum(a).run(x + "," + y + "->" + result, xy)};
}

/// Blocks of y, each times an element of x.
Values kron(ForeignArguments& a) {
  V x = a.tensor(a.value("self")), y = a.tensor(a.value("other"));
  Shape xs = a.type(x).shape, ys = a.type(y).shape;
  while (xs.size() < ys.size()) xs.insert(xs.begin(), Dim(1));
  while (ys.size() < xs.size()) ys.insert(ys.begin(), Dim(1));
  Shape outer, inner, joined;
  for (std::size_t d = 0; d < xs.size(); ++d) {
    outer.insert(outer.end(), {xs[d], Dim(1)});
    inner.insert(inner.end(), {Dim(1), ys[d]});
    joined.push_back(xs[d] * ys[d]);
  }
  return {reshape_to(a.builder(), a.one("mul", {reshape_to(a.builder(), x, outer), reshape_to(a.builder(), y, inner)}), joined)};
}

// ---- cross, distances

V rolled(ForeignArguments& a, V x, std::int64_t dim, std::int64_t shift) {
  return a.one("roll", {x}, {{"dims", std::vector<Dim>{Dim(dim)}}, {"shifts", std::vector<Dim>{Dim(shift)}}});
}

Values cross(ForeignArguments& a) {
  Formula f(a);
  Values xy{a.value("self"), a.value("other")};
  a.promote(xy, Promotion::common);
  if (is_bool(f.dtype(xy[0]))) throw Exception(Code::unsupported, "the cross product of bools");
  TENON_USER_CHECK(f.rank(xy[0]) == f.rank(xy[1]), "linalg.cross: inputs must have the same number of dimensions.");
  const Shape shape = infer::broadcast(a.graph(), f.shape(xy[0]), f.shape(xy[1]));
  if (!a.given("dim")) throw Exception(Code::unsupported, "cross without dim, of which torch warns");
  TENON_USER_CHECK(!shape.empty(), "linalg.cross: inputs must have at least one dimension");
  const std::int64_t dim = a.dim("dim", shape.size());
  TENON_USER_CHECK(shape[static_cast<std::size_t>(dim)] == Dim(3), "linalg.cross: inputs dimension {} must have length 3", dim);
  for (V& v : xy) v = expand_to(a.builder(), v, shape);
  return {f.sub(f.mul(rolled(a, xy[0], dim, -1), rolled(a, xy[1], dim, -2)), f.mul(rolled(a, xy[0], dim, -2), rolled(a, xy[1], dim, -1)))};
}

/// Whether torch computes the distances of so many rows by a product of matrices, as far as that is known: it differentiates that as often as one likes.
bool by_products(ForeignArguments& a, const Dim& rows, const Dim& others) {
  const std::string mode = a.text("compute_mode", "use_mm_for_euclid_dist_if_necessary");
  const auto few = [](const Dim& d) { return d.is_constant() && d.constant() <= 25; };
  return a.number("p", 2) == 2 && (mode == "use_mm_for_euclid_dist" || (mode == "use_mm_for_euclid_dist_if_necessary" && !(few(rows) && few(others))));
}

/// The lengths of vectors in the last dimension. All derivatives at one without length are 0, as torch has it where it computes these by products.
V lengths_with_flat_zeros(Formula& f, V d) {
  const V squares = f.sum(f.mul(d, d), {Dim(static_cast<std::int64_t>(f.rank(d)) - 1)});
  const V is_zero = f.two("eq", squares, f.number(0));
  return f.where(is_zero, f.mul(squares, f.number(0)), f.one("sqrt", f.where(is_zero, f.add(squares, f.number(1)), squares)));
}

/// The distances of all rows of x1 from all rows of x2.
Values cdist(ForeignArguments& a) {
  Formula f(a);
  V x = a.value("x1"), y = a.value("x2");
  TENON_USER_CHECK(f.rank(x) >= 2 && f.rank(y) >= 2, "cdist only supports at least 2D tensors");
  if (!is_float(f.dtype(x)) || f.dtype(x) != f.dtype(y)) throw Exception(Code::unsupported, "cdist of these dtypes");
  Shape xs = f.shape(x), ys = f.shape(y);
  xs.insert(xs.end() - 1, Dim(1));
  ys.insert(ys.end() - 2, Dim(1));
  V d = f.sub(reshape_to(a.builder(), x, xs), reshape_to(a.builder(), y, ys));
  if (by_products(a, xs.end()[-3], ys.end()[-2])) return {lengths_with_flat_zeros(f, d)};
  d = a.one("differentiated_once", {d}, {{"message", std::string("the derivative for '_cdist_backward' is not implemented.")}});
  return {a.one("linalg_vector_norm", {d}, {{"dim", std::vector<Dim>{Dim(static_cast<std::int64_t>(f.rank(d)) - 1)}}, {"keepdim", false}, {"ord", a.number("p", 2)}})};
}

// ---- sums with products

/// beta * self + alpha * product; with beta 0 self does not count, not even its nan.
Values plus_product(ForeignArguments& a, V product) {
  Formula f(a);
  const DType t = f.dtype(product);
  const auto scaled = [&](V x, std::string_view name) {
    const double n = a.number(name, 1);
    if (n == 1) return x;
    TENON_USER_CHECK(is_float(t) || std::abs(n) < 0x1p63, "value cannot be converted to type int64_t without overflow");
    return f.mul(x, is_float(t) ? f.number(n) : f.integer(static_cast<std::int64_t>(n)));
  };
  product = scaled(product, "alpha");
  if (a.number("beta", 1) == 0) return {product};
  return {f.add(expand_to(a.builder(), scaled(a.value("self"), "beta"), f.shape(product)), product)};
}

void require_one_dtype(ForeignArguments& a, std::initializer_list<std::string_view> parameters) {
  const DType t = a.type(a.value("self")).dtype;
  for (std::string_view p : parameters)
    if (a.type(a.value(p)).dtype != t || is_bool(t)) throw Exception(Code::unsupported, "a product of these dtypes");
}

Values addmv(ForeignArguments& a) {
  require_one_dtype(a, {"mat", "vec"});
  TENON_USER_CHECK(a.type(a.value("mat")).rank() == 2 && a.type(a.value("vec")).rank() == 1, "vector + matrix @ vector expected");
  return plus_product(a, a.one("matmul", {a.value("mat"), a.value("vec")}));
}

Values addr(ForeignArguments& a) {
  require_one_dtype(a, {"vec1", "vec2"});
  for (const char* scale : {"alpha", "beta"}) TENON_USER_CHECK(!a[scale].as<bool>(), "Boolean {} only supported for Boolean results.", scale);
  TENON_USER_CHECK(a.type(a.value("vec1")).rank() == 1 && a.type(a.value("vec2")).rank() == 1, "addr: Expected 1-D argument vec1 and vec2");
  const V column = reshape_to(a.builder(), a.value("vec1"), {Dim(-1), Dim(1)}), row = reshape_to(a.builder(), a.value("vec2"), {Dim(1), Dim(-1)});
  return plus_product(a, a.one("mul", {column, row}));
}

Values addbmm(ForeignArguments& a) {
  Formula f(a);
  for (const char* scale : {"alpha", "beta"})
    if (!std::isfinite(a.number(scale, 1))) throw Exception(error(Code::unsupported, "an infinite {}, by which torch multiplies each product of the batch", scale));
  require_one_dtype(a, {"batch1", "batch2"});
  return plus_product(a, f.sum(a.one("bmm", {a.value("batch1"), a.value("batch2")}), {Dim(0)}));
}

Values multi_dot(ForeignArguments& a) {
  const Values all = a.values("tensors");
  TENON_USER_CHECK(all.size() >= 2, "multi_dot(): expected at least 2 tensors but got {}", all.size());
  V x = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) x = a.one("matmul", {x, all[i]});
  return {x};
}

/// The products of x1 and x2 over all pairs of places, weighted for every output.
Values bilinear(ForeignArguments& a) {
  Formula f(a);
  const V x1 = a.value("input1"), x2 = a.value("input2"), weight = a.value("weight");
  if (f.rank(x1) == 0 || f.rank(x1) != f.rank(x2) || is_bool(f.dtype(x1))) throw Exception(Code::unsupported, "bilinear of these operands");
  V y = Einsum(a).run("...i,oij,...j->...o", {x1, weight, x2});
  if (a.given("bias")) y = f.add(y, a.value("bias"));
  return {y};
}

Values vecdot(ForeignArguments& a) {
  Formula f(a);
  Values xy{a.value("self"), a.value("other")};
  if (f.dtype(xy[0]) != f.dtype(xy[1]) || is_bool(f.dtype(xy[0]))) throw Exception(Code::unsupported, "vecdot of these dtypes");
  const V product = f.mul(xy[0], xy[1]);
  const DType t = f.dtype(product);
  return {f.cast(f.sum(product, {Dim(infer::wrap_dim(a.integer("dim", Dim(-1)).constant(), f.rank(product)))}), t)};
}

}  // namespace

std::vector<Alias> product_names() {
  const std::string two = "(self, other, *, out=None)";
  return names({"torch.einsum"}, "(equation, *operands)", einsum) +
         names({"numpy.einsum"}, "(subscripts -> equation, *operands, out=None, dtype=None, order='K', casting='safe', optimize=False)", einsum) +
         names({"torch.tensordot"}, "(a -> self, b -> other, dims=2, out=None)", tensordot) +
         names({"numpy.linalg.tensordot"}, "(x1 -> self, x2 -> other, *, axes -> dims = 2)", tensordot) +
         names({"numpy.tensordot"}, "(a -> self, b -> other, axes -> dims = 2)", tensordot) + torch_names("kron", two, kron) +
         names({"numpy.kron"}, "(a -> self, b -> other)", kron) + torch_names("cross", "(self, other, dim=None)", cross) +
         names({"torch.linalg.cross"}, "(self, other, *, dim=-1, out=None)", cross) +
         names({"torch.linalg.vecdot"}, "(x -> self, y -> other, *, dim=-1, out=None)", vecdot) +
         names({"torch.cdist"}, "(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')", cdist) +
         torch_names("addmv", "(self, mat, vec, *, beta=1, alpha=1, out=None)", addmv) +
         torch_names("addr", "(self, vec1, vec2, *, beta=1, alpha=1, out=None)", addr) +
         torch_names("addbmm", "(self, batch1, batch2, *, beta=1, alpha=1, out=None)", addbmm) +
         names({"torch.linalg.multi_dot"}, "(tensors, *, out=None)", multi_dot) +
         names({"torch.bilinear"}, "(input1, input2, weight, bias=None)", bilinear);
}

}  // namespace tenon::ops
