#include "graph/planning.h"

#include <algorithm>
#include <iterator>

#include "fusion/tally.h"
#include "graph/decomposition.h"
#include "graph/extremes.h"
#include "graph/layout.h"
#include "graph/part_reads.h"
#include "graph/statistics.h"

namespace tenon::codegen {

Plan plan_graph(ir::Graph& graph, const Machine& machine, PlanOptions options) {
  const auto pause = [&] {
    if (options.pause) options.pause();
  };
  decompose_composites(graph), pause();
  share_statistics(graph), pause();
  share_extremes(graph);
  forward_written_parts(graph, machine), pause();
  std::ranges::copy(choose_layouts(graph, machine), std::back_inserter(options.stored));
  pause();
  options.concatenations = join_concatenations(graph);
  Plan plan = make_plan(graph, machine, options);
  if (options.log) options.log(to_text(tally_of(plan, graph)));
  return plan;
}

}  // namespace tenon::codegen
