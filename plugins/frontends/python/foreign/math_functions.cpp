#include "python/foreign/math_functions.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tenon::python {
namespace {

constexpr MathFunction kFunctions[] = {
    {"sqrt", "sqrt", std::sqrt},    {"exp", "exp", std::exp},       {"log", "log", std::log},       {"log2", "log2", std::log2},    {"log10", "log10", std::log10},
    {"log1p", "log1p", std::log1p}, {"expm1", "expm1", std::expm1}, {"sin", "sin", std::sin},       {"cos", "cos", std::cos},       {"tan", "tan", std::tan},
    {"asin", "asin", std::asin},    {"acos", "acos", std::acos},    {"atan", "atan", std::atan},    {"sinh", "sinh", std::sinh},    {"cosh", "cosh", std::cosh},
    {"tanh", "tanh", std::tanh},    {"asinh", "asinh", std::asinh}, {"acosh", "acosh", std::acosh}, {"atanh", "atanh", std::atanh}, {"fabs", "abs", std::fabs}};

constexpr std::string_view kBeforeTheGraph[] = {"hypot", "atan2",  "fmod", "pow",  "copysign",  "log",       "degrees", "radians", "erf",   "erfc",     "gamma",
                                                "lgamma", "cbrt", "exp2", "remainder", "nextafter", "ulp",     "isclose", "isnan", "isinf", "isfinite", "dist"};

}  // namespace

const MathFunction* math_function(std::string_view name) {
  const auto* found = std::ranges::find(kFunctions, name, &MathFunction::name);
  return found == std::end(kFunctions) ? nullptr : found;
}

bool computes_before_the_graph(std::string_view name) { return std::ranges::find(kBeforeTheGraph, name) != std::end(kBeforeTheGraph); }

}  // namespace tenon::python
