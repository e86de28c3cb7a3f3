// Ops whose meaning lies in their regions: a backend may claim them whole, else the host runs them as steps of its plan. And values of which the graph itself
// says how gradients flow through them, as the program has said it.
#include "core/ops/gradients/differentiated_once.h"
#include "core/ops/gradients/own_gradients.h"
#include "core/ops/notation/family.h"
#include "core/ops/notation/pointwise.h"

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

/// What stands for the gradient of a value until there is one.
Op tangent() {
  return unary("tangent", Domain::numbers, [](Scalars& s, std::span<const Scalar> x, const OpQuery&) { return s.like(x[0], 0); }, {});
}

/// Gives its first operands as they are; the others say the gradients (own_gradients.h).
Op own_gradient() {
  Op op;
  op.name = "own_gradient";
  op.schema = "(Tensor[] tensors, *, int results, int inputs, int kept, int read, bool keeps, bool again, bool once=False, str absent) -> Tensor[]";
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    const auto parts = OwnGradientParts::of(q.operands(), q.attributes());
    if (!parts) return error(Code::invalid_argument, "own_gradient of {} operands, which are not as many as its attributes say", q.operand_count());
    infer::Types types;
    for (ir::ValueId v : parts->results) types.push_back(ir::Type::tensor(q.graph().type(v).dtype, q.graph().type(v).shape, q.graph().type(v).device));
    return types;
  };
  op.decompose = [](NodeBuilder&, const OpQuery& q) {
    const auto results = OwnGradientParts::of(q.operands(), q.attributes())->results;
    return Values(results.begin(), results.end());
  };
  op.grad = [](NodeBuilder& b, const OpQuery& q, std::span<const ir::ValueId> results, std::span<const ir::ValueId> given) {
    return own_gradients(b, *OwnGradientParts::of(q.operands(), q.attributes()), results, given, false);
  };
  op.samples = [] {
    const SampleOperand x{.dtype = DType::f32, .shape = {3, 4}}, y{.dtype = DType::f64, .shape = {5}};
    const auto numbers = [](int results, int inputs, int kept, int read) {
      return ir::Attributes{{"results", ir::Dim(results)}, {"inputs", ir::Dim(inputs)}, {"kept", ir::Dim(kept)}, {"read", ir::Dim(read)}, {"keeps", false}, {"again", true}, {"absent", std::string("zeros")}};
    };
    return std::vector<Sample>{{.name = "one", .operands = {x, x, x, x}, .attributes = numbers(1, 1, 0, 0)},
                               {.name = "several", .operands = {x, y, y, x, y, x, y, y}, .attributes = numbers(2, 1, 1, 1)}};
  };
  return op;
}

/// Gives `self` as it is, with a gradient that cannot be differentiated.
Op differentiated_once() {
  Op op = unary("differentiated_once", Domain::any, [](Scalars&, std::span<const Scalar> x, const OpQuery&) { return x[0]; }, {});
  op.schema = "(Tensor self, *, str message='') -> Tensor";
  op.grad = [](NodeBuilder& b, const OpQuery& q, std::span<const ir::ValueId>, std::span<const ir::ValueId> given) {
    return Values{without_gradient(b, given[0], {q.operands()[0]}, q.text("message", ""))};
  };
  return op;
}

/// Gives `self` as it is: a gradient of something that torch does not differentiate again (differentiated_once.h).
Op no_gradient() {
  Op op;
  op.name = "no_gradient";
  op.schema = "(Tensor self, Tensor[] by, *, str message, bool ends=False) -> Tensor";
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    TENON_USER_CHECK(q.operand_count() > 0, "it takes a tensor");
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.decompose = [](NodeBuilder&, const OpQuery& q) { return Values{q.operands()[0]}; };
  op.grad = [](NodeBuilder&, const OpQuery& q, std::span<const ir::ValueId>, std::span<const ir::ValueId>) -> Values {
    throw Exception(error(Code::unsupported, "{}", q.text("message")));
  };
  op.samples = [] {
    const SampleOperand x{.dtype = DType::f32, .shape = {3, 4}}, y{.dtype = DType::f64, .shape = {5}};
    const ir::Attributes said{{"message", std::string("the derivative is not implemented")}};
    return std::vector<Sample>{{.name = "alone", .operands = {x}, .attributes = said}, {.name = "by another", .operands = {y, x}, .attributes = said}};
  };
  return op;
}

}  // namespace

Family control_ops() { return {cond(), tangent(), own_gradient(), differentiated_once(), no_gradient()}; }

}  // namespace tenon::ops
