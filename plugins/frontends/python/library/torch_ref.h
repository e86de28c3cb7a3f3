// Objects that torch counts (c10::intrusive_ptr), held without Python. Where they have their counts is private: library/torch_node_check.cpp looks first.
#pragma once

#include <utility>

namespace tenon::python {

/// Owns one count of an object that torch counts (c10::intrusive_ptr), or is empty. Needs no GIL.
class TorchRef {
 public:
  TorchRef() = default;
  TorchRef(const TorchRef& other) : object_(other.object_) {
    if (object_) count(object_);
  }
  TorchRef(TorchRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  TorchRef& operator=(TorchRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~TorchRef() {
    if (object_) let_go(object_);
  }

  /// Takes over a count that the caller owns.
  static TorchRef steal(void* object) {
    TorchRef made;
    made.object_ = object;
    return made;
  }
  static TorchRef borrow(void* object) {
    if (object) count(object);
    return steal(object);
  }
  /// Of an object that is held weakly: empty when it is gone.
  static TorchRef lock(void* object) noexcept;

  void* get() const { return object_; }
  void* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  static void count(void* object) noexcept;
  static void let_go(void* object) noexcept;
  void* object_ = nullptr;
};

}  // namespace tenon::python
