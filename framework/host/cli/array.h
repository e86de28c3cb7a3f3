// An array in memory that the command owns: what a .npy file holds, or a random input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/abi/dlpack.h"
#include "core/base/dtype.h"

namespace tenon::cli {

struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  std::vector<std::byte> bytes;

  /// A row-major array of zeros. Throws Exception (invalid_argument) for a size that no memory has.
  static Array zeros(DType dtype, std::vector<std::int64_t> shape);

  std::int64_t element_count() const;
  /// The element at a row-major position, as float64 (of a complex number the real part).
  double number(std::int64_t position) const;
  /// Stores a number, rounded or truncated to the dtype.
  void set(std::int64_t position, double value);
  /// A tensor that borrows this array.
  DLTensor tensor();

 private:
  const std::byte* at(std::int64_t position) const;
};

/// An array that owns a copy of a row-major or strided tensor in host memory.
Array copy_of(const DLTensor& tensor);

/// Fills with numbers that depend on seed and position only: floats in [-1, 1), integers in [0, 10), bools at random.
void fill_random(Array& array, std::uint64_t seed);

/// "f32[2, 3]"
std::string type_text(const Array& array);

}  // namespace tenon::cli
