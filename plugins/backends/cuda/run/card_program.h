// A compiled group: its kernels on a card, and how a call launches them.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "places/placement.h"
#include "run/card_code.h"
#include "run/kernels.h"
#include "tenon/backend.h"

namespace tenon::cuda {

/// Runs on many threads at once.
class CardProgram : public Artefact {
 public:
  struct Options {
    bool fuse = true;    // nodes into common kernels
    bool graphs = true;  // launch all kernels as one graph of the driver
    bool tensor_cores = true;  // multiply, where the card has them
    Rounding rounding{};
  };

  /// Plans and compiles for the card on which the graph's tensors are.
  CardProgram(HostServices host, ir::Graph graph, const Options& options);

  void execute(const TenonExecuteArgs& args) override;
  std::size_t workspace_bytes(std::span<const std::int64_t> symbols) override { return placement_.workspace_bytes(symbols); }
  std::vector<TenonAliasPermit> aliases() const override;

 private:
  /// What a parameter of a kernel is made of.
  struct Parameter {
    codegen::Place place;
    bool number = false;  // not the address but what is there, of so many bytes
    std::uint8_t bytes = 0;
  };
  /// One launch of a kernel, of one run or more.
  struct Run {
    std::size_t kernel;
    std::size_t count;                   // of its runs
    std::vector<Parameter> parameters;   // run by run, as many as the kernel has room for: the last one again
  };
  struct Call;

  CardCode& loose_code();
  void say_steps();
  /// Launches one by one, and tells what each step took.
  void launch_timed(const CardCode& code, const Call& call) const;
  void find_runs();
  /// Those of a run of the step.
  void add_parameters(Run& run, std::size_t number) const;
  const codegen::Buffer& buffer_of(const Run& run, std::size_t parameter) const;
  void find_order();
  std::vector<KernelLaunch> launches(const CardCode& code, const Call& call) const;
  KernelLaunch launch(const Run& run, const CardCode& code, const Call& call) const;
  /// Calls `visit` with all that the launches of a call depend on, in the same order each time.
  template <class Visit>
  void for_each_given(const Call& call, const Visit& visit) const;
  bool was_given(const Call& call, std::span<const std::uint64_t> given) const;
  /// Launches the graph that the code has for a call, or a new one.
  void launch_graph(CardCode& code, const Call& call) const;

  HostServices host_;
  ir::Graph graph_;
  int ordinal_;
  bool graphs_;
  ScheduledPlan plan_;
  codegen::Placement placement_;
  std::vector<Run> runs_;
  std::vector<std::vector<std::size_t>> after_;  // by run
  std::vector<std::uint8_t> number_bytes_;       // by input: of one that is read by value; else 0
  bool fixed_ = true;                            // every call launches the same kernels on as many blocks
  std::unique_ptr<CardCode> code_, loose_;
  std::once_flag loose_made_;
  bool log_times_;
  std::size_t number_ = 0;  // of the program, where its steps are said
};

}  // namespace tenon::cuda
