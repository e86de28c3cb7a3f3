// What a segment keeps for its gradients, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "python/graph/captured_graph.h"

namespace tenon::python {

/// Of one node that a segment adds to torch's autograd graph.
struct BackwardReport {
  std::string graph;               // as text of the IR
  std::vector<std::string> kept;   // "%mm: f32[4, 4], 64 bytes: kept, mm is not computed again"
  std::int64_t kept_bytes = 0;     // of what only the node holds, at the present sizes
};

std::vector<BackwardReport> backward_reports(const CapturedGraph& captured);

}  // namespace tenon::python
