// What torch keeps of tensors for the gradients of recorded calls: it refuses those once that was written.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "python/objects/ref.h"
#include "python/recording/graph/recorded_graph.h"

namespace tenon::python {

inline bool can_require_gradient(DType dtype) { return is_float(dtype) || is_complex(dtype); }

class KeptByTorch {
 public:
  using Index = StandIns::Index;

  explicit KeptByTorch(RecordedGraph& core) : core_(core) {}

  /// An operand before its call.
  struct Operand {
    Index index;
    std::uint32_t writes;  // how often its memory was written
    bool requires_grad;
  };
  std::vector<Operand> operands_of(std::span<const Index> tensors) const;

  /// A call as the program made it. `keeps`: torch may keep operands that can require grad for the gradient; others, as indices, always.
  struct Call {
    Ref callable, args, kwargs, results;
    std::vector<Operand> operands;
    bool keeps = true;
  };
  /// Notes a tracked call, whose stand-ins and nodes begin with these. Of what a call writes torch keeps a copy, or what it has written.
  void note_call(Call call, Index first, std::size_t first_node);

  /// Throws Unbuildable where torch has kept, for the gradients of a node, what was written since: the call is torch's then, and so is the error.
  /// `may_have`: by ValueId, whether a value may have a gradient.
  void require_unwritten(std::span<const ir::NodeId> nodes, const std::vector<bool>& may_have) const;
  /// Whether torch lets go of anything once gradients have gone through its nodes for these, as rewrite::LetsGo says.
  bool lets_go(std::span<const ir::NodeId> reading, std::span<const ir::NodeId> others) const;
  /// The gradient of a leaf is complete when torch's engine has been through the first call that reads it; it comes to those with higher numbers first.
  std::int64_t turn_of_leaf(Index leaf) const;
  /// Whether anything was written that may be kept.
  bool is_any_written() const;

 private:
  struct Kept {
    ir::ValueId value;
    Index memory;          // its owner
    std::uint32_t writes;  // of the memory, when the value lay there
  };
  struct NotedCall {
    Call made;
    std::vector<std::uint32_t> writes;                         // of the memory of its operands, after it
    std::vector<std::pair<Index, std::uint32_t>> results;      // the tensors among what it gave, and the writes of their memory
    bool writes_what_it_reads = false;
    Index gives;                                               // the first that it gave, or wrote
    std::size_t nodes = 0;                                     // that it is
  };
  bool is_written(const Kept& kept) const { return is_written_since(kept.memory, kept.writes); }
  bool is_written_since(Index index, std::uint32_t writes) const { return core_.stand_ins.storage_of(index).writes != writes; }
  bool is_any_written(const NotedCall& call) const;
  std::optional<bool> torch_refuses(const NotedCall& call) const { return torch_says("refuses", call); }
  std::optional<bool> torch_says(const char* question, const NotedCall& call) const;
  void collect_results(PyObject* results, NotedCall& call) const;

  RecordedGraph& core_;
  std::vector<NotedCall> calls_;
  struct FirstRead {
    std::size_t call;
    std::int64_t place;  // among its operands
  };
  std::unordered_map<Index, FirstRead> first_reads_;
  struct OfNode {
    std::size_t call;
    std::vector<Kept> kept;
  };
  std::unordered_map<std::uint32_t, OfNode> by_node_;  // by NodeId
};

}  // namespace tenon::python
