// A compiled group: its plan with code behind every step, and how a call runs it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fusion/plan.h"
#include "kernel_cache.h"
#include "loops/sizes_at_run_time.h"
#include "placement.h"
#include "product_run.h"
#include "tenon/backend.h"

namespace tenon::llvm_backend {

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
  void drop_copies_in_place();
  void compile_kernels(KernelCache& cache, const ProgramOptions& options);
  std::vector<const codegen::KernelStep*> kernel_steps() const;
  std::vector<std::optional<codegen::SizedKernel>> shared_kernels(const std::vector<const codegen::KernelStep*>& steps, std::size_t least) const;
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
  Placement placement_;
  std::vector<std::variant<std::monostate, CompiledKernel, CompiledProduct, CompiledChain>> code_;  // by step; library calls have none
  std::vector<std::optional<std::pair<Place, Place>>> copied_;  // by step: from where to where a mere copy goes
};

}  // namespace tenon::llvm_backend
