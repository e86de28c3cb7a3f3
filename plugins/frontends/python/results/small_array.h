// Fixed-size arrays that lie on the stack while they are small.
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <memory>

namespace tenon::python {

/// Plain values, not initialised.
template <class T, std::size_t kInline>
class SmallArray {
 public:
  explicit SmallArray(std::size_t size) : size_(size) {
    if (size > kInline) heap_ = std::make_unique_for_overwrite<T[]>(size);
  }
  T* data() { return heap_ ? heap_.get() : inline_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::array<T, kInline> inline_;
  std::unique_ptr<T[]> heap_;
};

/// Holds references for the time of a run.
template <std::size_t kInline>
class HeldObjects {
 public:
  explicit HeldObjects(std::size_t size) : items_(size) {
    for (std::size_t i = 0; i < size; ++i) items_[i] = nullptr;
  }
  ~HeldObjects() {
    for (std::size_t i = 0; i < items_.size(); ++i) Py_XDECREF(items_[i]);
  }
  HeldObjects(const HeldObjects&) = delete;
  HeldObjects& operator=(const HeldObjects&) = delete;
  PyObject*& operator[](std::size_t i) { return items_[i]; }
  PyObject** data() { return items_.data(); }
  std::size_t size() const { return items_.size(); }

 private:
  SmallArray<PyObject*, kInline> items_;
};

}  // namespace tenon::python
