// Compile-time parameters of a node.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/base/dtype.h"
#include "core/ir/dim.h"
#include "core/ir/name.h"

namespace tenon::ir {

/// The value of an attribute. Integers and lists of integers are symbolic; a plain constant is the simple case.
/// `std::monostate` is None: given, and absent on purpose.
using Attribute = std::variant<std::monostate, bool, Dim, double, std::string, DType, std::vector<Dim>, std::vector<double>>;

struct NamedAttribute {
  Name name;
  Attribute value;
  friend bool operator==(const NamedAttribute&, const NamedAttribute&) = default;
};

/// Attributes of a node, sorted by name.
using Attributes = std::vector<NamedAttribute>;

}  // namespace tenon::ir
