// The emitter's state, shared by the files that implement it: loops, index expressions, memory, reductions.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "lower/kernel_emitter.h"
#include "lower/scopes.h"
#include "lower/x86_isa.h"

namespace tenon::codegen {

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const Kernel& kernel, const Target& target)
      : kernel_(kernel), target_(target), isa_(target), b_(module, isa_), ir_(b_.ir) {}

  void emit(const std::string& name);

 private:
  using Body = std::function<void(llvm::Value* position)>;
  using Carried = std::vector<llvm::Value*>;
  /// A loop body that takes the carried values and gives the next ones.
  using CarriedBody = std::function<Carried(llvm::Value* position, Carried values)>;

  // ---- shape of the nest (kernel_emitter.cpp)
  void declare(const std::string& name);
  bool has_short_runs();
  unsigned wide_lanes(const Stage* sweep = nullptr);
  void add_work(OpId id, std::set<OpId>& seen, double& work, bool& wide_elements);
  void add_work(const Stage& sweep, std::set<OpId>& seen, double& work, bool& wide_elements);
  bool streams() const;
  void unit(llvm::Value* number);
  void decode_unit(llvm::Value* number);
  void stages();
  void map_stage(const Stage& stage);
  void row_stage(const Stage& stage);
  /// Runs the last `inner` loop over lanes: whole vectors, then a masked tail.
  void over_lanes(unsigned wide, llvm::Value* low, llvm::Value* high, const std::function<void()>& body);
  std::optional<std::int64_t> left_by_vectors(std::int64_t lanes) const;
  /// False when the loop over lanes is known to be shorter than one vector.
  bool fills_vectors(std::int64_t lanes) const;
  llvm::Value* mask_of_tail(llvm::Value* position, llvm::Value* high);
  void for_inner(std::size_t first, std::size_t last, const std::function<void()>& body);

  // ---- loops (kernel_emitter.cpp)
  Carried loop(llvm::Value* low, llvm::Value* high, std::int64_t step, bool whole_steps, SymbolId variable, Carried initial, const CarriedBody& body);
  /// A loop around loops: what is computed in its body directly is not shared, and hoisted code goes before it.
  Carried plain_loop(llvm::Value* low, llvm::Value* high, std::int64_t step, Carried initial, const CarriedBody& body);
  Carried counted(llvm::Value* low, llvm::Value* high, std::int64_t step, bool whole_steps, Carried initial, const CarriedBody& body,
                  const std::function<void(llvm::BasicBlock*)>& enter_body, const std::function<void()>& leave_body);
  Scope& here() { return scopes_.back(); }
  void enter(llvm::BasicBlock* block) {
    here().block = block;
    ir_.SetInsertPoint(block);
  }
  std::size_t depth() const { return scopes_.size() - 1; }

  // ---- index expressions (index_emission.cpp)
  std::size_t depth_of(const Dim& dim);
  std::size_t depth_of(SymbolId symbol);
  std::size_t depth_of(OpId op);
  bool varies(const Dim& dim);
  bool varies(OpId op);
  llvm::Value* scalar(const Dim& dim);
  llvm::Value* scalar_term(const ir::DimTerm& term);
  llvm::Value* scalar_atom(const ir::DimAtom& atom);
  llvm::Value* vector(const Dim& dim);
  llvm::Value* vector_atom(const ir::DimAtom& atom);
  llvm::Value* vector_division(const ir::DimAtom& atom);
  llvm::Value* divided_lanes(const ir::DimAtom& atom);
  llvm::Value* lane_numbers(llvm::Type* type);
  bool lane_affine(const Dim& dim, Affine& out);

  // ---- values (kernel_emitter.cpp, memory_emission.cpp)
  Lanes value(OpId id);
  Lanes compute(OpId id);
  Lanes primitive(const Operation& op);
  Lanes compare_indices(const Operation& op);
  llvm::Value* compare_lanes(ops::Primitive comparison, const Dim& difference);
  Lanes widened(OpId id);
  Lanes load(const Operation& op);
  Lanes uniform_load(const Operation& op);
  void fetch_ahead(llvm::Value* address, std::size_t bytes);
  Lanes contiguous_load(const Operation& op, llvm::Value* mask);
  llvm::Value* masked_elements(DType storage, llvm::Value* address, llvm::Value* mask, llvm::Value* otherwise);
  Lanes gathered_load(const Operation& op, llvm::Value* mask);
  llvm::Value* gathered_elements(const Operation& op, llvm::Value* mask);
  llvm::Value* paired_elements(const Operation& op, llvm::Value* mask);
  bool is_clamped(const Dim& index);
  llvm::Value* clamped_elements(std::uint64_t buffer, const Dim& rest, const Dim& index, llvm::Value* mask);
  Lanes checked(const Operation& op);
  void store(const Store& store);
  bool streams_to(const Store& store);
  llvm::Value* buffer(std::uint64_t number);
  llvm::Value* element_address(std::uint64_t buffer, const Dim& offset);
  llvm::Value* place_in_buffer(std::uint64_t buffer, const Dim& offset);
  llvm::Value* has_target(std::uint64_t buffer);
  llvm::Value* somewhere_readable();
  llvm::Value* somewhere_writable();

  // ---- runs of lanes (runs.cpp)
  /// An index over the lanes of one vector: where `even` (i1) holds, it steps by `step` (i64) from lane to lane.
  struct Run {
    llvm::Value* even;
    llvm::Value* step;
  };
  std::optional<Run> run_of(const Dim& index);
  std::optional<Run> run_of(const ir::DimAtom& atom);
  llvm::Value* run_or_gather(const Operation& op, llvm::Value* mask);
  llvm::Value* elements_at(const Operation& op, llvm::Value* address, llvm::Value* mask);
  llvm::Value* backward_elements(const Operation& op, llvm::Value* first, llvm::Value* mask);
  llvm::Value* either(llvm::Value* condition, const std::function<llvm::Value*()>& then, const std::function<llvm::Value*()>& otherwise);

  // ---- reductions (reduction_emission.cpp)
  void reduce_stage(const Stage& stage);
  std::int64_t points_of_one_sum(std::size_t number) const;
  Carried reduce_inner(const Stage& stage, std::size_t loop, Carried carried, unsigned lanes);
  Carried reduce_chains(const Stage& stage, const Loop& loop, Carried carried, unsigned lanes, std::int64_t points, const CarriedBody& body);
  Carried reduce_tail(const Stage& stage, const Loop& loop, llvm::Value* low, Carried total);
  Carried reduce_lanes_range(const Stage& stage, const Loop& loop, unsigned lanes);
  Carried initial(const Stage& stage, bool varying, unsigned lanes);
  Carried combined(const Stage& stage, const Carried& a, const Carried& b);
  Carried elements(const Stage& stage);
  Carried narrowed(const Stage& stage, Carried values, unsigned from, unsigned to);
  Lanes as_lanes(llvm::Value* v, DType dtype) const { return {v, dtype, v->getType()->isVectorTy()}; }
  std::vector<DType> accumulator_types(const Stage& stage) const;
  std::function<llvm::Value*(const Dim&)> extent_values() {
    return [this](const Dim& d) { return scalar(d); };
  }

  const Kernel& kernel_;
  const Target& target_;
  const X86Isa isa_;
  LaneBuilder b_;
  llvm::IRBuilder<>& ir_;
  llvm::Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::unordered_map<std::uint32_t, std::size_t> symbol_depth_;
  std::unordered_map<OpId, std::size_t> op_depth_;
  std::unordered_map<OpId, bool> op_varies_;
  std::size_t row_depth_ = 1;       // where `reduced` values live
  llvm::Value* tail_mask_ = nullptr;  // of a tail: lanes that exist; the others repeat lane 0
  const Store* scatter_ = nullptr;
};

}  // namespace tenon::codegen
