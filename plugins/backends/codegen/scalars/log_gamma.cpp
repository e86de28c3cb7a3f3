#include "scalars/log_gamma.h"

#include <llvm/IR/Intrinsics.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "scalars/functions.h"

namespace tenon::codegen {

using llvm::Value;
using P = ops::Primitive;

namespace {

/// Places from which on Stirling's series needs no help.
constexpr int kFar = 8;

/// Of 1/y, for y^-1, y^-3 and so on: B(2k) / (2k (2k - 1)); seven terms leave 1e-15 at kFar.
constexpr std::array kStirling = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};

class LogGamma {
 public:
  LogGamma(LaneBuilder& b, Value* x) : b_(b), ir_(b.ir), x_(x) {}

  /// Stirling's series for z = x, or 1 - x left of 1/2, moved to z + kFar where z is near: by the product of the numbers in between. Left of 1/2 by
  /// the reflection |gamma(x) gamma(1 - x) sin(pi x)| = pi.
  Value* emit() {
    Value* turned = ir_.CreateFCmpOLT(x_, number(0.5));
    Value* z = ir_.CreateSelect(turned, ir_.CreateFSub(number(1), x_), x_);
    Value* near = ir_.CreateFCmpOLT(z, number(kFar));
    Value* product = ir_.CreateSelect(near, product_from(z), number(1));
    Value* sum = stirling(ir_.CreateSelect(near, ir_.CreateFAdd(z, number(kFar)), z));
    Value* factor = ir_.CreateFDiv(number(std::numbers::pi), magnitude(sine_of_half_turns()));
    Value* rest = ir_.CreateFSub(sum, log(ir_.CreateSelect(turned, ir_.CreateFMul(product, factor), product)));
    Value* result = ir_.CreateSelect(turned, ir_.CreateFNeg(rest), rest);
    Value* zero = ir_.CreateOr(ir_.CreateFCmpOEQ(x_, number(1)), ir_.CreateFCmpOEQ(x_, number(2)));
    result = ir_.CreateSelect(zero, number(0), result);
    Value* infinity = number(std::numeric_limits<double>::infinity());
    return ir_.CreateSelect(ir_.CreateFCmpOEQ(magnitude(x_), infinity), infinity, result);
  }

 private:
  Value* number(double v) { return llvm::ConstantFP::get(x_->getType(), v); }
  Value* magnitude(Value* v) { return ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); }
  Value* log(Value* v) { return emit_function(b_, P::log, v, nullptr); }

  Value* product_from(Value* z) {
    Value* product = z;
    for (int k = 1; k < kFar; ++k) product = ir_.CreateFMul(product, ir_.CreateFAdd(z, number(k)));
    return product;
  }

  Value* stirling(Value* y) {
    Value* inverse = ir_.CreateFDiv(number(1), y);
    Value* square = ir_.CreateFMul(inverse, inverse);
    Value* series = number(kStirling.back());
    for (std::size_t k = kStirling.size() - 1; k-- > 0;) series = b_.fused_multiply_add(series, square, number(kStirling[k]));
    Value* main = ir_.CreateFSub(ir_.CreateFMul(ir_.CreateFSub(y, number(0.5)), log(y)), y);
    constexpr double kHalfLogTwoPi = 0.91893853320467274178;
    return b_.fused_multiply_add(series, inverse, ir_.CreateFAdd(main, number(kHalfLogTwoPi)));
  }

  /// sin(pi x) up to its sign: Taylor's series on a quarter turn to both sides.
  Value* sine_of_half_turns() {
    Value* t = ir_.CreateFMul(ir_.CreateFSub(x_, ir_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x_)), number(std::numbers::pi));
    Value* square = ir_.CreateFMul(t, t);
    constexpr int kLast = 19;
    Value* series = nullptr;
    for (int power = kLast; power >= 1; power -= 2) {
      Value* term = number((power % 4 == 1 ? 1 : -1) / std::tgamma(power + 1.0));
      series = series ? b_.fused_multiply_add(series, square, term) : term;
    }
    return ir_.CreateFMul(t, series);
  }

  LaneBuilder& b_;
  llvm::IRBuilder<>& ir_;
  Value* x_;
};

}  // namespace

Value* log_gamma_f32(LaneBuilder& b, Value* x) {
  const auto with_width = [&](llvm::Type* type) -> llvm::Type* {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
    return vector ? llvm::FixedVectorType::get(type, vector->getNumElements()) : type;
  };
  return b.ir.CreateFPTrunc(LogGamma(b, b.ir.CreateFPExt(x, with_width(b.ir.getDoubleTy()))).emit(), x->getType());
}

}  // namespace tenon::codegen
