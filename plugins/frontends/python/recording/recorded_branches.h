// Branches of a control op: recorded in line, one after the other, then cut out of the graph into the regions of one node.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "python/recording/graph/recorded_graph.h"
#include "python/recording/graph/recorded_inputs.h"
#include "python/recording/graph/recorded_trace.h"

namespace tenon::python {

/// What a branch may not do throws GraphBreak, after which the recording is of no use.
class RecordedBranches {
 public:
  using Index = StandIns::Index;

  RecordedBranches(RecordedGraph& graph, const RecordedInputs& inputs, RecordedTrace& trace)
      : core_(graph), inputs_(inputs), trace_(trace) {}

  void begin();
  /// `results`: the stand-ins that the branch gives.
  void end(std::span<PyObject* const> results);
  /// Chooses among the two branches that ended last: gives the stand-ins of the results. `function`, for people, is given the predicate.
  std::vector<Ref> choose(PyObject* function, PyObject* predicate);
  /// Where its recording began, then what it came to.
  struct Branch {
    struct Present {
      ir::ValueId value;
      std::uint32_t version, storage_version;
    };
    std::size_t first_node = 0;
    RecordedTrace::Mark first_call;
    std::vector<Present> before;  // of the stand-ins that are older than the branch
    std::vector<ir::NodeId> nodes;
    std::vector<Index> results;
    std::vector<ir::ValueId> values;  // of the results
    std::optional<ir::ValueId> random_token;  // before it
    std::shared_ptr<BranchTrace> trace;
  };
  /// The branch that ended last, which is none of a choice. Its nodes are in the graph as yet.
  Branch take();

 private:
  std::shared_ptr<BranchTrace> cut_trace(const Branch& branch, Index older);
  void trace_choice(PyObject* function, PyObject* predicate, std::vector<std::shared_ptr<BranchTrace>> branches, const std::vector<Ref>& results,
                    std::size_t first_node);

  RecordedGraph& core_;
  const RecordedInputs& inputs_;
  RecordedTrace& trace_;
  std::vector<Branch> branches_;  // begun and not yet chosen among, innermost last
};

}  // namespace tenon::python
