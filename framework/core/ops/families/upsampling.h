// What the ways of interpolating onto another grid share.
#pragma once

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

}  // namespace tenon::ops
