// Kernels that take their sizes with the call, so that one serves many that differ in them alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "loops/kernel.h"

namespace tenon::codegen {

/// A kernel whose symbol i has the value `sizes[i]`.
struct SizedKernel {
  Kernel kernel;
  std::vector<std::int64_t> sizes;
};

/// Gives the kernel with a symbol in the place of each extent, stride and start that is constant. What decides on its code stays: steps by one
/// element, loops of no more than one iteration, and what stands inside of quotients, remainders and limits. Nothing for a kernel with symbols of its own.
std::optional<SizedKernel> with_sizes_at_run_time(const Kernel& kernel);

/// For each kernel one that serves all that differ from it in sizes alone, where they are at least so many; nothing for the others and for a null.
std::vector<std::optional<SizedKernel>> shared_by_sizes(const std::vector<const Kernel*>& kernels, std::size_t least);

}  // namespace tenon::codegen
