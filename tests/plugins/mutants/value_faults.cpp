// Faults in the numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "mutant.h"

namespace tenon::mutants {
namespace {

/// Runs `change(data, count)` on every output of element type T.
template <class T, class Change>
void on_elements(Run& run, DType dtype, Change change) {
  for (ops::HostTensor& output : run.outputs)
    if (output.dtype == dtype) change(output.as<T>(), output.element_count());
}

template <class Change>
auto on_floats(Change change) {
  return [change](Run& run) {
    on_elements<float>(run, DType::f32, change);
    on_elements<double>(run, DType::f64, change);
  };
}

/// Every element, as bytes, through `change(bytes, size, index, count)`.
template <class Change>
auto on_bytes(Change change) {
  return [change](Run& run) {
    for (ops::HostTensor& output : run.outputs) change(static_cast<std::byte*>(output.data()), size_of(output.dtype), static_cast<std::size_t>(output.element_count()), output.shape);
  };
}

using Shape = std::vector<std::int64_t>;

void copy_element(std::byte* data, std::size_t size, std::size_t to, std::size_t from) { std::memcpy(data + to * size, data + from * size, size); }

}  // namespace

std::vector<Mutant> value_faults() {
  return {
      {.name = "nan_to_zero", .after = on_floats([](auto* x, std::int64_t n) { std::replace_if(x, x + n, [](auto v) { return std::isnan(v); }, 0); })},
      {.name = "infinity_to_largest", .after = on_floats([](auto* x, std::int64_t n) {
         using T = std::remove_pointer_t<decltype(x)>;
         std::replace_if(x, x + n, [](auto v) { return std::isinf(v); }, std::numeric_limits<T>::max());
       })},
      {.name = "float64_in_float32", .after = [](Run& run) {
         on_elements<double>(run, DType::f64, [](double* x, std::int64_t n) { std::transform(x, x + n, x, [](double v) { return static_cast<float>(v); }); });
       }},
      {.name = "float32_in_bfloat16", .after = [](Run& run) {
         on_elements<std::uint32_t>(run, DType::f32, [](std::uint32_t* x, std::int64_t n) { std::transform(x, x + n, x, [](std::uint32_t v) { return v & 0xffff0000u; }); });
       }},
      {.name = "int64_in_int32", .after = [](Run& run) {
         on_elements<std::int64_t>(run, DType::i64, [](std::int64_t* x, std::int64_t n) { std::transform(x, x + n, x, [](std::int64_t v) { return static_cast<std::int32_t>(v); }); });
       }},
      {.name = "int8_saturates", .after = [](Run& run) {
         on_elements<std::int8_t>(run, DType::i8, [](std::int8_t* x, std::int64_t n) { std::replace(x, x + n, std::int8_t{-128}, std::int8_t{-127}); });
       }},
      {.name = "uint8_saturates_at_127", .after = [](Run& run) {
         on_elements<std::uint8_t>(run, DType::u8, [](std::uint8_t* x, std::int64_t n) { std::transform(x, x + n, x, [](std::uint8_t v) { return std::min<std::uint8_t>(v, 127); }); });
       }},
      {.name = "bool_as_255", .after = [](Run& run) {
         on_elements<std::uint8_t>(run, DType::b8, [](std::uint8_t* x, std::int64_t n) { std::replace(x, x + n, std::uint8_t{1}, std::uint8_t{255}); });
       }},
      {.name = "subnormal_and_small_to_zero", .after = on_floats([](auto* x, std::int64_t n) { std::replace_if(x, x + n, [](auto v) { return std::abs(v) < 0.01; }, 0); })},
      {.name = "last_element_missing", .after = on_bytes([](std::byte* data, std::size_t size, std::size_t n, const Shape&) { if (n > 1) copy_element(data, size, n - 1, n - 2); })},
      {.name = "first_element_missing", .after = on_bytes([](std::byte* data, std::size_t size, std::size_t n, const Shape&) { if (n > 1) copy_element(data, size, 0, 1); })},
      {.name = "vector_tail_missing", .after = on_bytes([](std::byte* data, std::size_t size, std::size_t n, const Shape&) { std::memset(data + (n - n % 8) * size, 0, n % 8 * size); })},
      {.name = "parallel_seam", .after = on_bytes([](std::byte* data, std::size_t size, std::size_t n, const Shape&) { if (n > 512) copy_element(data, size, 512, 511); })},
      {.name = "reversed_output", .after = on_bytes([](std::byte* data, std::size_t size, std::size_t n, const Shape&) {
         for (std::size_t i = 0; i < n / 2; ++i) std::swap_ranges(data + i * size, data + (i + 1) * size, data + (n - 1 - i) * size);
       })},
      {.name = "transposed_output", .after = on_bytes([](std::byte* data, std::size_t size, std::size_t n, const Shape& shape) {
         if (shape.size() != 2) return;
         const std::vector<std::byte> old(data, data + n * size);
         const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape[1]);
         for (std::size_t i = 0; i < n; ++i) std::memcpy(data + i * size, old.data() + (i % rows * columns + i / rows) * size, size);
       })},
      {.name = "accumulates_into_output", .after = [](Run& run) {
         for (std::size_t i = 0; i < run.outputs.size(); ++i) {
           if (run.outputs[i].dtype != DType::f32 || !run.args.outputs[i]) continue;
           for (std::int64_t k = 0; k < run.outputs[i].element_count(); ++k) run.outputs[i].as<float>()[k] += static_cast<const float*>(run.args.outputs[i])[k] * 1e20f;
         }
       }},
      {.name = "second_result_zero", .after = [](Run& run) {
         for (std::size_t i = 1; i < run.outputs.size(); ++i) std::memset(run.outputs[i].data(), 0, run.outputs[i].byte_count());
       }},
  };
}

}  // namespace tenon::mutants
