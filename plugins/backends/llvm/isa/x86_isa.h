// x86: AVX-512, AVX2, or the baseline; functions by glibc's libmvec where it is there.
#pragma once

#include "scalars/isa.h"
#include "isa/target.h"

namespace tenon::llvm_backend {

class X86Isa final : public codegen::Isa {
 public:
  /// The target is borrowed.
  explicit X86Isa(const Target& target) : target_(target) {}

  bool has_fma() const override { return target_.has_fma; }
  bool has_half() const override { return target_.has_f16c; }
  bool keeps_flags() const override { return target_.quiet_comparisons; }
  void declare(llvm::Function& function) const override;
  llvm::Value* ordering(codegen::LaneBuilder& builder, llvm::CmpInst::Predicate predicate, llvm::Value* a, llvm::Value* b) const override;
  llvm::Value* times_power_of_two(codegen::LaneBuilder& builder, llvm::Value* v, llvm::Value* n) const override;
  llvm::Value* function(codegen::LaneBuilder& builder, ops::Primitive p, llvm::Value* x, llvm::Value* y) const override;

 private:
  const Target& target_;
};

/// The attributes of a function of generated code.
void declare_for_machine(llvm::Function& function, const Target& target);

/// sum + a * b by lane of float32 or float64. With `pairs` a lane of `a` and of `b` is two numbers of bfloat16, whose products are both added; subnormal
/// numbers are then zero.
llvm::Value* multiply_added(llvm::IRBuilder<>& ir, const Target& target, bool pairs, llvm::Value* a, llvm::Value* b, llvm::Value* sum);

/// Has the function's instructions scheduled as they were emitted, which already is as few registers as it needs. With LLVM's models of Intel's
/// processors its scheduler (19.1) moves loads up through an unrolled loop until most sums of a register tile live in memory, which halves
/// the speed; with AMD's it does not.
void keep_order_of(llvm::Function& function);

}  // namespace tenon::llvm_backend
