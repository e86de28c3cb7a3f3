// A kernel under construction: expands graph values into operations at symbolic indices.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/loop_body.h"
#include "drafts/part_write.h"
#include "loops/kernel.h"
#include "machine/machine.h"

namespace tenon::codegen {

/// Where a value lies in memory: from an element of a value on that has memory of its own.
struct Lying {
  ValueId value;
  Dim offset = Dim(0);
  bool joined = false;  // a concatenation, whose parts are written one by one
};

inline bool is_constant_node(const ir::Node& node) { return node.op == "constant" && node.operands.empty(); }

/// What fusion knows of a graph, for all kernels.
struct FusionContext {
  const ir::Graph& graph;
  IndexAlgebra& algebra;
  const Machine& machine;
  std::vector<std::optional<ops::LoopBody>> bodies;  // by NodeId; nothing: not a loop nest
  std::vector<bool> in_memory;                       // by ValueId: another kernel reads it from memory
  std::vector<bool> packs_left;                      // by NodeId: products whose left operand is computed while it is packed; may be empty
  std::vector<std::optional<Lying>> lying;           // by ValueId, of those that lie in a concatenation; may be empty
  bool relaxed = false;                              // PlanOptions::relaxed
  bool keeps_flags = false;                          // PlanOptions::keeps_flags

  /// True for what is known when the program is compiled: a product packs it once.
  bool is_constant(ValueId value) const {
    return graph.value(value).kind == ir::ValueKind::result && is_constant_node(graph.node(graph.value(value).node));
  }

  Lying place_of(ValueId value) const {
    return value.value < lying.size() && lying[value.value] ? *lying[value.value] : Lying{value, Dim(0)};
  }
};

/// Why a value cannot join a kernel.
class NotFusable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The operations of a kernel, each recorded once, with constants folded where control depends on them.
class OperationList {
 public:
  OpId constant(DType dtype, std::uint64_t bits);
  OpId truth(bool value) { return constant(DType::b8, value); }
  OpId index(const Dim& dim);
  OpId load(std::uint32_t buffer, DType dtype, Dim offset, OpId mask, OpId otherwise);
  OpId checked(OpId value, const Dim& limit, std::uint64_t dimension, OpId mask);
  /// The value as one that needs the check: kernels compute what their results need, and what an index only chooses (an element of a fill,
  /// or of a broadcast) may not need it.
  OpId needing(OpId check, OpId value);
  OpId reduced(std::uint32_t reduction, std::uint32_t result, DType dtype);
  OpId old_value(DType dtype);
  OpId product(DType dtype);
  OpId primitive(ops::Primitive p, DType dtype, OpId a, OpId b = kNoOp, OpId c = kNoOp);
  /// Makes operands of a primitive numbers of which it raises no floating-point flag, where the mask is false and nobody wants what it gives.
  void quieten(ops::Primitive p, OpId mask, OpId (&args)[3]);
  /// The real or the imaginary part of a complex value. Complex values are made of their parts, and read by parts: of memory they are pairs of
  /// real elements.
  OpId part(OpId complex, bool imaginary);

  const Operation& operator[](OpId id) const { return list_[id]; }
  std::size_t size() const { return list_.size(); }
  const std::vector<Operation>& all() const { return list_; }
  bool is_true(OpId id) const { return id != kNoOp && list_[id].kind == OperationKind::constant && list_[id].payload != 0; }
  bool is_false(OpId id) const { return id != kNoOp && list_[id].kind == OperationKind::constant && list_[id].payload == 0; }

 private:
  OpId record(Operation op);
  bool needs(OpId value, OpId wanted) const;
  std::vector<Operation> list_;
  std::unordered_multimap<std::size_t, OpId> by_hash_;
};

/// A kernel that roots of the graph are added to one after the other. Copyable, so that an attempt can be thrown away.
class Draft {
 public:
  /// A value that this kernel computes, at `index` (in terms of the kernel's loops).
  struct Member {
    ValueId value;
    std::vector<Dim> index;
    OpId op = kNoOp;
    StageKind kind = StageKind::row;
    std::uint32_t reduction = 0;
  };

  /// A node that is computed in passing, at one of the points where its values are read.
  struct Expansion {
    NodeId node;
    std::vector<Dim> index;
    OpId mask;
    std::vector<OpId> results;
  };

  explicit Draft(const FusionContext& context) : context_(&context) {}

  /// Makes the loops of the first root: `outer` and `inner` extents. Gives each loop's index; loops of extent 1 become 0.
  std::vector<Dim> make_loops(std::span<const Dim> extents, std::size_t inner);

  /// Adds a node without a reducer, with its loops at `index`.
  void add_map(NodeId node, std::span<const Dim> index, StageKind kind);
  /// Adds a node with a reducer: `index` gives outer, then reduced loops.
  void add_reduction(NodeId node, std::span<const Dim> index);
  /// Adds the result of a matrix product, which the kernel follows, with its loops at `index`.
  void add_product(NodeId node, std::span<const Dim> index);
  /// Adds a copy of `from` as the value `to` (the base of a scatter), at every point of the loops.
  void add_copy(ValueId from, ValueId to, std::span<const Dim> index);
  /// Adds the source of a write as elements of what the node gives, at every point of the source.
  void add_part_write(const PartWrite& write, NodeId node);
  /// Adds a scatter over the graph's operand values: one point of its loops.
  void add_scatter(const ops::ScatterBody& body, NodeId node);

  /// The operation that gives `value` at `index` where `mask` holds (kNoOp: always).
  OpId element(ValueId value, std::span<const Dim> index, OpId mask = kNoOp);

  /// Ends the kernel: stores those members that `stored` (by ValueId) holds for; the others stay in registers. Reductions come
  /// first, then what is stored once a point of the outer loops, then what is stored at every point.
  Kernel finish(const std::vector<bool>& stored);

  const std::vector<Member>& members() const { return members_; }
  const std::vector<Expansion>& expansions() const { return expansions_; }
  /// The operations whose values leave the kernel or are reduced: all others serve them.
  std::vector<OpId> results() const;
  /// True when a reduction needs the result of another one, so that the inner loops run again.
  bool sweeps_again() const { return chained_reductions() > 1; }
  /// The most reductions that need each other one after the other.
  std::size_t chained_reductions() const;
  const std::vector<OpId>& elements_of_first_reduction() const { return reductions_.front().elements; }
  const Member* member(ValueId value) const;
  const std::vector<Loop>& outer() const { return outer_; }
  const std::vector<Loop>& inner() const { return inner_; }
  const OperationList& operations() const { return operations_; }
  /// Values in memory that the kernel reads or may write, by buffer number.
  const std::vector<ValueId>& buffers() const { return buffers_; }
  const std::vector<NodeId>& nodes() const { return nodes_; }
  std::uint32_t buffer_of(ValueId value);

 private:
  struct Register {
    std::optional<Dim> dim;
    OpId op = kNoOp;
  };
  struct Frame;
  std::vector<OpId> instantiate(const ops::ScalarProgram& program, std::span<const ValueId> operands, std::span<const Dim> loops,
                                OpId mask);
  Register run(Frame& frame, const ops::Instruction& instruction);
  Register arithmetic(Frame& frame, const ops::Instruction& instruction);
  std::optional<Register> on_indices(const ops::Instruction& i, const Dim& a, const Dim& b);
  Register load(Frame& frame, const ops::Instruction& instruction);
  Dim place_in(const Register& reg, const Dim& size, std::size_t dim);
  std::optional<SymbolId> only_loop_of(const Dim& place) const;
  OpId op_of(Register& reg);
  OpId memory_load(ValueId value, std::span<const Dim> index, OpId mask, OpId otherwise);
  OpId conjunction(OpId a, OpId b);
  OpId is_not_empty(const ir::Dim& size);
  OpId rounded(OpId op, DType storage);
  std::optional<OpId> inside(ValueId value, std::span<const Dim> index);

  const FusionContext* context_;
  std::vector<Loop> outer_, inner_;
  OperationList operations_;
  std::vector<Reduction> reductions_;
  std::vector<Member> members_;
  std::vector<ValueId> buffers_;
  std::vector<NodeId> nodes_;
  std::vector<Expansion> expansions_;
  std::unordered_multimap<std::size_t, std::uint32_t> expansions_by_hash_;
  std::optional<Store> scatter_store_;
  std::vector<SymbolId> scatter_apart_;
};

}  // namespace tenon::codegen
