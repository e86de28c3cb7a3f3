// The transformations around the matrix products of Winograd's convolution F(2x2, 3x3): Lavin and Gray, arXiv 1509.09308, section 4.1.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "lower/target.h"

namespace tenon::codegen {

/// Places of a square that is transformed, and taps of the kernel.
inline constexpr std::int64_t kWinogradPlaces = 16, kWinogradTaps = 9;

/// Transforms a square of 4 x 4 pixels, whose `channels` elements start at `pixels`, row by row. Writes place p at v + p * v_stride.
/// There are at least as many channels as a vector register has lanes.
using WinogradInput = void (*)(const void* const* pixels, void* v, std::int64_t v_stride, std::int64_t channels);

/// Transforms `count` elements of each of the 9 taps, which lie tap_stride apart, to 16 places, u_stride apart. `count` is a multiple
/// of the lanes.
using WinogradWeights = void (*)(const void* taps, std::int64_t tap_stride, void* u, std::int64_t u_stride, std::int64_t count);

/// Transforms 16 places, m_stride apart, of `count` elements (a multiple of the lanes) to the 2 x 2 pixels whose rows stand in `rows`.
/// Gives 0 when all results are finite.
using WinogradOutput = std::int64_t (*)(const void* m, std::int64_t m_stride, void* const* rows, std::int64_t count);

/// Adds the three functions for float32 or float64. Strides are in elements.
void emit_winograd(llvm::Module& module, const Target& target, DType dtype, const std::string& input, const std::string& weights, const std::string& output);

}  // namespace tenon::codegen
