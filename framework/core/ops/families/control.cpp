// Ops whose meaning lies in their regions. A backend may claim them whole; else the host runs them as steps of its plan.
#include "core/ops/notation/family.h"

namespace tenon::ops {
namespace {

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

Family control_ops() { return {cond()}; }

}  // namespace tenon::ops
