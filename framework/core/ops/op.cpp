#include "core/ops/op.h"

namespace tenon::ops {
namespace {

template <class T>
const T& attribute_as(const OpQuery& query, std::string_view name, const char* kind) {
  const ir::Attribute* a = query.find(name);
  TENON_CHECK(a, "attribute '{}' is missing", name);
  const T* value = std::get_if<T>(a);
  TENON_CHECK(value, "attribute '{}' is no {}", name, kind);
  return *value;
}

}  // namespace

const ir::Literal* OpQuery::literal(std::size_t operand) const {
  const ir::Value& v = graph_.value(operands_[operand]);
  return v.kind == ir::ValueKind::literal ? &v.literal : nullptr;
}

const ir::Attribute* OpQuery::find(std::string_view name) const {
  for (const ir::NamedAttribute& a : attributes_)
    if (a.name == name) return &a.value;
  return nullptr;
}

ir::Dim OpQuery::integer(std::string_view name) const { return attribute_as<ir::Dim>(*this, name, "integer"); }

std::int64_t OpQuery::constant_integer(std::string_view name) const { return integer(name).constant(); }

std::vector<ir::Dim> OpQuery::integers(std::string_view name) const {
  return attribute_as<std::vector<ir::Dim>>(*this, name, "list of integers");
}

bool OpQuery::flag(std::string_view name, bool otherwise) const {
  return find(name) ? attribute_as<bool>(*this, name, "bool") : otherwise;
}

double OpQuery::number(std::string_view name) const {
  const ir::Attribute* a = find(name);
  if (a)
    if (const ir::Dim* d = std::get_if<ir::Dim>(a)) return static_cast<double>(d->constant());
  return attribute_as<double>(*this, name, "number");
}

DType OpQuery::dtype(std::string_view name) const { return attribute_as<DType>(*this, name, "dtype"); }

std::string OpQuery::text(std::string_view name) const { return attribute_as<std::string>(*this, name, "string"); }

}  // namespace tenon::ops
