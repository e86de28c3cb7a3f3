// torch.vmap of functions that compute point by point: recorded of one example, then once more of the whole batch.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "python/recording/recorded_branches.h"
#include "python/stand_ins/stand_in_uses.h"

namespace tenon::python {

/// What a function of an example may not do throws GraphBreak, after which the recording is of no use.
class RecordedBatches {
 public:
  using Index = StandIns::Index;

  /// `uses`: takes the calls of the batch.
  RecordedBatches(RecordedGraph& graph, RecordedBranches& branches, StandInUses& uses) : core_(graph), branches_(branches), uses_(uses) {}

  /// Records what follows of one example: gives a stand-in for an example of each tensor, along its first dimension.
  std::vector<Ref> begin(std::span<PyObject* const> tensors);
  /// Makes the same calls of the tensors themselves: gives what was made for each of the results, with the batch as first dimension unless it depends on none
  /// of the examples.
  std::vector<Ref> end(std::span<PyObject* const> results);
  /// Whether what is recorded is of an example: its elements are none that the program may know.
  bool any() const { return !batches_.empty(); }

 private:
  /// What was made of the batch in place of a stand-in of the example.
  struct Made {
    Ref object;
    bool batched = false;
  };
  struct Batch {
    ir::Dim size{0};
    std::size_t written = 0, draws = 0;  // of the recording, as it began
    std::unordered_map<PyObject*, Made> made;
    std::unordered_set<ir::ValueId> given;  // values of the example that calls have given
  };
  Ref example_of(Index tensor, Batch& batch);
  void require_pointwise(const RecordedBranches::Branch& branch) const;
  void make_again(const TracedCall& call, Batch& batch);
  Ref of_batch(PyObject* argument, const Batch& batch, std::size_t rank);
  Ref aligned(const Made& made, std::size_t own_rank, std::size_t rank);

  RecordedGraph& core_;
  RecordedBranches& branches_;
  StandInUses& uses_;
  std::vector<Batch> batches_;  // begun and not ended, innermost last
};

}  // namespace tenon::python
