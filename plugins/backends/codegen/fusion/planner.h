// Plans one graph: what lives in memory, which kernel computes what, in which order the steps run.
#pragma once

#include <fmt/format.h>

#include <boost/dynamic_bitset.hpp>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/outputs.h"
#include "fusion/chain.h"
#include "drafts/contraction.h"
#include "drafts/draft.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// True when nothing is left to do after a product but to store it.
bool only_stores(const Kernel& kernel, std::span<const ValueId> buffers, ValueId product);

/// A node as logs call it.
std::string name_of_node(const ir::Graph& graph, NodeId id);

/// True when one step reads the value, and nothing reads another one that the step of the draft computes.
bool gives_once(const Draft& draft, ValueId value, const std::vector<std::size_t>& reads);

/// Decides whether the inner loops may run several times for each outer point: what stays near between the sweeps is a row, or rows that lie side
/// by side (channels last).
bool rows_fit(const Machine& machine, const IndexAlgebra& algebra, const Draft& draft);

/// A step under construction, and the steps that must run before it.
struct PendingStep {
  std::unique_ptr<Draft> draft;  // null: `fixed`
  Step fixed;
  std::optional<Product> product;  // the draft follows it, point by point
  boost::dynamic_bitset<> after; // by step: transitively; may be shorter than the steps
  std::size_t last = 0;          // the place of the node that it waits for
  bool needed = false;           // some step is after it
  bool closed = false;           // nothing may join
  std::vector<ValueId> product_reads = {};  // what the product's operands load
};

class Lifetimes;

class Planner {
 public:
  Planner(const ir::Graph& graph, const Machine& machine, const PlanOptions& options)
      : graph_(graph), machine_(machine), options_(options), algebra_(graph.symbols()), context_{graph, algebra_, machine, {}, {}, {}, {}, options.relaxed, options.keeps_flags} {}

  /// Values that were stored after all, since several kernels would have computed them.
  const std::vector<ValueId>& stored() const { return stored_; }

  Plan run() {
    collect_bodies();
    place_concatenations();
    choose_roots();
    computed_by_.resize(graph_.node_capacity());
    users_ = graph_.users();
    is_output_ = ir::output_values(graph_);
    begin_schedule();
    for (NodeId id : graph_.nodes()) pause(), now_ = place_[id.value], place(id);
    return assemble();
  }

 private:
  // ---- what lives in memory (roots.cpp)
  void collect_bodies();
  void place_concatenations();
  void choose_roots();
  void keep_checks(const std::vector<std::vector<ir::NodeId>>& users);
  double points_of(NodeId id) const;
  bool is_large_product(NodeId id) const;
  bool has_operand_dear_to_write(NodeId product) const;
  void mark_contraction_operands(NodeId id, const std::vector<std::vector<NodeId>>& users);
  bool is_prologue(NodeId product, const std::vector<std::vector<NodeId>>& users) const;
  double cost_from_memory(ValueId value, const ir::Type& type) const;
  bool try_prologue(NodeId id);
  void mark_end_of_product(NodeId id, const std::vector<std::vector<NodeId>>& users);
  bool leads_to_product(NodeId id, const std::vector<std::vector<NodeId>>& users) const;
  ValueId base_through_views(ValueId value) const;
  ValueId written_for_product(ValueId operand) const;
  std::size_t paths_to(NodeId id, const std::vector<std::vector<NodeId>>& users) const;
  void mark_repeated_operands(NodeId id);
  void decide_on(NodeId id, const std::vector<std::vector<NodeId>>& users);
  void mark_early_operands(NodeId id, const Lifetimes& lifetimes);
  void mark_scattered_operands(NodeId id);
  void find_what_feeds_products(const std::vector<std::vector<NodeId>>& users);
  bool is_shortcut(NodeId id, const std::vector<std::vector<NodeId>>& users) const;
  bool reads_at_its_point(NodeId id, ValueId value) const;
  bool is_moved(NodeId id, const std::vector<std::vector<NodeId>>& users, std::size_t most) const;
  double reach_cost(NodeId id);
  bool reads_from(ValueId value, ValueId memory) const;
  bool is_load_of_another(NodeId id, double cost) const;

  // ---- which kernel computes what (joining.cpp)
  void place(NodeId id);
  void place_loop(NodeId id);
  PendingStep kernel_of(NodeId id);
  void open_kernel(NodeId id, PendingStep step);
  void place_product(NodeId id);
  void place_scatter(NodeId id);
  void place_part_write(NodeId id);
  std::size_t add_closed(Draft draft, std::span<const ValueId> writes);
  std::size_t add_copy(ValueId base, ValueId result);
  bool lays_out_stored(NodeId id) const;
  bool try_join(NodeId id, std::size_t step);
  bool follows_product(const Draft& draft, std::size_t step) const;
  bool try_add(NodeId id, std::size_t step, std::span<const Dim> index, bool map_inside);
  std::vector<std::vector<Dim>> inner_mappings(const Draft& draft, const ops::LoopBody& body) const;
  std::vector<std::vector<Dim>> outer_permutations(const Draft& draft, const ops::LoopBody& body) const;
  struct Reshaped {
    std::vector<Dim> index;
    std::size_t loops;  // that it walks over
  };
  std::optional<Reshaped> reshaped(std::span<const Loop> loops, const ops::LoopBody& body) const;
  std::vector<std::size_t> candidates(NodeId id) const;
  bool runs_after(std::size_t step, std::size_t other) const {
    return other < steps_[step].after.size() && steps_[step].after.test(other);
  }
  std::vector<std::size_t> producers_of(const Draft& draft, std::size_t self) const;
  void depend(std::size_t step, std::size_t on);
  std::size_t add_step(PendingStep step, std::span<const ValueId> reads, std::span<const ValueId> writes);
  /// The steps so far that write into a value's memory.
  std::vector<std::size_t> writers_of(ValueId value) const;
  void pause() const {
    if (options_.pause) options_.pause();
  }
  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }
  std::string name_of_node(NodeId id) const { return codegen::name_of_node(graph_, id); }

  // ---- when steps run, and what is alive meanwhile (scheduling.cpp)
  /// A step as it would be.
  struct Change {
    std::size_t step;
    const Draft* draft;  // null: a library call
    std::size_t last;
    boost::dynamic_bitset<> after;
  };
  /// The last steps in a new order.
  struct Reordering {
    std::size_t begin;
    std::vector<std::size_t> steps;
  };
  void begin_schedule();
  void find_lives();
  void find_lives_with(NodeId stored);
  /// The place of the last node in memory that is computed with results of the node, or that it is itself.
  std::size_t last_maker_of(NodeId id) const;
  /// The place of the last node in memory that is computed of the value, or of what lies in its memory.
  std::size_t last_reader_of(ValueId value) const;
  bool begins_life(ValueId written) const;
  void set_life(ValueId memory, std::size_t begin, std::size_t end);
  bool has_life(ValueId value) const { return bytes_[value.value] > 0; }
  std::vector<ValueId> reads_of(const PendingStep& step, const Draft* draft) const;
  std::vector<ValueId> writes_of(const PendingStep& step, const Draft* draft) const;
  Change change_of(std::size_t step, const Draft* draft) const;
  Reordering reordered(const Change& change) const;
  double most_alive(const Reordering& order, const Change& change, std::size_t place) const;
  bool may_live_from(std::size_t step, NodeId node) const;
  void take(const Reordering& order);
  void schedule(std::size_t step);
  void write(ValueId value, std::size_t step);

  // ---- what several kernels would compute (recomputation.cpp)
  struct Passing {
    std::size_t step;
    std::vector<Dim> index;
    StageKind kind;
  };
  void note_computed(std::size_t step, std::size_t first);
  std::optional<Passing> passing(NodeId id) const;
  std::optional<NodeId> computed_again(const Draft& draft, std::size_t first, std::size_t step) const;
  void store_computed(NodeId id);
  /// Makes a draft anew until nothing dear is in it that other kernels compute.
  template <class Make>
  Draft settled(Make make) {
    for (;;) {
      Draft draft = make();
      const auto again = computed_again(draft, 0, kNoStep);
      if (!again) return draft;
      store_computed(*again);
    }
  }

  // ---- products that share rows (chaining.cpp)
  struct Chained {
    ChainStep step;
    std::size_t first, between;  // steps that are part of it
  };
  std::optional<Chained> chain_at(std::size_t last, const std::vector<std::size_t>& reads);
  std::vector<std::optional<Chained>> find_chains(const std::vector<std::size_t>& reads);

  // ---- products that are pooled as they come (pooling.cpp)
  struct Pooled {
    ContractionStep step;
    std::size_t product;  // the step that is part of it
    ValueId value;        // what has no place in memory
  };
  std::optional<Pooled> pooled_at(std::size_t last, const std::vector<std::size_t>& reads, const std::vector<bool>& stored);
  bool may_wait(std::size_t step, std::size_t until) const;
  bool lies_as_product(std::size_t step, ValueId value) const;

  // ---- sums over rows that are taken as products come (column_sums.cpp)
  bool gives_rows(std::size_t step, const std::vector<bool>& taken) const;
  std::int64_t parts_of_sums(std::size_t step, std::size_t product, const KernelStep& sums, std::span<const std::size_t> place) const;
  void sum_columns(Plan& plan, const std::vector<bool>& taken, const std::vector<bool>& stored);

  // ---- the plan (plan.cpp)
  Plan assemble();
  std::vector<std::size_t> count_reads() const;
  void shape(KernelStep& step) { codegen::shape(step, machine_, graph_, algebra_, options_.log); }
  ContractionStep product_of(PendingStep& pending, const std::vector<bool>& stored);
  void add_to(Plan& plan, std::size_t step, const std::vector<bool>& stored);
  KernelStep finish(Draft& draft, const std::vector<bool>& stored) const {
    Kernel kernel = draft.finish(stored);
    return {std::move(kernel), draft.buffers(), draft.nodes(), {}, {}};
  }

  const ir::Graph& graph_;
  const Machine& machine_;
  const PlanOptions& options_;
  IndexAlgebra algebra_;
  FusionContext context_;
  std::vector<bool> library_;           // by NodeId
  std::vector<bool> product_;           // by NodeId: runs on a matrix kernel
  std::vector<bool> feeds_product_;     // by NodeId: a product multiplies what it gives, as it is or through views
  std::vector<std::optional<ops::ScatterBody>> scatters_;
  std::vector<std::optional<PartWrite>> part_writes_;  // by NodeId
  std::vector<ir::ValueId> unread_checks_;             // results of what may raise that nothing reads
  std::vector<double> cost_;            // by NodeId: of the element with all that is inlined
  std::vector<double> weight_;          // by NodeId: of the node alone; of a view with all that it reads
  std::vector<std::vector<std::uint32_t>> reach_;  // by NodeId: inlined nodes at the same point, sorted
  std::vector<PendingStep> steps_;
  std::vector<std::size_t> step_of_;    // by ValueId: the step that writes it
  std::vector<const Concatenation*> whole_;  // by ValueId, of values that others lie in
  std::vector<bool> is_output_;         // by ValueId
  std::vector<std::vector<NodeId>> users_;  // by ValueId: nodes that read it
  std::vector<std::vector<std::size_t>> computed_by_;  // by NodeId: steps that compute it in passing, the first few
  std::vector<ValueId> stored_;         // what several kernels would have computed
  std::vector<std::size_t> place_;      // by NodeId: in the order of the graph
  std::size_t now_ = 0;                 // the place of the node that is placed
  std::vector<double> bytes_;           // by ValueId, of what steps write into memory of its own
  std::vector<std::size_t> begins_;     // by ValueId: the place of the first node that is written into its memory
  std::vector<bool> is_output_memory_;  // by ValueId
  std::unordered_map<ValueId, std::vector<ValueId>> parts_;  // values by the memory of another one that they lie in
  std::vector<std::size_t> last_read_;  // by ValueId: the place of the last node that a kernel reads it for
  std::vector<std::size_t> begun_by_;   // by ValueId: the first step that writes it
  std::vector<double> alive_after_;     // by place: bytes of what is read later
  double may_live_ = 0;                 // bytes
  std::vector<std::size_t> order_;      // steps as they run
  std::vector<std::optional<ColumnSums>> column_sums_;  // by step of a product
  std::vector<std::optional<KernelStep>> combined_;     // by step: what is left of it where a product's step takes its sums
  std::vector<std::size_t> furthest_;   // by place in the order: the last node of steps up to there
  static constexpr std::size_t kNoStep = static_cast<std::size_t>(-1);
};

}  // namespace tenon::codegen
