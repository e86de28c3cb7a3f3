#include "core/ops/notation/masked_write.h"

#include "core/ops/notation/formula.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// The rows of `value` in order at the true places of the mask. Its index leaves the range everywhere unless there are as many rows as
/// true places: the check of indices then fails the call.
ir::ValueId rows_at(ForeignArguments& a, ir::ValueId mask, ir::ValueId value) {
  Formula f(a);
  const Shape places = f.shape(mask);
  const Dim size = ir::product(places), rows = f.shape(value)[0];
  const ir::ValueId flat = reshape_to(a.builder(), mask, {size});
  const ir::ValueId upto = a.one("cumsum", {flat}, {{"dim", Dim(0)}, {"dtype", DType::i64}});
  const ir::ValueId count = select_of(a.builder(), upto, 0, Dim(-1));
  const ir::ValueId outside = f.mul(f.cast(a.one("ne", {count, a.builder().literal(rows)}), DType::i64), a.builder().literal(rows));
  const ir::ValueId place = a.one("clamp_min", {f.sub(upto, f.integer(1)), f.integer(0)});
  const ir::ValueId taken = a.one("index_select", {value, f.add(place, outside)}, {{"dim", Dim(0)}});
  Shape shape = places;
  const Shape rest = f.shape(value);
  shape.insert(shape.end(), rest.begin() + 1, rest.end());
  return reshape_to(a.builder(), taken, shape);
}

/// Whether `shape` is known to broadcast to the dimensions of `self` from `from` on.
bool fits(const Shape& shape, const Shape& self, std::size_t from) {
  if (shape.size() > self.size() - from) return false;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!(shape[d] == Dim(1)) && !(shape[d] == self[self.size() - shape.size() + d])) return false;
  return true;
}

}  // namespace

std::optional<ir::ValueId> masked_write(ForeignArguments& a, ir::ValueId self, ir::ValueId mask, std::size_t at, ir::ValueId value, bool accumulate) {
  Formula f(a);
  const Shape shape = f.shape(self), places = f.shape(mask);
  TENON_USER_CHECK(at + places.size() <= shape.size(), "too many indices for tensor of dimension {}", shape.size());
  for (std::size_t d = 0; d < places.size(); ++d)
    infer::require_equal(a.graph(), places[d], shape[at + d], fmt::format("sizes of the mask and of the indexed tensor at dimension {}", d));
  const std::size_t after = at + places.size(), rest = shape.size() - after;
  Shape own = f.shape(value);
  while (own.size() > rest && own[0] == Dim(1)) own.erase(own.begin());
  value = reshape_to(a.builder(), value, own);
  if (places.empty() && own.size() > rest) return std::nullopt;  // a row for each of the one place or none
  if (own.size() == rest + 1) {
    const Dim size = ir::product(places);
    if (at > 0 || !own[0].is_constant() || own[0] == Dim(0) || !size.is_constant() || size == Dim(0)) return std::nullopt;
    if (!fits(Shape(own.begin() + 1, own.end()), shape, after)) return std::nullopt;
    value = rows_at(a, mask, value);
  } else if (!fits(own, shape, after)) {
    return std::nullopt;
  }
  Shape wide = places;
  wide.resize(places.size() + rest, Dim(1));
  if (accumulate) value = a.builder().cast(f.add(self, value), f.dtype(self));
  return f.where(reshape_to(a.builder(), mask, wide), value, self);
}

}  // namespace tenon::ops
