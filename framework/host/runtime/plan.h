// What a compiled graph has become: steps over values, each value with a place.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/ir/graph.h"
#include "host/devices/device.h"
#include "host/partition/group_graph.h"
#include "host/runtime/artefact.h"
#include "host/runtime/environment.h"
#include "host/runtime/plans_by_size.h"
#include "host/runtime/size_expression.h"
#include "host/runtime/stored_graph.h"
#include "tenon/host.h"

namespace tenon::host {

class RunContext;

/// Where the bytes of a value are while a plan runs.
enum class Place : std::uint8_t {
  nowhere,   // a token: it orders, and has no bytes
  input,     // the caller's; `index` among the inputs
  output,    // the caller's; `index` among the outputs
  arena,     // planned
  late,      // allocated while running: its size depends on data
  constant,  // at `pointer`
  literal,   // in the run's own storage
};

struct PlanValue {
  Place place = Place::nowhere;
  std::uint32_t device = 0;  // position in `Plan::devices`; 0 is the host
  std::uint32_t index = 0;  // among the inputs or outputs
  bool late = false;        // the size is known only while running
  const void* pointer = nullptr;
  DType dtype = DType::f32;
  SizeExpressions sizes;
  std::optional<SizeExpressions> strides;  // none: row-major
  ir::Literal literal;
  std::uint32_t first_step = 0;  // that writes it
  std::uint32_t last_step = 0;   // that touches it
  std::string name;
};

/// One step: a group that a backend runs, a copy between layouts or devices that the host makes, or a branch.
struct Step {
  enum class Kind : std::uint8_t { group, copy, branch };
  /// A symbol of the plan that becomes known as the size of an output when the step has run.
  struct Binding {
    std::uint32_t output, dimension;
    SymbolId symbol;
  };

  Kind kind = Kind::group;
  std::vector<std::uint32_t> inputs, outputs;  // values; a copy has one each
  std::size_t first_input = 0, first_output = 0;  // positions in a run's table of pointers
  bool late = false;  // needs sizes or memory that are known only when earlier steps, or this one, have run
  std::uint32_t device = 0;          // that runs it: position in `Plan::devices`
  std::vector<std::uint32_t> waits;  // inputs in the host's memory, which a device writes when it comes to it
  bool gives = false;                // runs on a device, and hands over outputs that have no memory
  bool over_inputs = false;          // may write updates over their targets: what can still fail is waited for

  // Of a group:
  struct Group {
    std::unique_ptr<ir::Graph> graph;  // null where it can be cut out again: `Plan::graph_of`
    std::vector<NodeId> nodes;         // as in GroupGraph
    std::vector<SymbolId> symbols;
    std::vector<ValueId> inputs, outputs;  // while the plan is built
  };
  Group group;
  std::size_t backend = 0;              // position in the environment's order
  std::size_t node_count = 0;           // nodes that compute
  std::shared_ptr<Artefact> artefact;   // null: always runs as another plan
  std::vector<Binding> bindings;
  PlansBySize plans_by_size;

  // Of a branch, whose first input is a bool and whose other inputs are those of both plans: what runs if it holds, and if not.
  std::vector<std::shared_ptr<Plan>> branches;

  /// The plan that runs instead once the backend has failed, or null.
  std::shared_ptr<Plan> detour() const;
  void set_detour(std::shared_ptr<Plan> plan);
  bool has_detour() const { return has_detour_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Plan> detour_;
  std::atomic<bool> has_detour_{false};
};

/// Puts a pointer that the caller gives into the table of a run.
struct Patch {
  std::uint32_t slot, index;
};

/// A compiled graph. Its shape never changes; it learns plans for single sizes, and detours around backends that failed.
class Plan {
 public:
  /// Compiles `graph` with the environment's backends from `first_backend` on. Throws when a node finds no backend.
  /// `expected_sizes` by SymbolId: for backends without dynamic shapes.
  static std::shared_ptr<Plan> compile(std::shared_ptr<Environment> environment, ir::Graph graph, std::size_t first_backend,
                                       std::vector<std::int64_t> expected_sizes);
  ~Plan();

  /// What must not be negative for a call's sizes: what shape inference has taken so, and the ranges of the symbols leave open.
  void expect_not_negative(std::vector<ir::Dim> dims) { not_negative_ = std::move(dims); }
  /// Throws (invalid_argument) where the graph does not hold for these values of the symbols.
  void require_sizes(const std::int64_t* symbols) const;

  /// Runs; throws a Failure. Any number of threads may run one plan.
  void run(const TenonRunArgs& args);

  Environment& environment() const { return *environment_; }
  /// Stays in memory from then on.
  const ir::Graph& graph() const { return graph_.read(); }
  const std::vector<ir::SymbolInfo>& symbols() const { return symbols_; }
  /// Whether a symbol is a size that depends on data.
  bool is_late(SymbolId symbol) const { return std::ranges::find(late_symbols_, symbol) != late_symbols_.end(); }
  /// The graph of a group's step.
  ir::Graph graph_of(const Step& step) const;
  const std::vector<PlanValue>& values() const { return values_; }
  const std::vector<std::unique_ptr<Step>>& steps() const { return steps_; }
  /// The types of the outputs as the caller states them, layouts included.
  const std::vector<ir::Type>& output_types() const { return output_types_; }
  /// The value that each output of the graph is written to.
  const std::vector<std::uint32_t>& output_values() const { return output_values_; }
  std::size_t conversions() const { return conversions_; }
  /// Those that the plan uses; the first is the host.
  const std::vector<Device*>& devices() const { return devices_; }

  /// Adds what the runs have counted since the last time to the counters of the backends.
  void collect();
  /// Sizes of the arena of the latest run: planned, the least that any plan needs, and without sharing.
  struct ArenaSizes {
    std::size_t planned = 0, lower_bound = 0, unshared = 0;
  };
  ArenaSizes arena_sizes() const;
  /// Of the latest run.
  PeakMemory peak_memory() const;

 private:
  friend class PlanBuilder;
  friend class RunContext;
  friend class PlanRun;
  Plan();
  std::int32_t run_direct(const TenonRunArgs& args, bool& misused);
  RunContext* acquire();
  void release(RunContext* context);
  void drop(const RunContext* context);
  void collect(RunContext& context);

  std::shared_ptr<Environment> environment_;
  StoredGraph graph_;
  std::vector<ir::SymbolInfo> symbols_;  // of the graph
  std::vector<Device*> devices_;
  std::vector<PlanValue> values_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<ir::Type> output_types_;
  std::vector<std::uint32_t> output_values_;
  std::vector<Patch> input_patches_, output_patches_;
  /// An output that is written back to an input, both by position.
  struct Update {
    std::uint32_t output, target;
    /// The step that may write it over its target: whatever fails, it does before that. None: it is computed beside it.
    std::optional<std::uint32_t> in_place_by;
  };
  std::vector<Update> updates_;
  std::vector<SymbolId> late_symbols_;   // sizes that depend on data
  std::vector<SymbolId> given_symbols_;  // what a call gives and the graph reads
  std::vector<ir::Dim> not_negative_;
  /// The only step takes the caller's pointers in the order in which they come, and nothing is written back.
  bool passes_through_ = false;
  std::atomic<bool> direct_{false};  // and needs no more: a run needs no context
  std::atomic<bool> calls_host_{false};  // the artefact asks for memory or hands tensors over, which needs one
  std::atomic<std::int64_t> direct_runs_{0};
  std::int64_t collected_direct_runs_ = 0;
  std::size_t table_size_ = 0;
  std::size_t conversions_ = 0;

  std::atomic<RunContext*> spare_{nullptr};  // the context of the last run, for the next
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<RunContext>> contexts_;
  std::vector<RunContext*> free_;
};

}  // namespace tenon::host
