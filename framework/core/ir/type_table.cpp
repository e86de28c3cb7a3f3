#include "core/ir/type_table.h"

#include <algorithm>

#include "core/base/hash.h"

namespace tenon::ir {
namespace {

/// Constants are hashed and compared here: calls of Dim's own functions would be half of the work.
std::uint64_t hash_of(std::uint64_t h, const Shape& shape) {
  for (const Dim& d : shape) h = mix(h, d.is_constant() ? static_cast<std::uint64_t>(d.offset()) : d.hash());
  return h;
}

bool same_shape(const Shape& a, const Shape& b) {
  const auto same_dim = [](const Dim& x, const Dim& y) { return x.is_constant() && y.is_constant() ? x.offset() == y.offset() : x == y; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_dim);
}

}  // namespace

std::uint64_t hash_of(const Type& t) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(t.kind) << 8 | static_cast<std::uint64_t>(t.dtype), t.device.kind);
  h = hash_of(mix(h, static_cast<std::uint64_t>(t.device.index)), t.shape);
  return t.strides ? hash_of(mix(h, 1), *t.strides) : h;
}

bool same_type(const Type& a, const Type& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.device == b.device && same_shape(a.shape, b.shape) && a.strides.has_value() == b.strides.has_value() &&
         (!a.strides || same_shape(*a.strides, *b.strides));
}

TypeId TypeTable::intern(Type type) {
  return TypeId(ids_.find_or_make(hash_of(type), [&](std::uint32_t id) { return same_type(*types_[id], type); }, [&] {
    types_.push_back(std::make_shared<const Type>(std::move(type)));
    return static_cast<std::uint32_t>(types_.size() - 1);
  }));
}

}  // namespace tenon::ir
