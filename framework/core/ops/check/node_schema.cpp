#include "core/ops/check/node_schema.h"

#include <algorithm>

#include "core/ops/catalog.h"
#include "core/ops/foreign/foreign_signature.h"

namespace tenon::ops {
namespace {

/// The kinds of attribute that a word of the schema language stands for, as bits by ir::Attribute's index.
unsigned kinds_of(std::string_view type) {
  constexpr auto bit = [](std::size_t index) { return 1u << index; };
  constexpr unsigned kBool = bit(1), kInteger = bit(2), kFloat = bit(3), kText = bit(4), kDType = bit(5), kIntegers = bit(6), kFloats = bit(7);
  if (type == "bool") return kBool;
  if (type == "int") return kInteger;
  if (type == "int[]") return kInteger | kIntegers;
  if (type == "float" || type == "Scalar") return kBool | kInteger | kFloat;
  if (type == "float[]") return kFloats;
  if (type == "str") return kText;
  TENON_CHECK(type == "ScalarType", "'{}' is no type of an attribute", type);
  return kDType;
}

}  // namespace

NodeSchema::NodeSchema(const Op& op) {
  for (SchemaParameter& p : parse_schema(op.schema)) {
    if (!p.is_operand()) {
      attributes.push_back({p.name, p.type, kinds_of(p.type), !p.optional && !p.otherwise});
      continue;
    }
    const bool list = p.type.ends_with("[]");
    least += !list && !p.optional;
    most = list || most == SIZE_MAX ? SIZE_MAX : most + 1;
  }
}

const NodeSchema::Attribute* NodeSchema::find(ir::Name name) const {
  const auto found = std::ranges::find(attributes, name, &Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

const NodeSchema& schema_of(const Op& op) {
  static const auto* all = [] {
    auto* made = new std::vector<NodeSchema>;  // lives for ever, as the catalogue does
    for (const Op& each : all_ops()) made->emplace_back(each);
    return made;
  }();
  return (*all)[static_cast<std::size_t>(&op - all_ops().data())];
}

}  // namespace tenon::ops
