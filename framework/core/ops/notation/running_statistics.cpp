#include "core/ops/notation/running_statistics.h"

#include "core/ops/foreign/foreign_writes.h"
#include "core/ops/notation/formula.h"

namespace tenon::ops {
namespace {

using V = ir::ValueId;

/// The momentum may be a number that the graph computes (cumulative averages divide by the batches so far).
struct Momentum {
  V of_batch, of_running;

  explicit Momentum(ForeignArguments& a) {
    Formula f(a);
    if (a.is_tensor("momentum")) {
      of_batch = a.value("momentum");
      of_running = f.sub(f.number(1), of_batch);
    } else {
      of_batch = f.number(a.number("momentum", 0.1));
      of_running = f.number(1 - a.number("momentum", 0.1));
    }
  }
};

void update(ForeignArguments& a, std::string_view parameter, V of_batch, const Momentum& momentum, bool counted) {
  if (!a.given(parameter)) return;
  Formula f(a);
  const V running = a.value(parameter);
  const V batch = reshape_to(a.builder(), of_batch, f.shape(running));
  write_back(a, parameter, f.add(f.mul(batch, momentum.of_batch), f.mul(running, momentum.of_running)), counted);
}

/// Divided by count - 1. Of one element it is no number, as in eager execution.
V of_sample(Formula& f, NodeBuilder& b, const BatchStatistics& batch) {
  if (!batch.count.is_constant()) return f.div(f.mul(batch.variance, b.literal(batch.count)), b.literal(batch.count - ir::Dim(1)));
  const auto count = static_cast<double>(batch.count.constant());
  return f.mul(batch.variance, f.number(count / (count - 1)));
}

}  // namespace

void update_running_statistics(ForeignArguments& a, const BatchStatistics& batch, bool counted) {
  if (!a.given("running_mean") && !a.given("running_var")) return;
  Formula f(a);
  const Momentum momentum(a);
  update(a, "running_mean", batch.mean, momentum, counted);
  update(a, "running_var", of_sample(f, a.builder(), batch), momentum, counted);
}

}  // namespace tenon::ops
