// Transposes blocks of a matrix in registers: how the right operand of a product is packed when it lies transposed.
#pragma once

#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "isa/target.h"

namespace tenon::llvm_backend {

/// Rows of the source that the generated function takes at once: the lanes of a vector.
int transposed_rows(const Target& target, DType dtype);

/// The generated function: to[k * to_stride + i] = from[i * from_stride + k] for i in [0, transposed_rows) and k in [0, length), where
/// length is a multiple of transposed_rows. Strides are in elements. As many rows after them are fetched meanwhile: processors do not guess
/// where the next ones start.
using Transposition = void (*)(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride, std::int64_t length);

/// The generated function: puts the elements of two rows of halves side by side, `count` pairs of rows. Rows of the source are from_stride halves apart, those
/// of pairs to_stride pairs. Whole vectors of pairs are written, which reach beyond `columns` by less than one.
using Pairing = void (*)(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride, std::int64_t count, std::int64_t columns);

/// Adds the function `name`, for AVX-512.
void emit_pairing(llvm::Module& module, const Target& target, const std::string& name);

/// Adds the function `name` for float32 or float64.
void emit_transposition(llvm::Module& module, const Target& target, DType dtype, const std::string& name);

}  // namespace tenon::llvm_backend
