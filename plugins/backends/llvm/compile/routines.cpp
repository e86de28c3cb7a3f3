#include "routines.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>

#include "isa/library_functions.h"
#include "machine.h"

namespace tenon::llvm_backend {
namespace {

using P = ops::Primitive;

template <class T, T (*F)(T)>
void each(T* result, const T* x, const T*, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) result[i] = F(x[i]);
}

template <class T, T (*F)(T, T)>
void each_pair(T* result, const T* x, const T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) result[i] = F(x[i], y[i]);
}

template <class F>
void* address(F f) { return reinterpret_cast<void*>(f); }

using Table = std::map<std::string, void*>;

#define TENON_UNARY(primitive, f32, f64)                                                \
  table[routine_name(P::primitive, false)] = address(&each<float, f32>);  \
  table[routine_name(P::primitive, true)] = address(&each<double, f64>);
#define TENON_BINARY(primitive, f32, f64)                                                    \
  table[routine_name(P::primitive, false)] = address(&each_pair<float, f32>);  \
  table[routine_name(P::primitive, true)] = address(&each_pair<double, f64>);

void add_elementwise(Table& table) {
  TENON_UNARY(exp, expf, ::exp) TENON_UNARY(exp2, exp2f, ::exp2) TENON_UNARY(expm1, expm1f, ::expm1)
  TENON_UNARY(log, logf, ::log) TENON_UNARY(log2, log2f, ::log2) TENON_UNARY(log10, log10f, ::log10) TENON_UNARY(log1p, log1pf, ::log1p)
  TENON_UNARY(sin, sinf, ::sin) TENON_UNARY(cos, cosf, ::cos) TENON_UNARY(tan, tanf, ::tan)
  TENON_UNARY(asin, asinf, ::asin) TENON_UNARY(acos, acosf, ::acos) TENON_UNARY(atan, atanf, ::atan)
  TENON_UNARY(sinh, sinhf, ::sinh) TENON_UNARY(cosh, coshf, ::cosh) TENON_UNARY(tanh, tanhf, ::tanh)
  TENON_UNARY(asinh, asinhf, ::asinh) TENON_UNARY(acosh, acoshf, ::acosh) TENON_UNARY(atanh, atanhf, ::atanh)
  TENON_UNARY(erf, erff, ::erf) TENON_UNARY(erfc, erfcf, ::erfc) TENON_UNARY(lgamma, lgammaf, ::lgamma)
  TENON_BINARY(pow, powf, ::pow) TENON_BINARY(atan2, atan2f, ::atan2) TENON_BINARY(fmod, fmodf, ::fmod)
}

/// What LLVM's code generator calls by itself where the machine has no instruction.
void add_support(Table& table) {
  table["memcpy"] = address(&std::memcpy);
  table["memset"] = address(&std::memset);
  table["memmove"] = address(&std::memmove);
  table["floor"] = address(static_cast<double (*)(double)>(&::floor));
  table["floorf"] = address(&floorf);
  table["ceil"] = address(static_cast<double (*)(double)>(&::ceil));
  table["ceilf"] = address(&ceilf);
  table["trunc"] = address(static_cast<double (*)(double)>(&::trunc));
  table["truncf"] = address(&truncf);
  table["roundeven"] = address(static_cast<double (*)(double)>(&::nearbyint));
  table["roundevenf"] = address(&nearbyintf);
}

const Table& routines() {
  static const Table all = [] {
    Table table;
    add_elementwise(table);
    add_support(table);
    return table;
  }();
  return all;
}

}  // namespace

void* routine_address(const std::string& name) {
  if (name.rfind("_ZGV", 0) == 0) return vector_function(name.c_str());
  auto found = routines().find(name);
  return found == routines().end() ? nullptr : found->second;
}

}  // namespace tenon::llvm_backend
