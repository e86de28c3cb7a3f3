#include "drafts/value_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::codegen {
namespace {

using P = ops::Primitive;

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr int kMostLookedAt = 400;
constexpr double kLargestWhole = 0x1p53;  // no size of memory is larger, and float64 holds it
constexpr std::int64_t kLargerThanMemory = std::int64_t{1} << 62;

/// Follows a value to what it is made of. Where a magnitude is known, no part of the value is infinite or NaN.
class ValueRange {
 public:
  ValueRange(const OperationList& operations, const IndexAlgebra& algebra) : operations_(operations), algebra_(algebra) {}

  /// At most `size` - 1.
  bool is_below(OpId id, const Dim& size) {
    if (--left_ < 0) return false;
    const Operation& op = operations_[id];
    const auto below = [&](int argument) { return is_below(op.args[argument], size); };
    switch (op.kind) {
      case OperationKind::constant: return is_constant_below(op, size);
      case OperationKind::index: return (size.is_constant() && size.constant() >= kLargerThanMemory) || algebra_.always_less(op.offset, size);
      case OperationKind::checked: return algebra_.always_less_equal(op.offset, size);
      case OperationKind::primitive: break;
      default: return false;
    }
    switch (op.primitive) {
      case P::minimum: return below(0) || below(1);
      case P::maximum: return below(0) && below(1);
      case P::select: return below(1) && below(2);
      case P::floor: case P::ceil: case P::trunc: case P::round: return below(0);
      case P::sub: return is_float(op.dtype) && below(0) && is_not_negative(op.args[1]);
      case P::convert: return holds_whole(op.dtype, size) && below(0);
      default: return false;
    }
  }

  bool is_not_negative(OpId id) {
    if (--left_ < 0) return false;
    const Operation& op = operations_[id];
    const auto positive = [&](int argument) { return is_not_negative(op.args[argument]); };
    switch (op.kind) {
      case OperationKind::constant: return number_of(op) >= 0;
      case OperationKind::index: return algebra_.always_less_equal(Dim(0), op.offset);
      case OperationKind::checked: return true;
      case OperationKind::primitive: break;
      default: return false;
    }
    switch (op.primitive) {
      case P::minimum: return positive(0) && positive(1);
      case P::maximum: return positive(0) || positive(1);
      case P::select: return positive(1) && positive(2);
      case P::floor: case P::ceil: case P::trunc: case P::round: return positive(0);
      case P::mul: return is_float(op.dtype) && positive(0) && positive(1);
      case P::add: return positive(0) && positive(1) && (is_float(op.dtype) || (is_below(op.args[0], Dim(kLargerThanMemory)) && is_below(op.args[1], Dim(kLargerThanMemory))));
      case P::convert: return (is_float(op.dtype) || op.dtype == DType::i64) && positive(0) && (!is_float(operations_[op.args[0]].dtype) || magnitude(op.args[0]) <= kLargestWhole);
      default: return false;
    }
  }

  /// A bound of the absolute value; kUnknown where there is none, or the dtype may overflow.
  double magnitude(OpId id) {
    if (--left_ < 0) return kUnknown;
    const Operation& op = operations_[id];
    const auto of = [&](int argument) { return magnitude(op.args[argument]); };
    double bound = kUnknown;
    if (!is_float(op.dtype)) return op.kind == OperationKind::index ? kLargestWhole : 0x1p64;
    if (op.kind == OperationKind::constant) bound = std::abs(number_of(op));
    if (op.kind == OperationKind::primitive) {
      switch (op.primitive) {
        case P::convert: case P::neg: case P::abs: bound = of(0); break;
        case P::floor: case P::ceil: case P::trunc: case P::round: bound = of(0) + 1; break;
        case P::minimum: bound = magnitude_of_least(op.args[0], op.args[1]); break;
        case P::maximum: bound = std::max(of(0), of(1)); break;
        case P::select: bound = std::max(of(1), of(2)); break;
        case P::add: case P::sub: bound = of(0) + of(1); break;
        case P::mul: bound = of(0) * of(1); break;
        case P::fma: bound = of(0) * of(1) + of(2); break;
        default: break;
      }
    }
    const double most = op.dtype == DType::f64 ? 1e300 : op.dtype == DType::f32 ? 1e38 : 0;
    return bound < most ? bound : kUnknown;
  }

 private:
  double magnitude_of_least(OpId a, OpId b) {
    const double of_a = magnitude(a), of_b = magnitude(b);
    const bool may_be_nan = of_a == kUnknown || of_b == kUnknown;
    return !may_be_nan && is_not_negative(a) && is_not_negative(b) ? std::min(of_a, of_b) : std::max(of_a, of_b);
  }

  bool is_constant_below(const Operation& op, const Dim& size) const {
    const double value = std::ceil(number_of(op));
    return std::abs(value) < 0x1p62 && algebra_.always_less(Dim(static_cast<std::int64_t>(value)), size);
  }

  /// Whether `size` - 1 is not rounded up in the dtype.
  static bool holds_whole(DType dtype, const Dim& size) {
    if (dtype == DType::i64 || dtype == DType::f64) return true;
    return dtype == DType::f32 && size.is_constant() && size.constant() <= (std::int64_t{1} << 24);
  }

  const OperationList& operations_;
  const IndexAlgebra& algebra_;
  int left_ = kMostLookedAt;
};

}  // namespace

bool always_inside(const OperationList& operations, const IndexAlgebra& algebra, OpId value, const Dim& size) {
  ValueRange range(operations, algebra);
  return range.is_below(value, size) && range.is_not_negative(value);
}

bool never_negative(const OperationList& operations, const IndexAlgebra& algebra, OpId value) {
  return ValueRange(operations, algebra).is_not_negative(value);
}

}  // namespace tenon::codegen
