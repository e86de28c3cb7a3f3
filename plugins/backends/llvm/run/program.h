// A compiled group: its plan with code behind every step, and how a call runs it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compile/kernel_cache.h"
#include "fusion/plan.h"
#include "loops/sizes_at_run_time.h"
#include "places/placement.h"
#include "decisions/cpu_machine.h"
#include "product_run.h"
#include "tenon/backend.h"
#include "tenon/profiling.h"

namespace tenon::llvm_backend {

using codegen::Placement;
using ir::Dim;
using ir::ValueId;

/// What the user may choose, from the backend's section of the configuration and the options of the compile.
struct ProgramOptions {
  bool fuse = true;
  bool matrix_kernels = true;
  bool swap_tiers = true;
  bool relaxed = false;
  std::size_t least_shared = 8;  // small kernels that differ in sizes alone, from which on one takes them with the call
  bool log_fusion = false;
  bool log_code = false;
  bool log_times = false;
  bool log_steps = false;
  bool keep_plan = false;  // for those who look at it
};

/// Runs on many threads at once.
class Program : public Artefact {
 public:
  /// Plans and compiles. `constants` are those of the graph, at addresses that stay. What only that needs is not kept.
  Program(HostServices host, KernelCache& cache, ir::Graph graph, const ProgramOptions& options);

  ~Program() override;

  void execute(const TenonExecuteArgs& args) override;
  std::size_t workspace_bytes(std::span<const std::int64_t> symbols) override;
  std::vector<TenonAliasPermit> aliases() const override { return aliases_; }

  /// Where `keep_plan` was asked for.
  const codegen::Plan& plan() const { return plan_; }
  /// What step `step` of the plan is as tiles; null where it is no product, or no two of them.
  const TiledProduct* product(std::size_t step) const { return std::get_if<TiledProduct>(&tiles_[step]); }
  const PanelChain* chain(std::size_t step) const { return std::get_if<PanelChain>(&tiles_[step]); }

 private:
  void drop_copies_in_place();
  void make_tiles(const CpuMachine& machine, const std::function<void(const std::string&)>& log);
  void compile_kernels(KernelCache& cache, const ProgramOptions& options);
  void drop_what_only_compiling_needs(const ProgramOptions& options);
  std::vector<const codegen::KernelStep*> kernel_steps() const;
  std::vector<std::optional<codegen::SizedKernel>> shared_kernels(const std::vector<const codegen::KernelStep*>& steps, std::size_t least) const;
  std::vector<Place> places_of(const codegen::KernelStep& step) const;
  void say_steps();
  void name_steps();
  void begin_range(Range& range, std::size_t step) const;
  std::vector<std::shared_ptr<const CodeName>> code_names(const std::vector<const codegen::KernelStep*>& steps) const;
  void execute(const TenonExecuteArgs& args, const std::size_t* offsets);
  void run_step(std::size_t step, const Call& call) const;
  void run_library(const codegen::LibraryStep& step, const Call& call) const;
  void copy_outputs(const Call& call) const;
  bool defines_symbols(ValueId value) const;

  HostServices host_;
  Profiling profiling_;
  std::string step_names_;  // by step: its ops and its place in the user's program, each with a zero behind it; thousands of programs keep them
  bool log_times_ = false;
  std::size_t number_ = 0;  // of the programs that say their steps
  KernelCache& cache_;
  std::unique_ptr<ir::Graph> graph_;  // where calls of a library and copies of outputs read it
  codegen::Plan plan_;                // where a step calls a library
  std::vector<std::variant<std::monostate, TiledProduct, PanelChain>> tiles_;  // by step: products
  Placement placement_;
  std::size_t symbol_count_ = 0;
  std::vector<TenonAliasPermit> aliases_;
  std::vector<std::variant<std::monostate, CompiledKernel, std::unique_ptr<CompiledProduct>, std::unique_ptr<CompiledChain>>> code_;  // by step; library calls have none
  std::vector<std::optional<std::pair<Place, Place>>> copied_;  // by step: from where to where a mere copy goes; empty where none is one
};

}  // namespace tenon::llvm_backend
