// A compiled group: its plan with code behind every step, and how a call runs it.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "fusion/plan.h"
#include "kernel_cache.h"
#include "product_run.h"
#include "tenon/backend.h"

namespace tenon::llvm_backend {

using ir::Dim;

/// What the user may choose, from the backend's section of the configuration and the options of the compile.
struct ProgramOptions {
  bool fuse = true;
  bool matrix_kernels = true;
  bool swap_tiers = true;
  bool relaxed = false;
  bool log_fusion = false;
  bool log_code = false;
  bool log_times = false;
};

/// Runs on many threads at once.
class Program : public Artefact {
 public:
  /// Plans and compiles. `constants` are those of the graph, at addresses that stay.
  Program(HostServices host, KernelCache& cache, ir::Graph graph, const ProgramOptions& options);

  void execute(const TenonExecuteArgs& args) override;
  std::size_t workspace_bytes(std::span<const std::int64_t> symbols) override;
  std::vector<TenonAliasPermit> aliases() const override;

  const codegen::Plan& plan() const { return plan_; }

 private:
  /// A piece of the workspace: of one value, or of several in turn when sizes come with the call.
  struct Slot {
    Dim bytes;
    std::size_t free_after = 0;  // the last step that uses it, while planning
  };
  /// A piece of the workspace that is wanted from one step to another, both included: of a value and of those written over it in turn.
  struct Intermediate {
    std::vector<std::size_t> values;
    Dim bytes;
    std::size_t from, to;
  };

  void place_values();
  std::vector<Intermediate> intermediates() const;
  void place(const Intermediate& intermediate, std::size_t index);
  void place_at_offsets(std::span<const Intermediate> values);
  void place_in_turn(const Intermediate& value);
  void drop_copies_in_place();
  void find_unread();
  std::vector<std::size_t> last_uses() const;
  void compile_kernels(KernelCache& cache, const ProgramOptions& options);
  std::vector<const codegen::KernelStep*> kernel_steps() const;
  std::vector<Place> places_of(const codegen::KernelStep& step) const;
  void execute(const TenonExecuteArgs& args, const std::size_t* offsets);
  void run_step(std::size_t step, const Call& call) const;
  void run_library(const codegen::LibraryStep& step, const Call& call) const;
  void copy_outputs(const Call& call) const;
  bool defines_symbols(ValueId value) const;

  HostServices host_;
  bool log_times_ = false;
  KernelCache& cache_;
  ir::Graph graph_;
  codegen::Plan plan_;
  std::vector<bool> unread_;            // by ValueId: one of several results of a written-out kernel that nobody reads
  std::vector<Place> places_;           // by ValueId; temporaries follow
  std::vector<Slot> slots_;
  std::vector<std::size_t> offsets_;    // of slots, when all sizes are constant
  bool fixed_sizes_ = true;
  std::size_t fixed_bytes_ = 0;
  std::vector<std::variant<std::monostate, CompiledKernel, CompiledProduct, CompiledChain>> code_;  // by step; library calls have none
  std::vector<std::pair<ValueId, std::uint32_t>> copies_;  // outputs that are another value of the group
  std::vector<std::optional<std::pair<Place, Place>>> copied_;  // by step: from where to where a mere copy goes
};

}  // namespace tenon::llvm_backend
