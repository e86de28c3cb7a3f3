#include "array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "core/abi/dlpack_types.h"
#include "core/base/error.h"
#include "core/base/float16.h"
#include "core/memory/row_major.h"

namespace tenon::cli {
namespace {

/// Bytes of a shape. Sizes of a file are not to be trusted.
std::size_t bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  std::uint64_t bytes = size_of(dtype);
  bool empty = false;
  for (const std::int64_t size : shape) {
    TENON_USER_CHECK(size >= 0, "a size must not be negative: {}", size);
    empty |= size == 0;
    // A size of 0 counts as 1: strides are computed from the other sizes.
    TENON_USER_CHECK(!__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(size, 1)), &bytes) && bytes < (std::uint64_t{1} << 46),
                     "the array is too large: {}[{}]", name_of(dtype), fmt::join(shape, ", "));
  }
  return empty ? 0 : bytes;
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void store(std::byte* at, double value) {
  const auto stored = static_cast<T>(value);
  std::memcpy(at, &stored, sizeof stored);
}

double number_at(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::b8: return load<std::uint8_t>(at) != 0;
    case DType::u8: return load<std::uint8_t>(at);
    case DType::i8: return load<std::int8_t>(at);
    case DType::i16: return load<std::int16_t>(at);
    case DType::i32: return load<std::int32_t>(at);
    case DType::i64: return static_cast<double>(load<std::int64_t>(at));
    case DType::f16: return float_of_half(load<std::uint16_t>(at));
    case DType::bf16: return float_of_bfloat16(load<std::uint16_t>(at));
    case DType::f32:
    case DType::c64: return load<float>(at);
    case DType::f64:
    case DType::c128: return load<double>(at);
  }
  return 0;
}

void set_at(DType dtype, std::byte* at, double value) {
  switch (dtype) {
    case DType::b8: return store<std::uint8_t>(at, value != 0);
    case DType::u8: return store<std::uint8_t>(at, value);
    case DType::i8: return store<std::int8_t>(at, value);
    case DType::i16: return store<std::int16_t>(at, value);
    case DType::i32: return store<std::int32_t>(at, value);
    case DType::i64: return store<std::int64_t>(at, value);
    case DType::f16: return store<std::uint16_t>(at, half_of_float(static_cast<float>(value)));
    case DType::bf16: return store<std::uint16_t>(at, bfloat16_of_float(static_cast<float>(value)));
    case DType::f32:
    case DType::c64: return store<float>(at, value);
    case DType::f64:
    case DType::c128: return store<double>(at, value);
  }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

Array Array::zeros(DType dtype, std::vector<std::int64_t> shape) {
  Array array;
  array.dtype = dtype;
  array.bytes.resize(bytes_of(dtype, shape));
  array.strides = row_major_strides(shape);
  array.shape = std::move(shape);
  return array;
}

std::int64_t Array::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

const std::byte* Array::at(std::int64_t position) const {
  std::int64_t offset = 0;
  for (std::size_t i = shape.size(); i-- > 0; position /= shape[i]) offset += position % shape[i] * strides[i];
  return bytes.data() + static_cast<std::size_t>(offset) * size_of(dtype);
}

double Array::number(std::int64_t position) const { return number_at(dtype, at(position)); }

void Array::set(std::int64_t position, double value) { set_at(dtype, const_cast<std::byte*>(at(position)), value); }

DLTensor Array::tensor() {
  return {bytes.data(), {kDLCPU, 0}, static_cast<std::int32_t>(shape.size()), dlpack_type(dtype), shape.data(), strides.data(), 0};
}

Array copy_of(const DLTensor& tensor) {
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  TENON_CHECK(dtype && tensor.device.device_type == kDLCPU, "an output of the host is of a dtype and device that the command knows");
  Array copy = Array::zeros(*dtype, {tensor.shape, tensor.shape + tensor.ndim});
  const auto* from = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  const std::vector<std::int64_t> strides = tensor.strides ? std::vector<std::int64_t>(tensor.strides, tensor.strides + tensor.ndim) : copy.strides;
  const std::size_t size = size_of(*dtype);
  if (strides == copy.strides) {
    if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), from, copy.bytes.size());
    return copy;
  }
  for (std::int64_t position = 0, n = copy.element_count(); position < n; ++position) {
    std::int64_t offset = 0, rest = position;
    for (std::size_t i = copy.shape.size(); i-- > 0; rest /= copy.shape[i]) offset += rest % copy.shape[i] * strides[i];
    std::memcpy(copy.bytes.data() + static_cast<std::size_t>(position) * size, from + offset * static_cast<std::int64_t>(size), size);
  }
  return copy;
}

void fill_random(Array& array, std::uint64_t seed) {
  const bool floats = is_float(array.dtype) || is_complex(array.dtype);
  const std::int64_t n = array.element_count();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = mixed(seed + mixed(static_cast<std::uint64_t>(i)));
    array.set(i, floats ? static_cast<double>(bits >> 11) * 0x1p-52 - 1 : static_cast<double>(bits % (is_bool(array.dtype) ? 2 : 10)));
  }
}

std::string type_text(const Array& array) { return fmt::format("{}[{}]", name_of(array.dtype), fmt::join(array.shape, ", ")); }

}  // namespace tenon::cli
