// The emitter's state, shared by the files that implement it: units, lanes, memory, reductions.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "decisions/cpu_schedule.h"
#include "vectors/kernel_emitter.h"
#include "nests/nest_emitter.h"
#include "isa/x86_isa.h"
#include "loops/interior.h"

namespace tenon::llvm_backend {

using namespace codegen;

class KernelEmitter final : private NestEmitter {
 public:
  /// `interior`: null where the kernel is the same at all of its points.
  KernelEmitter(llvm::Module& module, const Kernel& kernel, const Interior* interior, const Target& target, const X86Isa& isa)
      : NestEmitter(module, kernel, isa), schedule_(schedule_of(kernel)), target_(target), interior_(interior), stages_(&kernel.stages), needed_(needed_by(kernel, kernel.stages)) {}

  void emit(const std::string& name);

 private:
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
  llvm::Value* over_whole_vectors(unsigned lanes, llvm::Value* low, llvm::Value* high, const std::function<void()>& body);
  void over_masked_vectors(llvm::Value* low, llvm::Value* high, bool whole, const std::function<void()>& body);
  /// The same with the vectors that lie inside of all bounds apart.
  void over_parts(llvm::Value* low, llvm::Value* high);
  std::pair<llvm::Value*, llvm::Value*> inside(llvm::Value* low, llvm::Value* high);
  std::optional<std::int64_t> left_by_vectors(std::int64_t lanes) const;
  /// False when the loop over lanes is known to be shorter than one vector.
  bool fills_vectors(std::int64_t lanes) const;
  llvm::Value* mask_of_tail(llvm::Value* position, llvm::Value* high);

  // ---- memory (memory_emission.cpp)
  llvm::Value* graph_symbol(SymbolId symbol) override;
  llvm::Value* start_of_buffer(std::uint64_t number) override;
  Lanes load(const Operation& op) override;
  Lanes checked(const Operation& op) override;
  Lanes old_value(const Operation& op) override;
  void store(const Store& store) override;
  Lanes uniform_load(const Operation& op);
  void fetch_ahead(llvm::Value* address, std::size_t bytes);
  Lanes contiguous_load(const Operation& op, llvm::Value* mask);
  llvm::Value* masked_elements(DType storage, llvm::Value* address, llvm::Value* mask, llvm::Value* otherwise);
  Lanes gathered_load(const Operation& op, llvm::Value* mask);
  llvm::Value* gathered_elements(const Operation& op, llvm::Value* mask);
  llvm::Value* paired_elements(const Operation& op, llvm::Value* mask);
  llvm::Value* spaced_elements(const Operation& op, unsigned distance);
  bool reads_beside(const Operation& op, std::int64_t distance) const;
  llvm::Value* doubled(llvm::Value* mask);
  llvm::Value* parted_elements(const Operation& op, llvm::Value* mask, bool second);
  bool alternate(const Store& s, const Store& next);
  void store_pairs(const Store& s, const Store& next);
  bool is_clamped(const Dim& index);
  llvm::Value* clamped_elements(std::uint64_t buffer, const Dim& rest, const Dim& index, llvm::Value* mask);
  bool streams_to(const Store& store);
  void report_fault(const Operation& check, llvm::Value* inside, const Lanes& index, llvm::Value* size);
  llvm::Value* element_address(std::uint64_t buffer, const Dim& offset);
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

  const CpuSchedule& schedule_;
  const Target& target_;
  const Interior* interior_;
  const std::vector<Stage>* stages_;  // what is emitted: the kernel's, or those of its interior
  std::vector<bool> needed_;          // operations that these need
  const Store* scatter_ = nullptr;
};

}  // namespace tenon::llvm_backend
