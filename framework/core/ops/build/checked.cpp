#include "core/ops/build/checked.h"

namespace tenon::ops {

ir::ValueId number_where(NodeBuilder& b, ir::ValueId number, ir::ValueId holds) {
  const ir::Attributes one_element = {{"shape", ir::Shape{ir::Dim(1)}}};
  const ir::ValueId one = b.one("reshape", {number}, one_element);
  const ir::ValueId wrong = b.cast(b.one("logical_not", {b.one("reshape", {holds}, one_element)}), DType::i64);
  const ir::ValueId two = b.one("cat", {one, one}, {{"dim", ir::Dim(0)}});  // an index into a single element would not be looked at
  const ir::ValueId checked = b.one("index_select", {two, b.one("mul", {wrong, b.literal(ir::Dim(2))})}, {{"dim", ir::Dim(0)}});
  return b.one("reshape", {checked}, {{"shape", ir::Shape{}}});
}

void refuse_unless(NodeBuilder& b, ir::ValueId holds) {
  const ir::ValueId none = b.one("full", {b.literal(ir::Dim(0))}, {{"dtype", DType::i64}, {"size", ir::Shape{}}});
  number_where(b, none, b.one("all", {holds}, {{"dim", std::vector<ir::Dim>{}}, {"keepdim", false}}));
}

}  // namespace tenon::ops
