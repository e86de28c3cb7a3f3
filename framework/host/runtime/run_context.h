// Everything that one run of a plan writes to: pointers, sizes, scratch memory. Kept between runs, so that a run whose sizes are
// those of the last one computes nothing but pointers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/memory/arena_plan.h"
#include "host/machine/memory_pool.h"
#include "host/runtime/loose_memory.h"
#include "host/runtime/plan.h"
#include "host/runtime/run_devices.h"

namespace tenon::host {

/// Counts of one step in one context; written by the thread that runs, read by whoever collects.
struct StepCounts {
  std::atomic<std::int64_t> runs{0}, timed_runs{0}, nanoseconds{0};
  std::int64_t collected_runs = 0, collected_timed_runs = 0, collected_nanoseconds = 0;

  /// Adds without a locked instruction: only one thread writes at a time.
  static void add(std::atomic<std::int64_t>& counter, std::int64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
};

class RunContext;

/// What a running artefact's TenonCall refers to.
struct StepCall {
  RunContext* run = nullptr;
  std::uint32_t step = 0;
  std::string defect;  // what the backend did wrong while running
};

/// The state of one step.
struct StepState {
  TenonExecuteArgs args{};
  TenonCall call{};
  StepCall call_state;
  std::vector<std::int64_t> symbols;  // by SymbolId of the group
  std::shared_ptr<Plan> route;        // runs instead of the artefact
  bool plain = false;                 // the artefact runs, and nothing is to be done before or after
  StepCounts counts;
  // of a copy
  std::vector<std::int64_t> sizes, from_strides, to_strides;
};

/// Memory that was taken while running and goes when the run ends.
struct LateMemory {
  void* memory = nullptr;
  std::size_t bytes = 0;
  std::uint32_t device = 0;
  DLManagedTensorVersioned* tensor = nullptr;  // instead, handed over by a backend
  const TenonHost* watched = nullptr;          // by which its deleter is watched
};

class RunContext {
 public:
  explicit RunContext(Plan& plan);
  ~RunContext();
  RunContext(const RunContext&) = delete;

  /// Makes the context fit the sizes of a call: places values, chooses plans by size. Does nothing when they are those of the last.
  void fit(const std::int64_t* symbols);
  /// Puts the caller's pointers in place; `args` is used until `finish`.
  void begin(const TenonRunArgs& args);
  /// Whether nothing of this context mattered to its last run, nor will to any other: the plan has no symbols either.
  bool was_idle() const;
  /// Frees what the run took.
  void finish();

  Plan& plan;
  std::vector<std::int64_t> symbols;  // by SymbolId; -1 for those that are not known yet
  std::vector<void*> table;
  std::vector<std::unique_ptr<StepState>> steps;
  const TenonRunArgs* call = nullptr;
  bool timed = false;
  bool watched = false;  // steps are timed or checked
  Plan::ArenaSizes arena_sizes;
  std::unique_ptr<RunDevices> devices;  // null for a plan of the host alone
  std::unique_ptr<LooseMemory> loose;   // null where all that is planned lies in arenas

  // Values of sizes that depend on data, by value of the plan: where they are in this run, and how large.
  struct LateValue {
    void* pointer = nullptr;
    bool sized = false;
    std::vector<std::int64_t> sizes;
  };
  std::vector<LateValue> late_values;

  /// Symbols, plans by size, memory of a step that waits for sizes.
  void prepare_late(std::uint32_t step);
  /// After a late step: binds the symbols that it defines. Gives what the backend left out, or gave wrongly; empty when nothing is.
  /// Throws for a size for which the graph does not hold.
  std::string complete_late(std::uint32_t step);
  /// Asks the caller for the memory of what the step is the first to write, where the caller has given none.
  void ask_for_outputs(const Step& step);
  /// The same of all steps.
  void ask_for_all_outputs();
  /// Gives memory for a value whose sizes are now known: of the caller, or of the pool.
  void* allocate_late(std::uint32_t value, std::vector<std::int64_t> sizes);
  void* take_memory(std::size_t bytes, std::uint32_t device = 0);
  void keep_tensor(DLManagedTensorVersioned* tensor, const TenonHost* watched) { taken_.push_back({nullptr, 0, 0, tensor, watched}); }

  std::vector<std::int64_t> sizes_of(const PlanValue& value) const;
  std::vector<std::int64_t> strides_of(const PlanValue& value, const std::vector<std::int64_t>& sizes) const;
  std::size_t bytes_of(const PlanValue& value) const;

  /// Has updates computed beside their targets that a step would write over them: another way to run it may fail halfway.
  void stage_updates_of(std::uint32_t step);
  /// Writes updates that were computed beside their targets.
  void commit_updates();

 private:
  void lay_out();
  bool is_loose(std::uint32_t device, std::size_t bytes) const;
  void arrange_loose();
  /// What shares the arena of one device.
  struct ArenaContent {
    std::vector<ArenaRequest> requests;
    std::vector<std::uint32_t> owners;  // value, or past the values: the workspace of a step
  };
  std::vector<std::size_t> offsets_in_arena(const ArenaContent& content, std::size_t& bytes);
  void place_values(const ArenaContent& content);
  void place_in_arena(void** pointer, std::size_t offset);
  void take_arena();
  void place_on_device(std::uint32_t device, const ArenaContent& content);
  void place_literals();
  void fit_step(std::uint32_t step);
  void choose_route(std::uint32_t step);
  void ask_for_workspace(std::uint32_t step);
  void* memory_of_caller(const PlanValue& value, std::span<const std::int64_t> sizes, std::size_t bytes);
  void point_output(std::uint32_t position, void* memory);
  void stage_updates();
  void stage(std::uint32_t position, void* target);
  void commit_on_devices();

  bool fitted_ = false;
  PoolBlock arena_;
  // A large arena is taken for the run alone: plans that do not run at the same time need it one after the other.
  std::size_t lent_bytes_ = 0;          // 0 for a small one
  std::byte* placed_at_ = nullptr;      // where these point
  std::vector<RunDevices::ArenaPointer> arena_pointers_;
  std::vector<std::size_t> workspace_bytes_;  // by step
  std::vector<std::uint64_t> literals_;       // by value of the plan: the bits of literals
  std::vector<LateMemory> taken_;
  struct Staged {
    void* memory;
    void* target;
    std::size_t bytes;
    std::uint32_t position;  // of the output
  };
  std::vector<Staged> staged_;
};

}  // namespace tenon::host
