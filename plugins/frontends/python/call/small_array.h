// A fixed-size array that lies on the stack while it is small.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace tenon::python {

template <class T, std::size_t kInline>
class SmallArray {
 public:
  explicit SmallArray(std::size_t size) : size_(size) {
    if (size > kInline) heap_ = std::make_unique<T[]>(size);
  }
  T* data() { return heap_ ? heap_.get() : inline_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::array<T, kInline> inline_;
  std::unique_ptr<T[]> heap_;
};

}  // namespace tenon::python
