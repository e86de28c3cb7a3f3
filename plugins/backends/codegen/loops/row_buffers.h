// Rows that a kernel keeps: what several sweeps over the inner loops compute is computed in the first and read back in the others.
#pragma once

#include <functional>

#include "loops/kernel.h"

namespace tenon::codegen {

/// Decides whether a value that costs `operations` at each point is kept for the sweeps that need it again, as a row of `bytes`;
/// `kept` bytes are kept already.
using KeepRow = std::function<bool(double operations, double bytes, double kept)>;

/// Adds row buffers to a kernel, for its loops as they are now. Not where the rows of a kernel differ in length.
void keep_rows(Kernel& kernel, const IndexAlgebra& algebra, const KeepRow& worth);

}  // namespace tenon::codegen
