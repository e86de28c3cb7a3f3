#include "scalars/isa.h"

#include "scalars/lane_builder.h"

namespace tenon::codegen {

llvm::Value* Isa::ordering(LaneBuilder& builder, llvm::CmpInst::Predicate predicate, llvm::Value* a, llvm::Value* b) const {
  return builder.ir.CreateFCmp(predicate, a, b);
}

llvm::Value* Isa::times_power_of_two(LaneBuilder&, llvm::Value*, llvm::Value*) const { return nullptr; }

}  // namespace tenon::codegen
