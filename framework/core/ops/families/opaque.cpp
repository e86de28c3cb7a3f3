// The call of a foreign function that no op describes.
#include "core/ops/notation/family.h"

namespace tenon::ops {
namespace {

/// Operands: the tensors among the arguments, then the token of the call before where the order matters. Results: the tensors that the
/// function gives, then its own token. `linear`: they are gradients (own_gradients.h). `given`: sizes of results that are known before
/// the call, and not learned from what it gives. `handle` finds the arguments in the driver of this process that recorded the call; a
/// graph with such a node means nothing elsewhere.
Op opaque_op() {
  Op op;
  op.name = "opaque";
  op.schema = "(Tensor[] operands, *, str target, int handle, bool linear=False, int[]? given=None) -> Tensor[]";
  op.traits.opaque = true;
  op.traits.may_raise = true;
  op.infer = [](const OpQuery&) -> Result<infer::Types> {
    return error(Code::unsupported, "only the driver that records an opaque call knows the types of its results");
  };
  op.no_grad_reason = "what it computes is known to its library only";
  op.samples = [] { return std::vector<Sample>(); };
  return op;
}

}  // namespace

Family opaque_ops() { return {opaque_op()}; }

}  // namespace tenon::ops
