// Calls in the words of another library (torch, NumPy), bound to ops of the catalogue.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/ops/node_builder.h"

namespace tenon::ops {

enum class Flavour : std::uint8_t { torch, numpy };

struct ForeignArgument;
using ForeignList = std::vector<ForeignArgument>;

/// An argument as the importer found it: None, a tensor value, a Python number (weak), a string, a dtype, a list or tuple.
struct ForeignArgument {
  std::variant<std::monostate, ir::ValueId, bool, ir::Dim, double, std::string, DType, ForeignList> value;
};

struct ForeignCall {
  std::string_view name;  // an alias
  std::vector<ForeignArgument> positional;
  std::vector<std::pair<std::string, ForeignArgument>> keyword;
  Flavour flavour = Flavour::torch;
  DType default_float = DType::f32;  // torch.get_default_dtype()
  /// NumPy: operands that are NumPy scalars or 0-d arrays are strong; Python numbers are weak in both flavours.
};

/// Binds the arguments to the op's schema, promotes operands (with explicit casts), and makes the nodes. Returns the results.
/// Not an error of the user: an alias that is unknown, or arguments that the mapping does not cover, give `unsupported`, so that the
/// importer can make an opaque call or break the graph. What the library itself would refuse gives `invalid_argument`.
Result<std::vector<ir::ValueId>> call_foreign(NodeBuilder& builder, const ForeignCall& call);

}  // namespace tenon::ops
