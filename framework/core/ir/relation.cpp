#include "core/ir/relation.h"

#include "core/base/error.h"

namespace tenon::ir {

bool Relation::holds(std::span<const std::int64_t> symbols) const {
  try {
    const std::int64_t a = left.evaluate(symbols), b = right.evaluate(symbols);
    switch (op) {
      case Operator::equal: return a == b;
      case Operator::not_equal: return a != b;
      case Operator::less: return a < b;
      case Operator::less_equal: return a <= b;
      case Operator::multiple_of: return b == -1 || (b != 0 && a % b == 0);
    }
  } catch (const Exception&) {
  }
  return false;
}

}  // namespace tenon::ir
