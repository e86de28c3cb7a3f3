// A compiled group: its kernels on a card, and how a call launches them.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/module.h"
#include "places/placement.h"
#include "run/kernels.h"
#include "tenon/backend.h"

namespace tenon::cuda {

/// Runs on many threads at once.
class CardProgram : public Artefact {
 public:
  /// Plans and compiles for the card on which the graph's tensors are.
  CardProgram(HostServices host, ir::Graph graph, bool fuse);

  void execute(const TenonExecuteArgs& args) override;
  std::size_t workspace_bytes(std::span<const std::int64_t> symbols) override;
  std::vector<TenonAliasPermit> aliases() const override;

 private:
  /// One run of a kernel.
  struct Launch {
    std::size_t kernel;
    std::vector<codegen::Place> buffers;
  };
  /// The kernels as functions on the card.
  struct Code {
    Code(int ordinal, const ScheduledPlan& plan, const std::string& ptx);
    Module module;
    std::vector<Schedule> schedules;
    std::vector<CUfunction> functions;
  };
  /// A number in the host's memory that the group reads.
  struct Number {
    std::size_t input, bytes;
  };
  struct Call;

  std::unique_ptr<const Code> compile(const ScheduledPlan& plan) const;
  const Code& loose_code();
  void find_numbers();
  void find_launches();
  /// Gives the numbers places on the card.
  void send_numbers(Call& call) const;
  void launch(const Launch& launch, const Code& code, const Call& call) const;

  HostServices host_;
  ir::Graph graph_;
  int ordinal_;
  ScheduledPlan plan_;
  codegen::Placement placement_;
  std::vector<Number> numbers_;
  std::vector<Launch> launches_;
  std::unique_ptr<const Code> code_, loose_;
  std::once_flag loose_made_;
};

}  // namespace tenon::cuda
