#include "host/cli/npy.h"

#include <cmath>
#include <cstring>

#include "catch.h"
#include "core/base/error.h"

using namespace tenon;
using namespace tenon::cli;

namespace {

Array counting(DType dtype, std::vector<std::int64_t> shape) {
  Array array = Array::zeros(dtype, std::move(shape));
  for (std::int64_t i = 0; i < array.element_count(); ++i) array.set(i, static_cast<double>(i % 5));
  return array;
}

Code code_of(std::string_view bytes) {
  try {
    parse_npy(bytes);
  } catch (const Exception& error) {
    return error.code();
  }
  return Code::ok;
}

/// A file with the given header and data.
std::string file(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(header.size());
  bytes += static_cast<char>(header.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + header + data;
}

}  // namespace

TEST_CASE("what is written is read back") {
  const DType dtype = GENERATE(DType::b8, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::f32, DType::f64, DType::c64, DType::c128);
  const std::vector<std::int64_t> shape = GENERATE(values<std::vector<std::int64_t>>({{}, {7}, {2, 3}, {0, 4}, {2, 1, 3, 2}}));
  const Array array = counting(dtype, shape);
  const std::string bytes = npy_bytes(array);
  const Array back = parse_npy(bytes);
  CHECK(back.dtype == dtype);
  CHECK(back.shape == shape);
  CHECK(back.bytes == array.bytes);
  CHECK((bytes.size() - array.bytes.size()) % 64 == 0);
}

TEST_CASE("bfloat16 is written as float32") {
  Array array = Array::zeros(DType::bf16, {2});
  array.set(0, 1.5);
  const Array back = parse_npy(npy_bytes(array));
  CHECK(back.dtype == DType::f32);
  CHECK(back.number(0) == 1.5);
}

TEST_CASE("Fortran order is read as strides and written as rows") {
  const std::string data("\1\2\3\4\5\6", 6);
  const Array array = parse_npy(file("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n", data));
  CHECK(array.strides == std::vector<std::int64_t>{1, 2});
  CHECK(array.number(0) == 1);
  CHECK(array.number(1) == 3);
  CHECK(array.number(3) == 2);
  const Array rows = parse_npy(npy_bytes(array));
  CHECK(rows.strides == std::vector<std::int64_t>{3, 1});
  CHECK(rows.number(1) == 3);
}

TEST_CASE("64-bit integers survive transposition") {
  Array array = Array::zeros(DType::i64, {2, 2});
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  std::memcpy(array.bytes.data() + 8, &large, 8);
  array.strides = {1, 2};
  const Array rows = parse_npy(npy_bytes(array));
  std::int64_t back = 0;
  std::memcpy(&back, rows.bytes.data() + 16, 8);
  CHECK(back == large);
}

TEST_CASE("versions 2 and 3 of the format are read") {
  const char version = GENERATE(char{2}, char{3});
  const Array array = parse_npy(file("{'descr': '<u1', 'fortran_order': False, 'shape': (2,), }\n", "\7\10", version));
  CHECK(array.number(1) == 8);
}

TEST_CASE("a damaged or foreign file is refused") {
  const std::string good = npy_bytes(counting(DType::f32, {3, 4}));
  for (std::size_t size = 0; size < good.size(); ++size) {
    INFO("cut at " << size);
    CHECK(code_of(std::string_view(good).substr(0, size)) == Code::malformed);
  }
  const std::string tail = ", 'fortran_order': False, 'shape': (1,), }\n";
  CHECK(code_of(file("{'descr': '>f4'" + tail, "abcd")) == Code::unsupported);
  CHECK(code_of(file("{'descr': '|O'" + tail, "abcd")) == Code::unsupported);
  CHECK(code_of(file("{'descr': [('a', '<f4')]" + tail, "abcd")) == Code::unsupported);
  CHECK(code_of(file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999, 99999999999999999), }\n", "abcd")) == Code::malformed);
  CHECK(code_of(file("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 99999999999999999, 99999999999999999), }\n", "")) == Code::malformed);
  CHECK(code_of(file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", "abcd")) == Code::malformed);
  CHECK(code_of(file("{'descr': '<f4', 'shape': (1,), }\n", "abcd")) == Code::malformed);
  CHECK(code_of(file("{'descr': '<f4', 'more': 1, 'shape': (1,), }\n", "abcd")) == Code::malformed);
  CHECK(code_of(file("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,), }\n", "abcd")) == Code::malformed);
  CHECK(code_of(file("", "")) == Code::malformed);
  CHECK(code_of("a text") == Code::malformed);
}

TEST_CASE("random inputs depend on the seed alone") {
  Array a = Array::zeros(DType::f32, {100}), b = a, c = a;
  fill_random(a, 1);
  fill_random(b, 1);
  fill_random(c, 2);
  CHECK(a.bytes == b.bytes);
  CHECK(a.bytes != c.bytes);
  for (std::int64_t i = 0; i < 100; ++i) CHECK(std::abs(a.number(i)) <= 1);
}
