// Owned and borrowed references to Python objects: the only way in which this frontend holds them.
#pragma once

#include <Python.h>

#include <cstddef>
#include <utility>

namespace tenon::python {

/// Owns one reference, or is empty. Copies count; the GIL must be held whenever one is copied or destroyed.
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  Ref(const Ref& other) : object_(Py_XNewRef(other.object_)) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  /// Takes over a reference that the caller owns (the result of a "new reference" function). Null gives an empty Ref.
  static Ref steal(PyObject* object) { return Ref(object, Adopt{}); }
  /// Makes a reference of its own to an object that somebody else holds. Null gives an empty Ref.
  static Ref borrow(PyObject* object) { return Ref(Py_XNewRef(object), Adopt{}); }

  PyObject* get() const { return object_; }
  /// Gives the reference to the caller.
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }
  bool is(PyObject* other) const { return object_ == other; }
  PyTypeObject* type() const { return Py_TYPE(object_); }

 private:
  struct Adopt {};
  Ref(PyObject* object, Adopt) : object_(object) {}

  PyObject* object_ = nullptr;
};

/// Names an object that somebody else keeps alive for as long as this is used.
class BorrowedRef {
 public:
  BorrowedRef() = default;
  BorrowedRef(PyObject* object) : object_(object) {}
  BorrowedRef(const Ref& ref) : object_(ref.get()) {}
  PyObject* get() const { return object_; }
  operator PyObject*() const { return object_; }
  PyTypeObject* type() const { return Py_TYPE(object_); }

 private:
  PyObject* object_ = nullptr;
};

/// A class, as the object that it is.
inline PyObject* as_object(PyTypeObject* type) { return reinterpret_cast<PyObject*>(type); }

}  // namespace tenon::python
