// A kernel as the function that each thread of a grid runs.
#pragma once

#include <map>
#include <string>

#include "nests/nest_emitter.h"
#include "lower/ptx_isa.h"

namespace tenon::cuda {

/// Adds the kernel `name`, which is no product, to the module.
void emit_block_kernel(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa, const std::string& name);

class BlockEmitter : protected codegen::NestEmitter {
 public:
  BlockEmitter(llvm::Module& module, const codegen::Kernel& kernel, const Schedule& schedule, const PtxIsa& isa)
      : NestEmitter(module, kernel, isa), schedule_(schedule), isa_(isa) {}

  void emit(const std::string& name);

 protected:
  using Dim = codegen::Dim;
  using Lanes = codegen::Lanes;
  using Body = std::function<void()>;

  /// Runs the body in a scope of its own.
  void within(const Body& body);
  /// Runs the body where the condition holds, in a scope of its own.
  void where(llvm::Value* condition, const Body& body);
  void on_lanes(unsigned lanes);
  void store_all(const codegen::Stage& stage);

  const Schedule& schedule_;
  const PtxIsa& isa_;

 private:
  // ---- loops of a thread (block_emitter.cpp)
  void begin(const std::string& name);
  void points(llvm::Value* unit);
  void row(llvm::Value* unit);
  void columns(llvm::Value* block, llvm::Value* thread);
  /// Gives the variables of all outer loops but the last for the vector with the number, and the vector's place along that.
  llvm::Value* find_vector(llvm::Value* unit);
  void stages();
  void row_stage(const codegen::Stage& stage);
  void map(const codegen::Stage& stage);
  /// The last inner loop, shared by the team: from `low` to `high` in vectors of so many lanes.
  Carried shared_loop(llvm::Value* low, llvm::Value* high, unsigned lanes, Carried carried, const CarriedBody& body);
  /// The same for a team that keeps rows or columns: pass by pass, so that each has registers of its own. `only`: an i1 without which nothing runs,
  /// or null.
  Carried kept_loop(Carried carried, const CarriedBody& body, llvm::Value* only = nullptr);
  bool keeps_rows() const;
  llvm::Value* whole_vectors();
  bool has_vectors() const;
  bool has_tail() const;

  // ---- tiles (tile_emission.cpp)
  void tile(llvm::Value* unit, llvm::Value* thread);
  void place_in_tile(llvm::Value* row, llvm::Value* column);
  llvm::Value* in_tile(std::size_t load, llvm::Value* row, llvm::Value* column);

  // ---- reductions (team_reduction.cpp)
  void reduce(const codegen::Stage& stage);
  Carried reduce_over(const codegen::Stage& stage, std::size_t loop, llvm::Value* low, llvm::Value* high, unsigned lanes, Carried carried);
  Carried of_warp(const codegen::Stage& stage, Carried values);
  Carried of_block(const codegen::Stage& stage, const Carried& values);
  Carried of_column(const codegen::Stage& stage, const Carried& values);
  /// Sends a value of any type as words of 32 bits.
  llvm::Value* by_words(llvm::Value* value, const std::function<llvm::Value*(llvm::Value*)>& send);
  llvm::Value* as_bits(llvm::Value* value, unsigned bits);
  llvm::Value* from_bits(llvm::Value* bits, llvm::Type* type);

  // ---- scatters (scatter_emission.cpp)
  void scatter(const codegen::Store& store);
  void compute_scattered();
  llvm::Value* added_in_memory(const codegen::Store& store);
  Lanes old_value(const codegen::Operation& op) override;

  // ---- memory (thread_memory.cpp)
  llvm::Value* graph_symbol(SymbolId symbol) override;
  llvm::Value* start_of_buffer(std::uint64_t number) override;
  /// What the parameter of a buffer would be, as bits, where a table has those of several runs.
  llvm::Value* of_run(std::uint64_t number);
  Lanes load(const codegen::Operation& op) override;
  Lanes checked(const codegen::Operation& op) override;
  void store(const codegen::Store& store) override;
  bool is_vector(const Dim& place);
  bool begins_at_multiple(const Dim& dim) const override { return is_aligned(dim, *lane_, b_.lanes()); }
  llvm::Value* element_of(llvm::Type* type, llvm::Value* address, DType storage, llvm::Value* mask);
  llvm::Value* zeros();
  /// The address of the element of one lane.
  llvm::Value* address_of_lane(std::uint64_t buffer, const Dim& place, std::uint64_t lane);

  llvm::Value* run_ = nullptr;     // of the block, i64; null where a launch is one run
  llvm::Value* thread_ = nullptr;  // in its team, i64
  llvm::Value* inside_ = nullptr;  // i1: the team has a unit of its own; null: all have. One that has none stays for the sake of the others
  struct InTile {
    llvm::Value *row, *column;  // of the tile: what a thread is at
  };
  std::optional<InTile> at_;       // where transposed loads read, once they are there
  unsigned pass_ = 0;              // over a row that is kept
  std::map<std::pair<std::uint64_t, unsigned>, llvm::Value*> kept_;  // by row buffer and pass, as it is stored
  bool has_shared_ = false;        // a stage before has used the shared memory
  Lanes old_;                      // of a scatter: what the target has
};

}  // namespace tenon::cuda
