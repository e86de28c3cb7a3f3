#include "python/metadata/memory_overlap.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "python/library/numpy_api.h"
#include "python/objects/imported.h"
#include "python/objects/ref.h"

namespace tenon::python {
namespace {

constexpr long kLittleWork = 10000;

bool is_dense(const ElementPlaces& t) {
  std::size_t bytes = t.item_bytes;
  for (std::int64_t extent : t.shape) bytes *= static_cast<std::size_t>(extent);
  const auto [low, high] = range_of(t);
  return static_cast<std::size_t>(high - low) == bytes && !may_overlap_itself(t.shape, t.strides);
}

/// An array that only says where elements are.
Ref as_array(const ElementPlaces& t) {
  std::vector<npy_intp> shape(t.shape.begin(), t.shape.end()), strides;
  for (std::int64_t stride : t.strides) strides.push_back(stride * static_cast<npy_intp>(t.item_bytes));
  const int type = t.item_bytes == 1 ? NPY_UINT8 : t.item_bytes == 2 ? NPY_UINT16 : t.item_bytes == 4 ? NPY_UINT32 : t.item_bytes == 8 ? NPY_UINT64 : NPY_COMPLEX128;
  return Ref::steal(PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(type), static_cast<int>(shape.size()), shape.data(), strides.data(),
                                         const_cast<void*>(t.first), 0, nullptr));
}

bool share_by_numpy(const ElementPlaces& a, const ElementPlaces& b) {
  Ref numpy = Ref::steal(imported("numpy"));
  Ref x = as_array(a), y = as_array(b);
  Ref answer = numpy && x && y ? Ref::steal(PyObject_CallMethod(numpy.get(), "shares_memory", "OOl", x.get(), y.get(), kLittleWork)) : Ref();
  if (!answer) PyErr_Clear();  // too much work
  return !answer.is(Py_False);
}

}  // namespace

ByteRange range_of(const ElementPlaces& t) noexcept {
  const char *low = static_cast<const char*>(t.first), *high = low + t.item_bytes;
  for (std::size_t i = 0; i < t.shape.size(); ++i) {
    if (t.shape[i] == 0) return {low, low};
    const std::int64_t reach = t.strides[i] * (t.shape[i] - 1) * static_cast<std::int64_t>(t.item_bytes);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

bool may_overlap_itself(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, extent
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return false;
    if (shape[i] > 1) dims.emplace_back(std::abs(strides[i]), shape[i]);
  }
  std::ranges::sort(dims);
  std::int64_t reach = 0;
  for (const auto& [stride, extent] : dims) {
    if (stride <= reach) return true;
    reach += stride * (extent - 1);
  }
  return false;
}

bool may_share_memory(const ElementPlaces& a, const ElementPlaces& b) noexcept {
  const auto [a_low, a_high] = range_of(a);
  const auto [b_low, b_high] = range_of(b);
  if (a_low >= b_high || b_low >= a_high || a_low == a_high || b_low == b_high) return false;
  return (is_dense(a) && is_dense(b)) || share_by_numpy(a, b);
}

}  // namespace tenon::python
