#include "drafts/cost.h"

#include "loops/kernel.h"

namespace tenon::codegen {

namespace {

bool is_arithmetic(const ops::Instruction& i) { return i.op > ops::Primitive::load && i.dtype != DType::i64; }

}  // namespace

double own_cost(const ops::LoopBody& body) {
  double cost = 0;
  for (const ops::Instruction& i : body.element.instructions)
    if (is_arithmetic(i)) cost += cost_of(i.op, i.dtype);
  return cost;
}

}  // namespace tenon::codegen
