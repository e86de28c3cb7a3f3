// The transformations around the matrix products of Winograd's convolutions F(2x2, 3x3) and F(4x4, 3x3), and of the gradient of their weights
// F(3x3, 2x2): Lavin and Gray, arXiv 1509.09308, section 4.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "isa/target.h"

namespace tenon::llvm_backend {

/// Taps of the kernel, and the sides of the squares of pixels that a product gives.
inline constexpr std::int64_t kWinogradTaps = 9, kSmallSquare = 2, kLargeSquare = 4;
/// Places of the square that is transformed for one of `side` pixels a side; and the most of them.
constexpr std::int64_t winograd_places(std::int64_t side) { return (side + 2) * (side + 2); }
inline constexpr std::int64_t kMostWinogradPlaces = winograd_places(kLargeSquare);

/// Transforms a square of pixels, whose `channels` elements start at `pixels`, row by row, to all places. Writes place p at v + p * v_stride.
/// There are at least as many channels as a vector register has lanes.
using WinogradInput = void (*)(const void* const* pixels, void* v, std::int64_t v_stride, std::int64_t channels);

/// Transforms `count` elements of each of the 9 taps, which lie tap_stride apart, to all places, u_stride apart. `count` is a multiple
/// of the lanes.
using WinogradWeights = void (*)(const void* taps, std::int64_t tap_stride, void* u, std::int64_t u_stride, std::int64_t count);

/// Transforms all places, m_stride apart, of `count` elements (a multiple of the lanes) to the pixels, or taps, whose rows stand in `rows`.
/// Gives 0 when all results are finite.
using WinogradOutput = std::int64_t (*)(const void* m, std::int64_t m_stride, void* const* rows, std::int64_t count);

/// The three of one side.
struct WinogradCode {
  WinogradInput input = nullptr;
  WinogradWeights weights = nullptr;
  WinogradOutput output = nullptr;
};

/// Of the gradient of the weights, by squares of 2 x 2 results. As the convolution is linear in pixels, weights and what weighs its results, each
/// place of the weights' gradient is the sum over squares of the products of transformed pixels and results, by the transposed transformations.
struct WinogradSumCode {
  WinogradInput input = nullptr, results = nullptr;
  WinogradOutput taps = nullptr;
};

/// Adds the three functions of one side for float32 or float64. Strides are in elements.
void emit_winograd(llvm::Module& module, const Target& target, DType dtype, std::int64_t side, const std::string& input, const std::string& weights,
                   const std::string& output);

/// Adds those of the gradient of the weights.
void emit_winograd_sum(llvm::Module& module, const Target& target, DType dtype, const std::string& input, const std::string& results, const std::string& taps);

}  // namespace tenon::llvm_backend
