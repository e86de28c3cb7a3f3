// What calls of a graph keep for their gradients (package/tenon/_kept_runs.py), while the graph runs and behind it.
#pragma once

#include <cstdint>
#include <vector>

#include "python/objects/ref.h"

namespace tenon::python {

struct CapturedGraph;

/// Whether a graph makes calls whose runs are kept, and the tensors that hold their numbers behind the graph.
struct RunsOfGraph {
  bool any = false;
  std::vector<std::uint32_t> tensors;  // CapturedGraph::tensors

  static RunsOfGraph of(const CapturedGraph& captured);
};

/// Keeps the runs of a graph on this thread while it lives.
class KeptRuns {
 public:
  explicit KeptRuns(const RunsOfGraph& runs);
  ~KeptRuns();
  KeptRuns(const KeptRuns&) = delete;
  KeptRuns& operator=(const KeptRuns&) = delete;

  /// A tensor with the number of a run, which is kept as long as its memory is. `number`: an integer, or a tensor of one. Throws PythonError.
  static Ref owner(PyObject* number);

 private:
  const bool any_;
};

}  // namespace tenon::python
