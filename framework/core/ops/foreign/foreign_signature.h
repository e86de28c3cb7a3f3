// The signatures of ops (ATen's schema language) and of their aliases (Python's), parsed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/foreign/foreign_call.h"

namespace tenon::ops {

/// A parameter of an op's schema: "int[]? dim=None".
struct SchemaParameter {
  std::string type;  // without the question mark: "Tensor", "Tensor[]", "int", "int[]", "bool", "float", "Scalar", "ScalarType", "str"
  std::string name;
  bool optional = false;
  bool keyword_only = false;
  std::optional<ForeignArgument> otherwise;
  bool is_operand() const { return type.starts_with("Tensor"); }
};

/// A parameter of a foreign signature: "axis -> dim = None", "*sizes".
struct ForeignParameter {
  std::string name;
  std::string target;  // the parameter of the op's schema
  bool variadic = false;
  bool keyword_only = false;
  std::optional<ForeignArgument> otherwise;
  bool may_be_left_out = false;  // "dim=...": nothing says so; None is no argument
};

std::vector<SchemaParameter> parse_schema(std::string_view schema);
/// An empty signature is the schema's own.
std::vector<ForeignParameter> parse_signature(std::string_view signature, std::string_view schema);

}  // namespace tenon::ops
