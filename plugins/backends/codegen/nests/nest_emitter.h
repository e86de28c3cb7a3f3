// What the emission of a loop nest is for every target: loops, index expressions, values at the depth where they are known, accumulation.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "nests/scopes.h"

namespace tenon::codegen {

/// A target derives from it: it gives the nest its loops and says how memory is read and written.
class NestEmitter {
 public:
  virtual ~NestEmitter() = default;
  NestEmitter(const NestEmitter&) = delete;
  NestEmitter& operator=(const NestEmitter&) = delete;

 protected:
  NestEmitter(llvm::Module& module, const Kernel& kernel, const Isa& isa) : kernel_(kernel), b_(module, isa), ir_(b_.ir), index_type_(ir_.getInt64Ty()) {}

  using Carried = std::vector<llvm::Value*>;
  /// A loop body that takes the carried values and gives the next ones.
  using CarriedBody = std::function<Carried(llvm::Value* position, Carried values)>;

  // ---- what a target says
  /// The value of a symbol of the graph; emitted at the entry.
  virtual llvm::Value* graph_symbol(SymbolId symbol) = 0;
  /// Where a buffer starts; emitted at the entry.
  virtual llvm::Value* start_of_buffer(std::uint64_t number) = 0;
  virtual Lanes load(const Operation& op) = 0;
  virtual Lanes checked(const Operation& op) = 0;
  virtual Lanes old_value(const Operation& op) = 0;
  virtual void store(const Store& store) = 0;
  /// Whether an index that grows with the lanes by 1 is a multiple of their number in lane 0, as far as is known.
  virtual bool begins_at_multiple(const Dim&) const { return false; }

  // ---- loops (nest_emitter.cpp)
  Carried loop(llvm::Value* low, llvm::Value* high, std::int64_t step, bool whole_steps, SymbolId variable, Carried initial, const CarriedBody& body);
  /// A loop around loops: what is computed in its body directly is not shared, and hoisted code goes before it.
  Carried plain_loop(llvm::Value* low, llvm::Value* high, std::int64_t step, Carried initial, const CarriedBody& body);
  Carried counted(llvm::Value* low, llvm::Value* high, std::int64_t step, bool whole_steps, Carried initial, const CarriedBody& body,
                  const std::function<void(llvm::BasicBlock*)>& enter_body, const std::function<void()>& leave_body);
  /// Finds the variables of the first so many outer loops from the number of one pass through them.
  void decode_outer(llvm::Value* number, std::size_t loops);
  void for_inner(std::size_t first, std::size_t last, const std::function<void()>& body);
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
  bool varies(const ir::DimAtom& atom);
  bool lanes_share_quotient(const ir::DimAtom& division);
  /// Of a comparison of indices, their difference.
  std::optional<Dim> difference_of_indices(const Operation& op) const;
  bool lanes_share_comparison(const Operation& op);
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
  llvm::Constant* index_number(std::int64_t number) { return llvm::ConstantInt::getSigned(index_type_, number); }
  llvm::Value* buffer(std::uint64_t number);
  llvm::Value* place_in_buffer(std::uint64_t buffer, const Dim& offset);

  // ---- values (nest_emitter.cpp)
  Lanes value(OpId id);
  Lanes compute(OpId id);
  Lanes primitive(const Operation& op);
  Lanes compare_indices(const Operation& op);
  llvm::Value* compare_lanes(ops::Primitive comparison, const Dim& difference);
  Lanes widened(OpId id);

  // ---- reductions (accumulation.cpp)
  Carried initial(const Stage& stage, bool varying, unsigned lanes);
  Carried combined(const Stage& stage, const Carried& a, const Carried& b);
  /// What a point adds. Stores what the stage keeps of it.
  Carried elements(const Stage& stage);
  /// Lanes combined with each other until so few are left.
  Carried narrowed(const Stage& stage, Carried values, unsigned from, unsigned to);
  /// Makes the results of the stage's reductions known at the depth of a row.
  void finish_reductions(const Stage& stage, const Carried& values);
  Lanes as_lanes(llvm::Value* v, DType dtype) const { return {v, dtype, v->getType()->isVectorTy()}; }
  std::vector<DType> accumulator_types(const Stage& stage) const;
  std::function<llvm::Value*(const Dim&)> extent_values() {
    return [this](const Dim& d) { return scalar(d); };
  }

  const Kernel& kernel_;
  LaneBuilder b_;
  llvm::IRBuilder<>& ir_;
  llvm::Type* index_type_;  // of index expressions, and of what loops' variables are
  llvm::Function* function_ = nullptr;
  std::optional<SymbolId> lane_;        // the loop that lanes run over
  bool results_vary_ = false;           // a reduction gives one result a lane
  std::vector<Scope> scopes_;
  std::unordered_map<std::uint32_t, std::size_t> symbol_depth_;
  std::unordered_map<OpId, std::size_t> op_depth_;
  std::unordered_map<OpId, bool> op_varies_;
  std::size_t row_depth_ = 1;       // where `reduced` values live
  llvm::Value* tail_mask_ = nullptr;  // of a tail: lanes that exist; the others repeat lane 0
};

}  // namespace tenon::codegen
