#include "lane_parts.h"

#include <algorithm>
#include <cfenv>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>

#include "core/ops/catalog.h"
#include "core/ops/infer.h"

namespace tenon::llvm_backend {
namespace {

/// Elements that a thread takes at once, at the least.
constexpr std::int64_t kGrain = 16 * 1024;
/// Parts from which on threads have enough to do.
constexpr std::int64_t kEnoughParts = 16;

/// Forgets the floating-point flags that come of comparing NaNs while it lives.
class QuietFlags {
 public:
  QuietFlags() { std::fegetexceptflag(&flags_, FE_ALL_EXCEPT); }
  ~QuietFlags() { std::fesetexceptflag(&flags_, FE_ALL_EXCEPT); }
  QuietFlags(const QuietFlags&) = delete;
  QuietFlags& operator=(const QuietFlags&) = delete;

 private:
  std::fexcept_t flags_{};
};

/// The dimension whose parts run at once: the one with the longest steps, or with the most of them where those are few.
std::optional<std::size_t> parted_dimension(const ops::TensorView& x, std::size_t lane) {
  std::optional<std::size_t> best;
  const auto rank = [&](std::size_t d) { return std::pair(std::min(x.shape[d], kEnoughParts), std::abs(x.strides[d])); };
  for (std::size_t d = 0; d < x.shape.size(); ++d)
    if (d != lane && x.shape[d] > 1 && (!best || rank(d) > rank(*best))) best = d;
  return best;
}

ops::TensorView part_of(ops::TensorView x, std::size_t dim, std::int64_t first, std::int64_t last) {
  x.shape[dim] = last - first;
  if (x.data) x.data = static_cast<std::byte*>(x.data) + first * x.strides[dim] * static_cast<std::int64_t>(size_of(x.dtype));
  return x;
}

void run_quietly(const ir::Graph& graph, NodeId node, const ops::NodeRun& run) {
  const QuietFlags quiet;
  ops::run_node(graph, node, run);
}

}  // namespace

void run_in_parts(const HostServices& host, const ir::Graph& graph, NodeId id, const ops::NodeRun& run) {
  const ir::Node& node = graph.node(id);
  const ops::OpQuery query(graph, node.operands, node.attributes);
  if (!ops::find_op(node.op)->traits.by_lanes) return run_quietly(graph, id, run);
  const ops::TensorView& x = run.inputs[0];
  const auto dim = parted_dimension(x, static_cast<std::size_t>(ops::infer::wrap_dim(query.constant_integer("dim"), x.shape.size())));
  const std::int64_t elements = std::accumulate(x.shape.begin(), x.shape.end(), std::int64_t{1}, std::multiplies<>());
  if (!dim || elements < 2 * kGrain) return run_quietly(graph, id, run);
  const std::int64_t parts = x.shape[*dim], grain = std::max(kGrain * parts / elements, parts / kEnoughParts);
  host.parallel_for(0, parts, std::max<std::int64_t>(1, grain), [&](std::int64_t first, std::int64_t last) {
    std::vector<ops::TensorView> inputs, outputs;
    for (const ops::TensorView& v : run.inputs) inputs.push_back(part_of(v, *dim, first, last));
    for (const ops::TensorView& v : run.outputs) outputs.push_back(part_of(v, *dim, first, last));
    ops::NodeRun part = run;
    part.inputs = inputs;
    part.outputs = outputs;
    run_quietly(graph, id, part);
  });
}

}  // namespace tenon::llvm_backend
