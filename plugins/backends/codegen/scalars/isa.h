// What the emission of scalars asks of an instruction set.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "core/ops/scalar_program.h"

namespace tenon::codegen {

class LaneBuilder;

/// An instruction set, as far as arithmetic on scalars and on lanes depends on it. Immutable: emitters on several threads share one.
class Isa {
 public:
  virtual ~Isa() = default;

  /// A multiplication and an addition are one instruction, which rounds once.
  virtual bool has_fma() const = 0;
  /// float16 is converted by an instruction: it is a type in memory then, else 16 bits.
  virtual bool has_half() const = 0;
  /// Somebody reads the floating-point flags afterwards: what no element of the program raises must not be raised.
  virtual bool keeps_flags() const { return false; }

  /// Gives a function of generated code the attributes of the machine.
  virtual void declare(llvm::Function& function) const = 0;

  /// Compares for an order (not for equality, nor for NaN): quietly, where flags are kept.
  virtual llvm::Value* ordering(LaneBuilder& builder, llvm::CmpInst::Predicate predicate, llvm::Value* a, llvm::Value* b) const;
  /// v * 2^n in float32 for whole n in [-254, 254], rounded once; null where no instruction does that.
  virtual llvm::Value* times_power_of_two(LaneBuilder& builder, llvm::Value* v, llvm::Value* n) const;
  /// A function of one or two floats (`y` null or not) that no polynomial of all targets computes.
  virtual llvm::Value* function(LaneBuilder& builder, ops::Primitive p, llvm::Value* x, llvm::Value* y) const = 0;
};

}  // namespace tenon::codegen
