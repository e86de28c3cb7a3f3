// The scalar primitives over lanes of values: one typed loop for each instruction, not one call for each element.
#pragma once

#include <cstddef>

#include "core/ops/scalar_program.h"

namespace tenon::ops::reference {

/// Bytes of one lane of a register, whatever its dtype.
inline constexpr std::size_t kLaneBytes = 16;

/// Computes `n` lanes of an instruction that is neither a leaf nor a load. Registers are arrays of the dtype's C++ type
/// (bool as one byte, 0 or 1); `argument` is the dtype of the first argument (for comparisons, conversions) and of all others
/// but select's.
void compute(const Instruction& instruction, DType argument, const void* a, const void* b, const void* c, void* result, std::size_t n);

/// Fills `n` lanes with the value of a constant's payload.
void fill_constant(DType dtype, std::uint64_t payload, void* result, std::size_t n);

/// Converts `n` values between any two dtypes, storage types among them. Strides are in elements.
void convert_strided(DType from, const void* source, std::ptrdiff_t source_stride, DType to, void* target, std::ptrdiff_t target_stride,
                     std::size_t n);

/// Reads element `offsets[i]` of `source` for each lane, as dtype `to`.
void gather(DType from, const void* source, const std::int64_t* offsets, DType to, void* target, std::size_t n);
/// Writes each lane to element `offsets[i]` of `target`, rounded to its dtype.
void scatter(DType from, const void* source, DType to, void* target, const std::int64_t* offsets, std::size_t n);

}  // namespace tenon::ops::reference
