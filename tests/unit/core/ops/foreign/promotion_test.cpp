// The dtypes in which operands meet.
#include "core/ops/foreign/promotion.h"

#include "catch.h"

using namespace tenon;
using namespace tenon::ops;

namespace {

PromotionOperand tensor(DType t) { return {t, false, false}; }
PromotionOperand scalar(DType t) { return {t, false, true}; }
PromotionOperand number(DType t) { return {t, true, true}; }

DType torch(std::vector<PromotionOperand> all) { return promote(Flavour::torch, all, DType::f32); }
DType numpy(std::vector<PromotionOperand> all) { return promote(Flavour::numpy, all, DType::f64); }

}  // namespace

TEST_CASE("torch: dimensions beat 0-d tensors, which beat numbers, within a category") {
  CHECK(torch({tensor(DType::f16), scalar(DType::f64)}) == DType::f16);
  CHECK(torch({tensor(DType::i32), scalar(DType::f64)}) == DType::f64);
  CHECK(torch({tensor(DType::i8), number(DType::i64)}) == DType::i8);
  CHECK(torch({tensor(DType::i32), number(DType::f64)}) == DType::f32);
  CHECK(torch({tensor(DType::b8), number(DType::i64)}) == DType::i64);
  CHECK(torch({scalar(DType::i32), number(DType::i64)}) == DType::i32);
  CHECK(torch({tensor(DType::f16), tensor(DType::bf16)}) == DType::f32);
  CHECK(torch({tensor(DType::u8), tensor(DType::i8)}) == DType::i16);
  CHECK(torch({tensor(DType::i64), tensor(DType::f16)}) == DType::f16);
}

TEST_CASE("NumPy: arrays and scalars are strong, Python numbers weak") {
  CHECK(numpy({tensor(DType::f32), scalar(DType::f64)}) == DType::f64);
  CHECK(numpy({tensor(DType::f32), number(DType::f64)}) == DType::f32);
  CHECK(numpy({tensor(DType::i32), number(DType::f64)}) == DType::f64);
  CHECK(numpy({tensor(DType::i32), tensor(DType::f32)}) == DType::f64);
  CHECK(numpy({tensor(DType::i16), tensor(DType::f16)}) == DType::f32);
  CHECK(numpy({tensor(DType::i8), tensor(DType::f16)}) == DType::f16);
  CHECK(numpy({tensor(DType::u8), number(DType::i64)}) == DType::u8);
  CHECK(numpy({tensor(DType::b8), number(DType::i64)}) == DType::i64);
  CHECK(numpy({tensor(DType::b8), number(DType::f64)}) == DType::f64);
}

TEST_CASE("functions of integers compute in floats of the library's choice") {
  CHECK(float_for(Flavour::torch, DType::i8, DType::f32) == DType::f32);
  CHECK(float_for(Flavour::numpy, DType::i8, DType::f64) == DType::f16);
  CHECK(float_for(Flavour::numpy, DType::i16, DType::f64) == DType::f32);
  CHECK(float_for(Flavour::numpy, DType::i32, DType::f64) == DType::f64);
  CHECK(float_for(Flavour::numpy, DType::f16, DType::f64) == DType::f16);
}

TEST_CASE("NumPy: functions of several operands take each array's own float") {
  const auto common = [](std::vector<PromotionOperand> all) { return promote_to_float(all); };
  CHECK(common({tensor(DType::i8), tensor(DType::u8)}) == DType::f16);
  CHECK(common({tensor(DType::i16), tensor(DType::f16)}) == DType::f32);
  CHECK(common({tensor(DType::i32), tensor(DType::f32)}) == DType::f64);
  CHECK(common({tensor(DType::i8), number(DType::i64)}) == DType::f16);
  CHECK(common({tensor(DType::i8), number(DType::f64)}) == DType::f64);
  CHECK(common({tensor(DType::b8), number(DType::i64)}) == DType::f64);
  CHECK(common({tensor(DType::f16), number(DType::f64)}) == DType::f16);
}

TEST_CASE("complex numbers are promoted by their parts") {
  CHECK(torch({tensor(DType::c64), tensor(DType::f32)}) == DType::c64);
  CHECK(torch({tensor(DType::c64), tensor(DType::f64)}) == DType::c128);
  CHECK(torch({tensor(DType::i64), number(DType::c128)}) == DType::c64);
  CHECK(torch({tensor(DType::f64), number(DType::c128)}) == DType::c128);
  CHECK(torch({tensor(DType::c64), number(DType::c128)}) == DType::c64);
  CHECK_THROWS_AS(torch({tensor(DType::f16), number(DType::c128)}), Exception);
  CHECK(promote(Flavour::numpy, std::vector<PromotionOperand>{tensor(DType::c64), tensor(DType::i32)}, DType::f32) == DType::c128);
  CHECK(promote(Flavour::numpy, std::vector<PromotionOperand>{tensor(DType::c64), tensor(DType::i16)}, DType::f32) == DType::c64);
  CHECK(promote(Flavour::numpy, std::vector<PromotionOperand>{tensor(DType::f32), number(DType::c128)}, DType::f32) == DType::c64);
  CHECK(promote(Flavour::numpy, std::vector<PromotionOperand>{tensor(DType::i8), number(DType::c128)}, DType::f32) == DType::c128);
}
