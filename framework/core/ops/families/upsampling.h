// What the ways of interpolating share: onto another grid, and at given places.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/ops/notation/family.h"

namespace tenon::ops {

/// The grid that a foreign call asks for: sizes of the trailing dimensions, and the factors that were given (none, or one a dimension).
struct NewGrid {
  std::vector<ir::Dim> size;
  std::vector<double> factors;
};

/// Of torch's vectorised overloads: a size, or factors that multiply the input's. Of the others: sizes, then one factor a dimension.
NewGrid new_grid(ForeignArguments& a, std::size_t rank);

/// Interpolation with antialias=True; the names belong to `upsample`.
std::vector<Alias> antialias_names();

/// What one result reads of one dimension: indices and their weights.
struct Taps {
  std::vector<Scalar> index, weight;
};

/// The sum over all combinations of taps of weight times element; `load` takes one index a dimension.
Scalar weighted(Scalars& s, std::span<const Taps> taps, std::vector<Scalar>& chosen, const std::function<Scalar(std::span<const Scalar>)>& load);

/// Keys 1981, with a = -0.75 as ATen and OpenCV take it: the weights of the elements at -1, 0, 1, 2 for a place t in [0, 1).
std::vector<Scalar> cubic_weights(Scalars& s, Scalar t);

Op grid_sampler_op();

}  // namespace tenon::ops
