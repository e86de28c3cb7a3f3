// Arithmetic on scalars and on vectors of lanes: one function a scalar primitive, on LLVM values.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/ops/scalar_program.h"
#include "scalars/isa.h"

namespace tenon::codegen {

/// A value in registers: one for all lanes, or one a lane. bool is i1; f16 and bf16 are held as float32, and beside it as they lie in memory,
/// where they come from there or are rounded already: what is only moved is not converted.
struct Lanes {
  llvm::Value* value = nullptr;
  DType dtype = DType::f32;
  bool varying = false;
  llvm::Value* stored = nullptr;     // what `value` is in memory
  DType stored_as = DType::f32;    // as f16 or bf16
};

/// Emits at the builder's insertion point. The number of lanes may change between uses.
class LaneBuilder {
 public:
  /// The instruction set is borrowed.
  LaneBuilder(llvm::Module& module, const Isa& isa) : module_(module), isa_(isa), ir(module.getContext()) {}

  void set_lanes(unsigned lanes) { lanes_ = lanes; }
  unsigned lanes() const { return lanes_; }

  /// The type in registers of one value, and in memory.
  llvm::Type* register_type(DType dtype);
  llvm::Type* storage_type(DType dtype);
  llvm::Type* widened(llvm::Type* type) { return llvm::FixedVectorType::get(type, lanes_); }

  Lanes constant(DType dtype, std::uint64_t bits);
  /// The same value in every lane.
  Lanes widen(Lanes a);
  llvm::Value* splat(llvm::Value* scalar) { return ir.CreateVectorSplat(lanes_, scalar); }

  /// One primitive; operands that differ in width are widened.
  Lanes primitive(ops::Primitive p, DType dtype, std::span<const Lanes> arguments);
  Lanes select(Lanes condition, Lanes a, Lanes b);
  Lanes convert(Lanes a, DType to);
  /// Between the form in memory and the form in registers.
  Lanes from_storage(llvm::Value* stored, DType storage, bool varying);
  llvm::Value* to_storage(Lanes value, DType storage);

  /// Runs a whole program on parameters; `extent` gives the value of a symbolic size.
  std::vector<Lanes> program(const ops::ScalarProgram& program, std::span<const Lanes> parameters,
                             const std::function<llvm::Value*(const ir::Dim&)>& extent);

  /// Compares as IEEE 754's quiet predicates where flags are kept.
  llvm::Value* float_compare(llvm::CmpInst::Predicate predicate, llvm::Value* a, llvm::Value* b);

  /// a * b + c, rounded once where the machine can.
  llvm::Value* fused_multiply_add(llvm::Value* a, llvm::Value* b, llvm::Value* c);

  llvm::Module& module() { return module_; }
  const Isa& isa() const { return isa_; }

 private:
  Lanes zero_like(Lanes a);
  Lanes float_unary(ops::Primitive p, Lanes a);
  Lanes float_binary(ops::Primitive p, Lanes a, Lanes b);
  Lanes integer(ops::Primitive p, Lanes a, Lanes b);
  Lanes integer_division(ops::Primitive p, Lanes a, Lanes b);
  Lanes integer_power(Lanes a, Lanes b);
  Lanes boolean(ops::Primitive p, Lanes a, Lanes b);
  Lanes compare(ops::Primitive p, Lanes a, Lanes b);
  Lanes extreme(bool maximum, Lanes a, Lanes b);
  Lanes round_to_storage(Lanes a, DType storage);
  llvm::Value* stored_form(const Lanes& a, DType storage);
  llvm::Value* rounded_bits(llvm::Value* f32, DType storage);
  llvm::Value* bf16_bits(llvm::Value* f32);
  llvm::Value* half_bits(llvm::Value* f32);
  llvm::Value* half_from_bits(llvm::Value* stored);
  llvm::Value* float_to_integer(llvm::Value* value, DType from, DType to);
  llvm::Value* number(llvm::Value* like, double value) { return llvm::ConstantFP::get(like->getType(), value); }
  llvm::Value* integer_like(llvm::Value* like, std::int64_t value) { return llvm::ConstantInt::get(like->getType(), static_cast<std::uint64_t>(value), true); }
  /// The type of `element` with the width of `like`.
  llvm::Type* with_width(llvm::Type* element, llvm::Value* like);

  llvm::Module& module_;
  const Isa& isa_;
  unsigned lanes_ = 1;

 public:
  llvm::IRBuilder<> ir;
};

}  // namespace tenon::codegen
