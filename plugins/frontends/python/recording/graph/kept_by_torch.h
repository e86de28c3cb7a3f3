// What torch keeps of tensors for the gradients of recorded calls: it refuses those once that was written.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "python/recording/graph/recorded_graph.h"

namespace tenon::python {

inline bool can_require_gradient(DType dtype) { return is_float(dtype) || is_complex(dtype); }

class KeptByTorch {
 public:
  using Index = StandIns::Index;

  explicit KeptByTorch(RecordedGraph& core) : core_(core) {}

  /// How often the memory of tensors was written.
  std::vector<std::uint32_t> writes_of(std::span<const Index> tensors) const;

  /// Notes a tracked call, whose stand-ins and nodes begin with these. `writes`: of its operands, before it. `keeps`: torch may keep operands that can
  /// require grad for the gradient; others, as indices, always. Of what a call writes torch keeps a copy, or what it has written.
  void note_call(Index first, std::size_t first_node, std::span<const Index> operands, std::span<const std::uint32_t> writes, bool keeps);

  /// Throws Unbuildable where the gradients of a node are computed with what was written since: the call is torch's then, and so is the error.
  /// `may_have`: by ValueId, whether a value may have a gradient.
  void require_unwritten(std::span<const ir::NodeId> nodes, const std::vector<bool>& may_have) const;
  /// Whether anything was written that may be kept.
  bool is_any_written() const;

 private:
  struct Kept {
    ir::ValueId value;
    Index memory;           // its owner
    std::uint32_t writes;   // of the memory, when the value lay there
    Index made;             // what the call gave
  };
  bool is_written(const Kept& kept) const { return core_.stand_ins.storage_of(kept.memory).writes != kept.writes; }

  RecordedGraph& core_;
  std::unordered_map<std::uint32_t, std::vector<Kept>> by_node_;  // by NodeId
};

}  // namespace tenon::python
