#include "core/ops/op.h"

#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

template <class T>
const T* attribute_as(const OpQuery& query, std::string_view name, const char* kind) {
  const ir::Attribute* a = query.find(name);
  if (!a) return nullptr;
  const T* value = std::get_if<T>(a);
  TENON_USER_CHECK(value, "attribute '{}' must be {}", name, kind);
  return value;
}

template <class T>
T value_or(const T* value, const std::optional<T>& otherwise, std::string_view name) {
  TENON_USER_CHECK(value || otherwise, "attribute '{}' is missing", name);
  return value ? *value : *otherwise;
}

}  // namespace

const ir::Literal* OpQuery::literal(std::size_t operand) const {
  const ir::Value& v = graph_.value(operands_[operand]);
  return v.kind == ir::ValueKind::literal ? &v.literal : nullptr;
}

const ir::Attribute* OpQuery::find(std::string_view name) const {
  for (const ir::NamedAttribute& a : attributes_)
    if (a.name == name) return a.value.index() == 0 ? nullptr : &a.value;
  return nullptr;
}

ir::Dim OpQuery::integer(std::string_view name, std::optional<ir::Dim> otherwise) const {
  return value_or(attribute_as<ir::Dim>(*this, name, "an integer"), otherwise, name);
}

std::int64_t OpQuery::constant_integer(std::string_view name, std::optional<std::int64_t> otherwise) const {
  const ir::Dim value = integer(name, otherwise ? std::optional<ir::Dim>(*otherwise) : std::nullopt);
  if (!value.is_constant()) ask::constant(value);
  TENON_USER_CHECK(value.is_constant(), "attribute '{}' must be a constant", name);
  return value.constant();
}

std::vector<ir::Dim> OpQuery::integers(std::string_view name) const {
  if (const ir::Attribute* a = find(name))
    if (const ir::Dim* single = std::get_if<ir::Dim>(a)) return {*single};
  return value_or(attribute_as<std::vector<ir::Dim>>(*this, name, "a list of integers"), {}, name);
}

bool OpQuery::flag(std::string_view name, bool otherwise) const {
  return value_or(attribute_as<bool>(*this, name, "true or false"), std::optional<bool>(otherwise), name);
}

double OpQuery::number(std::string_view name, std::optional<double> otherwise) const {
  if (const ir::Attribute* a = find(name)) {
    if (const bool* flag = std::get_if<bool>(a)) return *flag;
    if (std::get_if<ir::Dim>(a)) return static_cast<double>(constant_integer(name));
  }
  return value_or(attribute_as<double>(*this, name, "a number"), otherwise, name);
}

DType OpQuery::dtype(std::string_view name, std::optional<DType> otherwise) const {
  return value_or(attribute_as<DType>(*this, name, "a dtype"), otherwise, name);
}

std::optional<ir::Device> OpQuery::device(std::string_view name) const {
  const std::string* text = attribute_as<std::string>(*this, name, "the name of a device");
  if (!text) return std::nullopt;
  const ir::Device device = ir::device_named(*text);
  TENON_USER_CHECK(ir::device_text(device) == *text, "attribute '{}' is '{}'; write '{}'", name, *text, ir::device_text(device));
  return device;
}

std::string OpQuery::text(std::string_view name, std::optional<std::string> otherwise) const {
  return value_or(attribute_as<std::string>(*this, name, "a string"), otherwise, name);
}

}  // namespace tenon::ops
