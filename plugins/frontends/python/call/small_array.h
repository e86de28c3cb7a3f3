// A fixed-size array that lies on the stack while it is small.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace tenon::python {

template <class T, std::size_t kInline>
class SmallArray {
 public:
  explicit SmallArray(std::size_t size) : x_size(size) {
    if (size > kInline) x_heap = std::make_unique<T[]>(size);
  }
  T* data() { return x_heap ? x_heap.get() : x_inline.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  std::size_t size() const { return x_size; }

 private:
  std::size_t x_size;
  std::array<T, kInline> x_inline;
  std::unique_ptr<T[]> x_heap;
};

}  // namespace tenon::python
