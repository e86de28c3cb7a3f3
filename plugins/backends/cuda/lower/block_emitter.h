// A kernel as the function that each thread of a grid runs.
#pragma once

#include <string>

#include "nests/nest_emitter.h"
#include "lower/ptx_isa.h"

namespace tenon::cuda {

/// Adds the kernel `name` to the module.
void emit_block_kernel(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa, const std::string& name);

class BlockEmitter final : private codegen::NestEmitter {
 public:
  BlockEmitter(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa)
      : NestEmitter(module, kernel, isa), schedule_(schedule), isa_(isa) {}

  void emit(const std::string& name);

 private:
  using Dim = codegen::Dim;
  using Lanes = codegen::Lanes;
  using Body = std::function<void()>;

  // ---- loops of a thread (block_emitter.cpp)
  void begin(const std::string& name);
  void points(llvm::Value* unit);
  void row(llvm::Value* unit);
  void stages();
  /// Finds the variables of the first outer loops.
  /// Runs the body where the condition holds, in a scope of its own.
  void where(llvm::Value* condition, const Body& body);
  void on_lanes(unsigned lanes);
  void store_all(const codegen::Stage& stage);
  void map(const codegen::Stage& stage);
  /// The last inner loop, shared by the team: from `low` to `high` in vectors of so many lanes.
  Carried shared_loop(llvm::Value* low, llvm::Value* high, unsigned lanes, Carried carried, const CarriedBody& body);
  llvm::Value* whole_vectors();
  bool has_vectors() const;
  bool has_tail() const;

  // ---- reductions (team_reduction.cpp)
  void reduce(const codegen::Stage& stage);
  Carried reduce_over(const codegen::Stage& stage, std::size_t loop, llvm::Value* low, llvm::Value* high, unsigned lanes, Carried carried);
  Carried of_warp(const codegen::Stage& stage, Carried values);
  Carried of_block(const codegen::Stage& stage, const Carried& values);
  /// Sends a value of any type as words of 32 bits.
  llvm::Value* by_words(llvm::Value* value, const std::function<llvm::Value*(llvm::Value*)>& send);
  llvm::Value* as_bits(llvm::Value* value, unsigned bits);
  llvm::Value* from_bits(llvm::Value* bits, llvm::Type* type);

  // ---- memory (thread_memory.cpp)
  llvm::Value* graph_symbol(SymbolId symbol) override;
  llvm::Value* start_of_buffer(std::uint64_t number) override;
  Lanes load(const codegen::Operation& op) override;
  Lanes checked(const codegen::Operation& op) override;
  Lanes old_value(const codegen::Operation& op) override;
  void store(const codegen::Store& store) override;
  bool is_vector(const Dim& place);
  llvm::Value* element_of(llvm::Type* type, llvm::Value* address, DType storage, llvm::Value* mask);
  llvm::Value* zeros();
  /// The address of the element of one lane.
  llvm::Value* address_of_lane(std::uint64_t buffer, const Dim& place, std::uint64_t lane);

  const Schedule& schedule_;
  const PtxIsa& isa_;
  llvm::Value* thread_ = nullptr;  // in its team, i64
  bool has_shared_ = false;        // a stage before has used the shared memory
};

}  // namespace tenon::cuda
