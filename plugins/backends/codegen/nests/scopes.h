// Where code is placed: each open loop has a block that runs once before the loops inside it.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <map>
#include <unordered_map>
#include <vector>

#include "loops/kernel.h"
#include "scalars/lane_builder.h"

namespace tenon::codegen {

/// The body of an open loop (or the function's entry), with what has been computed there.
struct Scope {
  llvm::BasicBlock* block = nullptr;  // grows; ends in a branch while a loop inside is open
  std::unordered_map<OpId, Lanes> values;
  std::map<std::pair<OpId, unsigned>, llvm::Value*> widened;
  std::vector<std::pair<Dim, llvm::Value*>> dims;
  std::vector<std::pair<Dim, llvm::Value*>> vectors;  // quotients and remainders of lanes
  std::unordered_map<std::uint32_t, llvm::Value*> symbols;  // loop variables, by SymbolId
};

/// Moves the builder to the end of a scope for the life of this object.
class AtScope {
 public:
  AtScope(llvm::IRBuilder<>& ir, Scope& scope) : guard_(ir) {
    if (auto* end = scope.block->getTerminator()) ir.SetInsertPoint(end);
    else ir.SetInsertPoint(scope.block);
  }

 private:
  llvm::IRBuilder<>::InsertPointGuard guard_;
};

}  // namespace tenon::codegen
