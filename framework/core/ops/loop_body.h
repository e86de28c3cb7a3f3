// The meaning of an op as a loop nest: the one form that the reference interprets and that backends lower and fuse.
#pragma once

#include <optional>
#include <vector>

#include "core/ir/dim.h"
#include "core/ops/scalar_program.h"

namespace tenon::ops {

/// How the elements of the reduced loops become one. The programs take and give `accumulators` values.
struct Reducer {
  std::vector<DType> accumulators;
  ScalarProgram init;     // no parameters → accumulators: the identity of `combine`
  ScalarProgram combine;  // parameters: accumulators a, accumulators b → accumulators; associative and commutative up to rounding.
                          // a comes from lower loop indices than b wherever that decides (argmax takes the first)
  ScalarProgram finish;   // parameters: accumulators → one value a result
};

/// For every point of the outer loops (one a dimension of the results, in order) runs `element`; with a reducer the inner
/// `reduced` loops run for every such point, `element` gives accumulators, and `finish` gives the results.
/// `loop_index i` in `element` is the i-th loop, outer loops first. Loads are of the node's operands, by logical index.
/// A load whose index depends on another load (an op that may_raise) is checked against the operand's shape; outside it the call
/// fails with "index I is out of bounds for dimension D with size N". Where a mask is false nothing is checked.
/// Operands of a reduced float are loaded as float32; results of a reduced float are rounded when stored.
struct LoopBody {
  std::vector<ir::Dim> extents;  // outer loops, then reduced loops
  std::size_t reduced = 0;
  ScalarProgram element;
  std::optional<Reducer> reducer = {};

  std::size_t outer() const { return extents.size() - reduced; }
};

/// A scatter: the result starts as a copy of operand `base`; then for every point of `extents`, in order, the element at
/// `target` becomes combine(old, value). `target` gives one index a dimension of the result, then one value.
/// A target out of range fails the call, as for a LoopBody's loads.
struct ScatterBody {
  std::size_t base = 0;
  std::vector<ir::Dim> extents;
  ScalarProgram target;
  ScalarProgram combine;  // parameters: old, value → new
  bool ordered = true;    // false: combine is associative and commutative, so points may run in any order
};

}  // namespace tenon::ops
