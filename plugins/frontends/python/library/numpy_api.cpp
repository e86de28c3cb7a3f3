#define TENON_IMPORTS_NUMPY
#include "python/library/numpy_api.h"

namespace tenon::python {
namespace {

int load_arrays() {
  import_array1(-1);
  return 0;
}

int load_ufuncs() {
  import_umath1(-1);
  return 0;
}

struct Pair {
  DType dtype;
  int number;
};
constexpr Pair kPairs[] = {{DType::b8, NPY_BOOL},   {DType::u8, NPY_UINT8},   {DType::i8, NPY_INT8},     {DType::i16, NPY_INT16},
                           {DType::i32, NPY_INT32}, {DType::i64, NPY_INT64},  {DType::f16, NPY_FLOAT16}, {DType::f32, NPY_FLOAT32},
                           {DType::f64, NPY_FLOAT64}, {DType::c64, NPY_COMPLEX64}, {DType::c128, NPY_COMPLEX128}};

}  // namespace

bool import_numpy() { return load_arrays() == 0 && load_ufuncs() == 0; }

int numpy_type(DType dtype) {
  for (const Pair& pair : kPairs)
    if (pair.dtype == dtype) return pair.number;
  return -1;
}

std::optional<DType> dtype_of_numpy(int type_number) {
  if (type_number == NPY_LONGLONG) return DType::i64;  // C's other 64-bit integer
  for (const Pair& pair : kPairs)
    if (pair.number == type_number) return pair.dtype;
  return std::nullopt;
}

}  // namespace tenon::python
