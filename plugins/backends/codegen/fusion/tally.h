// What a plan does, counted and not timed: for logs, and for tests that compare plans.
#pragma once

#include <cstddef>
#include <string>

#include "fusion/plan.h"

namespace tenon::codegen {

struct Tally {
  std::size_t kernels = 0;     // generated ones, products and calls of the library
  std::size_t longest = 0, length = 0;  // operations of the longest generated kernel, and of all of them
  double operations = 0;       // of generated kernels, at all points of their loops; of products, multiplications
  double loads = 0, stores = 0;  // elements, each as often as it is read or written
  double live_bytes = 0;       // of what steps write, at the step where most is alive; outputs are alive to the end
  double apart_bytes = 0;      // the same where no value is written over another
};

/// Sizes that are not known count as IndexAlgebra::estimate says. An operation of a kernel counts at the points of each stage that needs it.
Tally tally_of(const Plan& plan, const ir::Graph& graph);

std::string to_text(const Tally& tally);

}  // namespace tenon::codegen
