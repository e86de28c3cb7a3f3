// Ops that a pass must not look into: the call of a foreign function that no op describes, and what runs regions. A backend may claim the latter
// whole; else the host runs them as steps of its plan.
#include "core/ops/notation/family.h"

namespace tenon::ops {
namespace {

/// Operands: the tensors among the arguments, then the token of the call before where the order matters. Results: the tensors that the
/// function gives, then its own token. `handle` finds the arguments in the driver of this process that recorded the call; a graph with
/// such a node means nothing elsewhere.
Op opaque_op() {
  Op op;
  op.name = "opaque";
  op.schema = "(Tensor[] operands, *, str target, int handle) -> Tensor[]";
  op.traits.opaque = true;
  op.traits.may_raise = true;
  op.infer = [](const OpQuery&) -> Result<infer::Types> {
    return error(Code::unsupported, "only the driver that records an opaque call knows the types of its results");
  };
  op.no_grad_reason = "what it computes is known to its library only";
  op.samples = [] { return std::vector<Sample>(); };
  return op;
}

Op cond() {
  Op op;
  op.name = "cond";
  // Two regions with one input for each of `operands` and one output for each result: the first runs where `pred` (bool[]) holds.
  op.schema = "(Tensor pred, Tensor[] operands) -> Tensor[]";
  op.traits.control = true;
  op.traits.may_raise = true;  // as a region may
  op.infer = [](const OpQuery&) -> Result<std::vector<ir::Type>> {
    return error(Code::unsupported, "cond: its result types are those of its regions: make the node with Graph::add_node");
  };
  op.no_grad_reason = "regions are differentiated by whoever captured them";
  return op;
}

}  // namespace

Family opaque_ops() { return {opaque_op()}; }

Family control_ops() { return {cond()}; }

}  // namespace tenon::ops
