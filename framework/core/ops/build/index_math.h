// Integer arithmetic on loop indices that leaves out what does nothing (times 1, plus 0), so that backends see simple indices.
#pragma once

#include "core/ops/op.h"

namespace tenon::ops {

class IndexMath {
 public:
  explicit IndexMath(Scalars& s) : s_(s) {}

  Scalar of(const ir::Dim& d) { return s_.extent(d); }
  Scalar add(Scalar i, const ir::Dim& d) { return d == ir::Dim(0) ? i : s_.add(i, of(d)); }
  Scalar mul(Scalar i, const ir::Dim& d) { return d == ir::Dim(1) ? i : s_.mul(i, of(d)); }
  Scalar floor_div(Scalar i, const ir::Dim& d) { return d == ir::Dim(1) ? i : s_.binary(Primitive::floor_div, i, of(d)); }
  Scalar mod(Scalar i, const ir::Dim& d) { return d == ir::Dim(1) ? of(0) : s_.binary(Primitive::remainder, i, of(d)); }
  /// i, or i + size where i is negative: Python's index from the end.
  Scalar from_end(Scalar i, const ir::Dim& size) { return s_.select(s_.lt(i, of(0)), add(i, size), i); }
  /// The indices of the first `count` loops.
  std::vector<Scalar> loops(std::size_t count) {
    std::vector<Scalar> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(s_.loop_index(i));
    return all;
  }

 private:
  Scalars& s_;
};

/// A loop nest without reduction over `extents` whose element `write` gives.
template <class Write>
LoopBody elementwise(ir::Shape extents, Write write) {
  Scalars s;
  s.result(write(s));
  return {.extents = std::move(extents), .element = s.take()};
}

}  // namespace tenon::ops
