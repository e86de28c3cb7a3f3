#include "python/tensors/array_results.h"

#include <array>

#include "python/evaluator/graph_break.h"
#include "python/tensors/pool_block.h"

namespace tenon::python {
namespace {

struct ArrayExtents {
  std::array<npy_intp, NPY_MAXDIMS> shape, strides;
};

ArrayExtents in_bytes(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::size_t item_bytes) {
  ArrayExtents extents;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    extents.shape[i] = shape[i];
    extents.strides[i] = strides[i] * static_cast<npy_intp>(item_bytes);
  }
  return extents;
}

std::size_t byte_count(std::span<const std::int64_t> shape, std::size_t item_bytes) {
  std::size_t bytes = item_bytes;
  for (std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

void release_capsule(PyObject* capsule) { release_pool_block(PyCapsule_GetContext(capsule)); }

/// Owns the block: the base of the array.
PyObject* block_owner(const PoolBlock& block) {
  PyObject* owner = PyCapsule_New(block.data, nullptr, release_capsule);
  if (!owner) {
    release_pool_block(block.context);
    return nullptr;
  }
  PyCapsule_SetContext(owner, block.context);
  return owner;
}

}  // namespace

PyObject* new_array(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void*& data) {
  const std::size_t item_bytes = size_of(dtype);
  const std::size_t bytes = byte_count(shape, item_bytes);
  const PoolBlock block = take_pool_block(bytes ? bytes : 1);
  if (!block.data) return PyErr_NoMemory();
  data = block.data;
  Ref owner = Ref::steal(block_owner(block));
  if (!owner) return nullptr;
  ArrayExtents extents = in_bytes(shape, strides, item_bytes);
  Ref array = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(numpy_type(dtype)), static_cast<int>(shape.size()),
                                              extents.shape.data(), extents.strides.data(), data, NPY_ARRAY_WRITEABLE, nullptr));
  if (!array || PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), owner.release()) < 0) return nullptr;
  PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(array.get()), NPY_ARRAY_UPDATE_ALL);
  return array.release();
}

PyObject* new_array_scalar(DType dtype, const void* data) {
  Ref descriptor = Ref::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(numpy_type(dtype))));
  return PyArray_Scalar(const_cast<void*>(data), reinterpret_cast<PyArray_Descr*>(descriptor.get()), nullptr);
}

Ref array_over(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void* data, bool writeable) {
  ArrayExtents extents = in_bytes(shape, strides, size_of(dtype));
  Ref array = checked(PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(numpy_type(dtype)), static_cast<int>(shape.size()), extents.shape.data(),
                                           extents.strides.data(), data, writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(array.get()), NPY_ARRAY_UPDATE_ALL);
  return array;
}

Ref array_view(PyObject* base, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::int64_t offset, bool writeable) {
  auto* array = reinterpret_cast<PyArrayObject*>(base);
  PyArray_Descr* descriptor = PyArray_DESCR(array);
  const auto item_bytes = static_cast<std::size_t>(PyArray_ITEMSIZE(array));
  ArrayExtents extents = in_bytes(shape, strides, item_bytes);
  char* data = static_cast<char*>(PyArray_DATA(array)) + offset * static_cast<std::int64_t>(item_bytes);
  Py_INCREF(descriptor);
  Ref view = checked(PyArray_NewFromDescr(&PyArray_Type, descriptor, static_cast<int>(shape.size()), extents.shape.data(),
                                          extents.strides.data(), data, writeable ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  Py_INCREF(base);
  checked(PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view.get()), base));
  PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(view.get()), NPY_ARRAY_UPDATE_ALL);
  return view;
}

}  // namespace tenon::python
