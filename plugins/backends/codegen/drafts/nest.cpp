#include "drafts/nest.h"

#include "drafts/operand.h"

namespace tenon::codegen {

using P = ops::Primitive;

namespace {

class NestBuilder {
 public:
  NestBuilder(const FusionContext& context, NodeId node) : context_(context), node_(node), body_(*context.bodies[node.value]) {}

  std::optional<Nest> build() {
    splits_.assign(body_.outer(), 1);
    auto nest = attempt();
    bool again = false;
    for (std::size_t i = 0; nest && i < body_.outer(); ++i) {
      if (nest->result[i].is_constant() || !body_.extents[i].is_constant()) continue;
      const auto divisor = divisor_of(nest->draft.operations().all(), nest->result[i].as_symbol());
      if (!divisor || *divisor <= 1 || body_.extents[i].constant() % *divisor != 0) continue;
      splits_[i] = *divisor;
      again = true;
    }
    return again ? attempt() : std::move(nest);
  }

 private:
  std::optional<Nest> attempt() {
    Nest nest{Draft(context_), {}, {}, {}, kNoOp, kNoOp};
    const auto strides = context_.graph.type(context_.graph.node(node_).results[0]).resolved_strides();
    std::vector<Dim> extents, c;
    for (std::size_t i = 0; i < body_.outer(); ++i) {
      const Dim split(splits_[i]);
      if (splits_[i] > 1) extents.push_back(floor_div(body_.extents[i], split)), c.push_back(strides[i] * split);
      extents.push_back(splits_[i] > 1 ? split : body_.extents[i]), c.push_back(strides[i]);
    }
    const std::size_t outer = extents.size();
    extents.insert(extents.end(), body_.extents.begin() + static_cast<std::ptrdiff_t>(body_.outer()), body_.extents.end());
    const auto loops = nest.draft.make_loops(extents, body_.reduced);
    for (std::size_t i = 0, at = 0; i < body_.outer(); ++i) {
      Dim index = splits_[i] > 1 ? loops[at++] * Dim(splits_[i]) : Dim(0);
      nest.result.push_back(index + loops[at++]);
    }
    std::vector<Dim> index = nest.result;
    index.insert(index.end(), loops.begin() + static_cast<std::ptrdiff_t>(outer), loops.end());
    try {
      nest.draft.add_reduction(node_, index);
    } catch (const NotFusable&) {
      return {};
    }
    if (!find_operands(nest)) return {};
    const auto in_a = loops_of(nest.draft.operations().all(), nest.a), in_b = loops_of(nest.draft.operations().all(), nest.b);
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (loops[i].is_constant()) continue;
      const Loop loop{loops[i].as_symbol(), extents[i]};
      if (i < outer) nest.outer.push_back({loop, c[i], in_a.contains(loop.variable), in_b.contains(loop.variable)});
      else nest.summed.push_back(loop);
    }
    return nest;
  }

  bool find_operands(Nest& nest) const {
    const DType dtype = context_.graph.type(context_.graph.node(node_).results[0]).dtype;
    const OperationList& operations = nest.draft.operations();
    for (const Operation& op : operations.all())
      if (op.kind == OperationKind::checked) return false;
    const Operation& product = operations[nest.draft.elements_of_first_reduction()[0]];
    if (product.kind != OperationKind::primitive || product.primitive != P::mul) return false;
    nest.a = product.args[0], nest.b = product.args[1];
    const auto fits = [&](OpId operand) { return compute_type(operations[operand].dtype) == compute_type(dtype); };
    return fits(nest.a) && fits(nest.b);
  }

  const FusionContext& context_;
  NodeId node_;
  const ops::LoopBody& body_;
  std::vector<std::int64_t> splits_;
};

}  // namespace

std::optional<Nest> nest_of(const FusionContext& context, NodeId node) { return NestBuilder(context, node).build(); }

}  // namespace tenon::codegen
