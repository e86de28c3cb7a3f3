// Values of devices with memory of their own: taken at the first step that touches them, given back behind the last. An arena is held for as long as
// the run; where a backend brings some of the memory itself, what is not alive would lie beside that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/abi/plugin.h"
#include "core/memory/arena_plan.h"

namespace tenon::host {

class RunContext;
struct Step;

/// Of one context, whose table of pointers it fills while the run goes on.
class LooseMemory {
 public:
  explicit LooseMemory(RunContext& run);
  LooseMemory(const LooseMemory&) = delete;

  // For the sizes of the coming runs: `arrange` when all is added.
  void add_value(std::uint32_t value, std::size_t bytes);
  void add_workspace(std::uint32_t step, std::size_t bytes);
  void arrange();
  /// What would lie in an arena.
  const std::vector<ArenaRequest>& requests() const { return requests_; }

  /// Takes what a step writes to, but for what its artefact hands over. Throws (out_of_memory).
  void before(std::uint32_t step);
  /// Gives back what no later step touches.
  void after(std::uint32_t step) noexcept;
  /// Whether the step writes over its inputs.
  bool is_over_inputs(std::uint32_t step) const;
  /// The step runs another way than as its artefact: everything that it writes to is fresh memory. Throws (out_of_memory).
  void leave_artefact(std::uint32_t step);

  /// Whether it is an output of the step that its artefact is to hand over, and has not yet.
  bool awaits(std::uint32_t step, std::uint32_t value) const;
  /// Takes a tensor as such an output.
  void keep(std::uint32_t step, std::uint32_t value, void* data, DLManagedTensorVersioned* tensor, const TenonHost* watched);
  /// Memory for one that is written instead. Throws (out_of_memory).
  void* take(std::uint32_t step, std::uint32_t value);
  /// What the artefact has left out; empty where nothing is.
  std::string missing(std::uint32_t step) const;

  /// Gives back all that a run has left.
  void release_all() noexcept;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Block {
    std::uint32_t value = kNone;  // none: workspace
    std::uint32_t device = 0;
    std::size_t bytes = 0;
    bool given = false;           // by the artefact of its first step
    std::vector<void**> slots = {};  // that point to it
    std::uint32_t heir_of = kNone;  // the block whose memory it may have
    // of the run
    void* memory = nullptr;
    DLManagedTensorVersioned* tensor = nullptr;  // that the memory is of
    const TenonHost* watched = nullptr;
    bool inherited = false;
  };

  std::uint32_t add(Block block, std::uint32_t first_step, std::uint32_t last_step);
  Block& block_of(std::uint32_t step, std::uint32_t value);
  void find_heirs(std::uint32_t step);
  void point(Block& block, void* memory) const;
  void take(Block& block) const;
  bool inherit(Block& block);
  void give_back(Block& block) const noexcept;

  RunContext& run_;
  std::vector<Block> blocks_;
  std::vector<ArenaRequest> requests_;
  std::vector<std::vector<std::uint32_t>> first_, last_;  // blocks by step
};

}  // namespace tenon::host
