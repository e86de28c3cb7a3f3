#include "python/results/array_results.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "python/objects/graph_break.h"
#include "python/results/pool_block.h"

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

std::size_t bytes_of_array(std::span<const std::int64_t> shape, std::size_t item_bytes) {
  std::size_t bytes = item_bytes;
  for (std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

// NumPy's memory handler (PyDataMem_Handler) over the pool: arrays made with it own their memory, and may be resized.

void* handler_malloc(void*, std::size_t bytes) { return take_addressed_memory(bytes ? bytes : 1); }

void* handler_calloc(void*, std::size_t count, std::size_t item_bytes) {
  if (item_bytes != 0 && count > SIZE_MAX / item_bytes) return nullptr;
  void* data = handler_malloc(nullptr, count * item_bytes);
  return data ? std::memset(data, 0, count * item_bytes) : nullptr;
}

void handler_free(void*, void* data, std::size_t) {
  if (data) release_addressed_memory(data);
}

void* handler_realloc(void*, void* data, std::size_t bytes) {
  void* moved = handler_malloc(nullptr, bytes);
  if (!moved || !data) return moved;
  std::memcpy(moved, data, std::min(bytes, bytes_of_addressed_memory(data)));
  release_addressed_memory(data);
  return moved;
}

PyDataMem_Handler g_handler = {"tenon_pool", 1, {nullptr, handler_malloc, handler_calloc, handler_realloc, handler_free}};

/// The capsule in which NumPy keeps a handler, made once. Null with an exception set when there is no memory.
PyObject* memory_handler() {
  static PyObject* const capsule = PyCapsule_New(&g_handler, "mem_handler", nullptr);
  return capsule;
}

}  // namespace

namespace {

/// An array that owns memory of the handler; null with an exception set, when the memory stays the caller's. One without elements has strides of
/// 0, as NumPy's own have.
Ref owning_array(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void* data, PyObject* handler) {
  ArrayExtents extents = in_bytes(shape, strides, bytes_of_array(shape, 1) == 0 ? 0 : size_of(dtype));
  Ref array = Ref::steal(PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(numpy_type(dtype)), static_cast<int>(shape.size()),
                                              extents.shape.data(), extents.strides.data(), data, NPY_ARRAY_WRITEABLE, nullptr));
  if (!array) return array;
  auto* made = reinterpret_cast<PyArrayObject*>(array.get());
  reinterpret_cast<PyArrayObject_fields*>(made)->mem_handler = Py_NewRef(handler);
  PyArray_ENABLEFLAGS(made, NPY_ARRAY_OWNDATA);
  PyArray_UpdateFlags(made, NPY_ARRAY_UPDATE_ALL);
  return array;
}

}  // namespace

PyObject* new_array(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void*& data) {
  PyObject* handler = memory_handler();
  if (!handler) return nullptr;
  data = handler_malloc(nullptr, bytes_of_array(shape, size_of(dtype)));
  if (!data) return PyErr_NoMemory();
  Ref array = owning_array(dtype, shape, strides, data, handler);
  if (!array) release_addressed_memory(data);
  return array.release();
}

Ref zeroed_array(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  Ref handler = checked(PyDataMem_GetHandler());
  PyDataMemAllocator& allocator = static_cast<PyDataMem_Handler*>(PyCapsule_GetPointer(handler.get(), "mem_handler"))->allocator;
  const std::size_t bytes = std::max<std::size_t>(bytes_of_array(shape, size_of(dtype)), 1);
  void* data = allocator.calloc(allocator.ctx, bytes, 1);
  if (!data) checked(PyErr_NoMemory());
  Ref array = owning_array(dtype, shape, strides, data, handler.get());
  if (!array) allocator.free(allocator.ctx, data, bytes);
  return checked(array.release());
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
