// NVIDIA's GPUs from sm_75 on: arithmetic, and how a thread knows itself and talks to the others of its block.
#pragma once

#include <string>

#include "scalars/lane_builder.h"
#include "schedule/schedule.h"

namespace tenon::cuda {

/// Where what it emits runs is a matter of a few virtual functions, so that tests may run it elsewhere. Where threads talk to each other, all
/// of a warp (of a block) are there.
class PtxIsa : public codegen::Isa {
 public:
  /// `waits`: kernels wait for what is before them, which may not have ended when they start (from sm_90 on).
  explicit PtxIsa(bool waits = false) : waits_(waits) {}
  static PtxIsa of(const std::string& architecture);
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
  /// `number` counts Schedule::symbols, after so many buffers.
  virtual llvm::Value* symbol(codegen::LaneBuilder& b, llvm::Function& kernel, std::size_t buffers, std::size_t number) const;
  virtual unsigned global_memory() const { return 1; }  // as an address space

  // ---- a thread (numbers are i32)
  virtual llvm::Value* block_number(codegen::LaneBuilder& b) const;
  virtual llvm::Value* thread_number(codegen::LaneBuilder& b) const;
  /// What the thread `distance` further in the warp has of an i32; its own, where there is none.
  virtual llvm::Value* from_further(codegen::LaneBuilder& b, llvm::Value* bits, unsigned distance) const;
  /// What the first thread of the warp has.
  virtual llvm::Value* from_first(codegen::LaneBuilder& b, llvm::Value* bits) const;
  /// Waits until all threads of the block are here.
  virtual void meet(codegen::LaneBuilder& b) const;
  /// Ends all that runs on the card where the i1 holds, as an assertion does: nothing that the context had is of use then.
  virtual void fail_where(codegen::LaneBuilder& b, llvm::Value* condition) const;
  /// Memory that the threads of a block share, of at least so many i64.
  virtual llvm::Value* shared_memory(codegen::LaneBuilder& b, std::size_t words) const;

 private:
  bool waits_;
};

}  // namespace tenon::cuda
