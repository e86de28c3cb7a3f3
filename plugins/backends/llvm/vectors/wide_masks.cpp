#include "vectors/wide_masks.h"

#include <llvm/ADT/EquivalenceClasses.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace tenon::llvm_backend {
namespace {

using llvm::Instruction;
using llvm::PHINode;
using llvm::SelectInst;
using llvm::Value;

/// Bits of what was compared from which on masks are widened: of the elements that floats share registers with.
constexpr unsigned kLeastBits = 32;

/// The value as an instruction that combines masks, or null.
Instruction* logic_of(Value* value) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  auto* instruction = llvm::dyn_cast<Instruction>(value);
  if (!type || !type->getElementType()->isIntegerTy(1) || !instruction) return nullptr;
  return instruction->isBitwiseLogicOp() || llvm::isa<SelectInst, PHINode>(instruction) ? instruction : nullptr;
}

/// The masks that are combined. The condition of a select is none of them.
auto masks_of(Instruction& logic) { return llvm::drop_begin(logic.operands(), llvm::isa<SelectInst>(logic) ? 1 : 0); }

unsigned compared_bits(Value* mask) {
  auto* comparison = llvm::dyn_cast<llvm::CmpInst>(mask);
  return comparison ? comparison->getOperand(0)->getType()->getScalarSizeInBits() : 0;
}

class Widening {
 public:
  explicit Widening(llvm::Function& function) : ir_(function.getContext()) {
    for (Instruction& i : llvm::instructions(function))
      if (Instruction* logic = logic_of(&i)) all_.push_back(logic);
    choose_widths();
    llvm::erase_if(all_, [&](Instruction* logic) { return bits_of(*logic) == 0; });
  }

  void run() {
    for (Instruction* logic : all_) wide(logic, bits_of(*logic));
    for (Instruction* logic : all_)
      if (auto* phi = llvm::dyn_cast<PHINode>(logic)) fill(*phi);
    for (Instruction* logic : all_) narrow(*logic);
    for (Instruction* logic : all_) logic->eraseFromParent();
  }

 private:
  /// Logic that is connected gets one width: the least of what is compared in it, or 0 where that is narrow.
  void choose_widths() {
    for (Instruction* logic : all_) {
      connected_.insert(logic);
      for (Value* mask : masks_of(*logic))
        if (Instruction* other = logic_of(mask)) connected_.unionSets(logic, other);
    }
    for (Instruction* logic : all_) {
      unsigned& least = bits_[connected_.getLeaderValue(logic)];
      for (Value* mask : masks_of(*logic))
        if (const unsigned bits = compared_bits(mask); bits >= kLeastBits) least = least ? std::min(least, bits) : bits;
    }
  }

  unsigned bits_of(Instruction& logic) { return bits_[connected_.getLeaderValue(&logic)]; }

  Value* wide(Value* mask, unsigned bits) {
    const std::pair key(mask, bits);
    if (const auto found = wide_.find(key); found != wide_.end()) return found->second;
    Instruction* logic = logic_of(mask);
    Value* made = logic ? combination(*logic, bits) : extension(mask, bits);
    return wide_[key] = made;
  }

  Value* combination(Instruction& logic, unsigned bits) {
    std::vector<Value*> masks;
    if (!llvm::isa<PHINode>(logic))
      for (Value* mask : masks_of(logic)) masks.push_back(wide(mask, bits));
    ir_.SetInsertPoint(&logic);
    if (auto* phi = llvm::dyn_cast<PHINode>(&logic)) return ir_.CreatePHI(phi->getType()->getWithNewBitWidth(bits), phi->getNumIncomingValues());
    if (auto* select = llvm::dyn_cast<SelectInst>(&logic)) return ir_.CreateSelect(select->getCondition(), masks[0], masks[1]);
    return ir_.CreateBinOp(llvm::cast<llvm::BinaryOperator>(logic).getOpcode(), masks[0], masks[1]);
  }

  Value* extension(Value* mask, unsigned bits) {
    if (auto* made = llvm::dyn_cast<Instruction>(mask)) ir_.SetInsertPoint(*made->getInsertionPointAfterDef());
    return ir_.CreateSExt(mask, mask->getType()->getWithNewBitWidth(bits));
  }

  void fill(PHINode& phi) {
    const unsigned bits = bits_of(phi);
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
      llvm::cast<PHINode>(wide(&phi, bits))->addIncoming(wide(phi.getIncomingValue(i), bits), phi.getIncomingBlock(i));
  }

  /// What reads the mask otherwise gets it from the sign.
  void narrow(Instruction& logic) {
    Value* made = wide(&logic, bits_of(logic));
    ir_.SetInsertPoint(*llvm::cast<Instruction>(made)->getInsertionPointAfterDef());
    logic.replaceAllUsesWith(ir_.CreateICmpSLT(made, llvm::Constant::getNullValue(made->getType())));
  }

  llvm::IRBuilder<> ir_;
  std::vector<Instruction*> all_;
  llvm::EquivalenceClasses<Instruction*> connected_;
  std::map<Instruction*, unsigned> bits_;  // by the leader of what is connected
  std::map<std::pair<Value*, unsigned>, Value*> wide_;
};

}  // namespace

void widen_masks(llvm::Function& function) { Widening(function).run(); }

}  // namespace tenon::llvm_backend
