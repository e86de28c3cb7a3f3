// NVIDIA's GPUs from sm_75 on: arithmetic, and how a thread knows itself and talks to the others of its block.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "scalars/lane_builder.h"
#include "schedule/schedule.h"

namespace tenon::cuda {

/// Where what it emits runs is a matter of a few virtual functions, so that tests may run it elsewhere. Where threads talk to each other, all
/// of a warp (of a block) are there.
class PtxIsa : public codegen::Isa {
 public:
  /// `waits`: kernels wait for what is before them, which may not have ended when they start (from sm_90 on).
  explicit PtxIsa(bool waits = false) : waits_(waits) {}
  static PtxIsa of(const std::string& architecture) { return PtxIsa(number_of(architecture) >= 90); }
  /// 90 of "sm_90a".
  static int number_of(const std::string& architecture);
  bool waits() const { return waits_; }

  bool has_fma() const override { return true; }
  bool has_half() const override { return true; }
  void declare(llvm::Function& function) const override;
  llvm::Value* function(codegen::LaneBuilder& b, ops::Primitive p, llvm::Value* x, llvm::Value* y) const override;

  // ---- a kernel
  virtual llvm::Function* make_kernel(codegen::LaneBuilder& b, const codegen::Kernel& kernel, const Schedule& schedule, const std::string& name) const;
  virtual llvm::Value* buffer(codegen::LaneBuilder& b, llvm::Function& kernel, std::size_t number) const;
  /// Comes before all else of a kernel.
  virtual void begin(codegen::LaneBuilder& b) const;
  /// The bits, as i64, of a buffer that its parameter gives itself.
  virtual llvm::Value* number(codegen::LaneBuilder& b, llvm::Function& kernel, std::size_t number) const;
  /// The 8 bytes of an entry, an i64, of the table that is the first parameter of a kernel of several runs.
  virtual llvm::Value* in_table(codegen::LaneBuilder& b, llvm::Function& kernel, llvm::Value* entry) const;
  /// `number` counts Schedule::symbols, after so many parameters.
  virtual llvm::Value* symbol(codegen::LaneBuilder& b, llvm::Function& kernel, std::size_t before, std::size_t number) const;
  virtual unsigned global_memory() const { return 1; }  // as an address space

  // ---- a thread (numbers are i32)
  virtual llvm::Value* block_number(codegen::LaneBuilder& b) const;
  virtual llvm::Value* thread_number(codegen::LaneBuilder& b) const;
  /// What the thread `distance` further in the warp has of an i32; its own, where there is none.
  virtual llvm::Value* from_further(codegen::LaneBuilder& b, llvm::Value* bits, unsigned distance) const;
  /// What the thread has whose number in the warp differs in these bits.
  virtual llvm::Value* from_other(codegen::LaneBuilder& b, llvm::Value* bits, unsigned differs) const;
  /// What the first thread of the warp has.
  virtual llvm::Value* from_first(codegen::LaneBuilder& b, llvm::Value* bits) const;
  /// Waits until all threads of the block are here.
  virtual void meet(codegen::LaneBuilder& b) const;
  /// Ends all that runs on the card where the i1 holds, as an assertion does: nothing that the context had is of use then.
  virtual void fail_where(codegen::LaneBuilder& b, llvm::Value* condition) const;
  /// Memory that the threads of a block share, of at least so many i64.
  virtual llvm::Value* shared_memory(codegen::LaneBuilder& b, std::size_t words) const;

  // ---- products of matrices, from sm_80 on (tensor_core_isa.cpp)
  /// Memory that the threads of a block share, of so many bytes, which the launch gives.
  virtual llvm::Value* large_shared_memory(codegen::LaneBuilder& b, std::size_t bytes, unsigned alignment) const;
  /// Copies 4, 8 or 16 bytes to shared memory; zeros where `inside`, an i1 or null, does not hold. Copies go on until they are waited for.
  virtual void copy_to_shared(codegen::LaneBuilder& b, llvm::Value* to, llvm::Value* from, unsigned bytes, llvm::Value* inside) const;
  /// Makes those since the last time one group; and waits until no more than so many groups go on.
  virtual void commit_copies(codegen::LaneBuilder& b) const;
  virtual void wait_for_copies(codegen::LaneBuilder& b, unsigned groups) const;
  /// Four matrices of eight rows of 16 bytes. Thread 8 * i + r gives where row r of matrix i lies; thread 4 * r + w gets of each the word w of row r;
  /// of transposed ones, which have numbers of 16 bits, numbers 2 * w and 2 * w + 1 of column r.
  virtual std::vector<llvm::Value*> load_matrices(codegen::LaneBuilder& b, llvm::Value* address, bool transposed) const;
  /// sums + a * b of 16 x 8 sums over 32 bytes of each: words in, floats out, as the threads of a warp share them.
  virtual std::vector<llvm::Value*> multiply(codegen::LaneBuilder& b, DType dtype, std::span<llvm::Value* const> left, std::span<llvm::Value* const> right, std::span<llvm::Value* const> sums) const;
  /// Two floats, rounded to half precision, in a word.
  virtual llvm::Value* packed(codegen::LaneBuilder& b, DType dtype, llvm::Value* low, llvm::Value* high) const;
  /// 2 to the power of a float, within 2 units of the last place; what is no normal number is zero.
  virtual llvm::Value* power_of_two(codegen::LaneBuilder& b, llvm::Value* x) const;
  /// Makes copies that the thread has waited for visible to what warpgroups read, once the block has met.
  virtual void show_to_warpgroups(codegen::LaneBuilder& b) const;
  /// What 64 rows of a warpgroup are multiplied by, in parts of 32 bytes of the sum: `left` has four words a part as `multiply` has them, or is empty,
  /// and 64 rows of the sum lie at `rows`; of the right operand there are as many at `columns` as there are sums. Both as TileOperand::swizzled says.
  struct WarpgroupOperands {
    std::span<llvm::Value* const> left;
    llvm::Value *rows, *columns;
    unsigned parts;
  };
  /// sums + a * b of all operands, each in registers or each not, from sm_90a on; of a warp 16 rows, and of each 8 columns four sums as `multiply` has them. Nothing may touch them, nor what `left` has,
  /// before they are waited for.
  virtual std::vector<llvm::Value*> multiply_by_warpgroup(codegen::LaneBuilder& b, DType dtype, std::span<const WarpgroupOperands> operands, std::span<llvm::Value* const> sums) const;
  virtual std::vector<llvm::Value*> wait_for_warpgroup(codegen::LaneBuilder& b, std::span<llvm::Value* const> sums) const;
  /// Waits for all threads of the block, as `meet`: whether the i1 holds for one of them.
  virtual llvm::Value* any_of_block(codegen::LaneBuilder& b, llvm::Value* condition) const;
  /// Waits until all threads of all blocks of the cluster are here, from sm_90 on; and the block's number in it.
  virtual void meet_cluster(codegen::LaneBuilder& b) const;
  virtual llvm::Value* number_in_cluster(codegen::LaneBuilder& b) const;
  /// One, two or four floats at the place of another block's memory that the address is in this block's.
  virtual std::vector<llvm::Value*> load_from_cluster(codegen::LaneBuilder& b, llvm::Value* address, unsigned block, unsigned count) const;

 private:
  bool waits_;
};

}  // namespace tenon::cuda
