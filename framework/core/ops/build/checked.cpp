#include "core/ops/build/checked.h"

namespace tenon::ops {

ir::ValueId number_where(NodeBuilder& b, ir::ValueId number, ir::ValueId holds) { return b.one("checked", {number, holds}); }

void refuse_unless(NodeBuilder& b, ir::ValueId holds) {
  const ir::ValueId none = b.full(ir::Dim(0), DType::i64, {});
  number_where(b, none, b.one("all", {holds}, {{"dim", std::vector<ir::Dim>{}}, {"keepdim", false}}));
}

}  // namespace tenon::ops
