// What may be a name in a graph and its text form.
#pragma once

#include <string>
#include <string_view>

namespace tenon::ir {

/// [A-Za-z_][A-Za-z0-9_.]*: names of values, symbols, constants, attributes.
bool is_name(std::string_view text);

/// A name, or several joined by "::" ("vendor::op").
bool is_op_name(std::string_view text);

/// Words that the text form uses in places where a symbol may stand (dtypes, "true", "inf", "min", …): no symbol may be called so.
bool is_reserved(std::string_view text);

/// The nearest name: other characters become '_'.
std::string as_name(std::string_view wish);

}  // namespace tenon::ir
