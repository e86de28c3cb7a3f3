#include <algorithm>

#include "core/base/error.h"
#include "drafts/draft.h"

namespace tenon::codegen {
namespace {

std::size_t mix(std::size_t seed, std::size_t value) { return seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2)); }

std::size_t hash_of(const Operation& op) {
  std::size_t h = mix(static_cast<std::size_t>(op.kind) * 131 + static_cast<std::size_t>(op.primitive), static_cast<std::size_t>(op.dtype));
  h = mix(h, op.payload);
  for (OpId a : op.args) h = mix(h, a);
  return mix(h, op.offset.hash());
}

bool same(const Operation& a, const Operation& b) {
  return a.kind == b.kind && a.primitive == b.primitive && a.dtype == b.dtype && a.masked == b.masked && a.payload == b.payload &&
         std::equal(a.args, a.args + 3, b.args) && a.offset == b.offset;
}

}  // namespace

OpId OperationList::record(Operation op) {
  const std::size_t h = hash_of(op);
  auto [first, last] = by_hash_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (same(list_[it->second], op)) return it->second;
  const OpId id = static_cast<OpId>(list_.size());
  list_.push_back(std::move(op));
  by_hash_.emplace(h, id);
  return id;
}

OpId OperationList::constant(DType dtype, std::uint64_t bits) {
  return record({.kind = OperationKind::constant, .dtype = dtype, .payload = bits});
}

OpId OperationList::index(const Dim& dim) {
  if (dim.is_constant()) return constant(DType::i64, static_cast<std::uint64_t>(dim.constant()));
  return record({.kind = OperationKind::index, .dtype = DType::i64, .offset = dim});
}

OpId OperationList::load(std::uint32_t buffer, DType dtype, Dim offset, OpId mask, OpId otherwise) {
  if (is_complex(dtype)) {
    const auto element = [&](bool imaginary) {
      return load(buffer, real_type(dtype), offset * Dim(2) + Dim(imaginary), mask, mask == kNoOp ? kNoOp : part(otherwise, imaginary));
    };
    const OpId real = element(false);
    return primitive(ops::Primitive::complex, dtype, real, element(true));
  }
  Operation op{.kind = OperationKind::load, .dtype = dtype, .masked = mask != kNoOp, .payload = buffer, .offset = std::move(offset)};
  if (op.masked) op.args[0] = mask, op.args[1] = otherwise;
  return record(std::move(op));
}

OpId OperationList::checked(OpId value, const Dim& limit, std::uint64_t dimension, OpId mask) {
  Operation op{.kind = OperationKind::checked, .dtype = DType::i64, .masked = mask != kNoOp, .payload = dimension, .offset = limit};
  op.args[0] = value;
  op.args[1] = mask;
  return record(std::move(op));
}

bool OperationList::needs(OpId value, OpId wanted) const {
  std::vector<bool> seen(list_.size());
  std::vector<OpId> open{value};
  while (!open.empty()) {
    const OpId next = open.back();
    open.pop_back();
    if (next == wanted) return true;
    if (next < wanted || seen[next]) continue;  // operands come before their uses
    seen[next] = true;
    for (OpId need : needs_of(list_[next])) open.push_back(need);
  }
  return false;
}

OpId OperationList::needing(OpId check, OpId value) {
  if (needs(value, check)) return value;
  const OpId never = primitive(ops::Primitive::lt, DType::b8, check, constant(DType::i64, 0));  // a checked index is not negative
  const DType dtype = list_[value].dtype;
  return primitive(ops::Primitive::select, dtype, never, constant(dtype, is_false(value) ? 1 : 0), value);
}

OpId OperationList::reduced(std::uint32_t reduction, std::uint32_t result, DType dtype) {
  return record({.kind = OperationKind::reduced, .dtype = dtype, .payload = std::uint64_t{reduction} << 16 | result});
}

OpId OperationList::product(DType dtype) { return record({.kind = OperationKind::product, .dtype = dtype}); }
OpId OperationList::old_value(DType dtype) { return record({.kind = OperationKind::old_value, .dtype = dtype}); }

OpId OperationList::part(OpId complex, bool imaginary) {
  using P = ops::Primitive;
  const Operation op = list_[complex];
  const DType real = real_type(op.dtype);
  TENON_CHECK(is_complex(op.dtype), "a part of a value of {}", name_of(op.dtype));
  if (op.kind == OperationKind::constant) return constant(real, imaginary ? 0 : op.payload);
  TENON_CHECK(op.kind == OperationKind::primitive, "a complex value that is made of no parts");
  switch (op.primitive) {
    case P::complex: return op.args[imaginary ? 1 : 0];
    case P::select: {
      const OpId chosen = part(op.args[1], imaginary);
      return primitive(P::select, real, op.args[0], chosen, part(op.args[2], imaginary));
    }
    case P::convert:
      if (is_complex(list_[op.args[0]].dtype)) return primitive(P::convert, real, part(op.args[0], imaginary));
      return imaginary ? constant(real, 0) : primitive(P::convert, real, op.args[0]);
    default: TENON_CHECK(false, "{} of complex values has no parts", name_of(op.primitive));
  }
}

void OperationList::quieten(ops::Primitive p, OpId mask, OpId (&args)[3]) {
  using P = ops::Primitive;
  const bool divides = p == P::div || p == P::floor_div || p == P::trunc_div || p == P::remainder || p == P::fmod;
  if (!divides && (p < P::sqrt || p > P::lgamma)) return;
  for (OpId& arg : std::span(args).subspan(divides ? 1 : 0)) {
    if (arg == kNoOp || !is_float(list_[arg].dtype) || list_[arg].kind == OperationKind::constant) continue;
    const DType dtype = list_[arg].dtype;
    const OpId quiet = p == P::atanh ? constant(dtype, 0) : primitive(P::convert, dtype, constant(DType::i64, 1));
    arg = record({.kind = OperationKind::primitive, .primitive = P::select, .dtype = dtype, .masked = true, .args = {mask, arg, quiet}});
  }
}

OpId OperationList::primitive(ops::Primitive p, DType dtype, OpId a, OpId b, OpId c) {
  using P = ops::Primitive;
  if (p == P::logical_and && (is_true(a) || is_false(b))) return b;
  if (p == P::logical_and && (is_true(b) || is_false(a))) return a;
  if (p == P::logical_or && (is_true(a) || is_false(b))) return a;
  if (p == P::logical_or && (is_true(b) || is_false(a))) return b;
  if (p == P::logical_not && (is_true(a) || is_false(a))) return truth(is_false(a));
  if (p == P::select && is_true(a)) return b;
  if (p == P::select && (is_false(a) || b == c)) return c;
  if (p == P::convert && list_[a].dtype == dtype) return a;
  if (p == P::real || p == P::imag) return part(a, p == P::imag);
  Operation op{.kind = OperationKind::primitive, .primitive = p, .dtype = dtype};
  op.args[0] = a, op.args[1] = b, op.args[2] = c;
  return record(std::move(op));
}

}  // namespace tenon::codegen
