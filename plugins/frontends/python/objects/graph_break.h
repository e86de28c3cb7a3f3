// How anything inside a capture says "this cannot go into the graph": a C++ exception, and its twin for code that C calls.
#pragma once

#include <exception>
#include <string>

#include "python/objects/hints.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Ends the capture at the current instruction. Thrown by the evaluator and by a Recorder; never crosses a C frame of CPython.
class GraphBreak : public std::exception {
 public:
  explicit GraphBreak(std::string reason, std::string hint = kOutsideHint) : reason_(std::move(reason)), hint_(std::move(hint)) {}
  const char* what() const noexcept override { return reason_.c_str(); }
  const std::string& reason() const { return reason_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string reason_;
  std::string hint_;
};

/// Ends the capture because an object cannot be made again by a template. The capture then stops before the instruction that made it, so that it
/// is made for real.
class Unbuildable : public GraphBreak {
 public:
  Unbuildable(PyObject* object, std::string reason) : GraphBreak(std::move(reason)), object_(object) {}
  PyObject* object() const { return object_; }  // borrowed: only its address counts

 private:
  PyObject* object_;
};

/// Ends the capture because a library reads a number that the graph computes, or that a tensor holds.
class NumberNeeded : public GraphBreak {
 public:
  explicit NumberNeeded(std::string reason, std::string hint = kTensorHint) : GraphBreak(std::move(reason), std::move(hint)) {}
};

/// Ends the capture because the program reads elements that the graph computes: what the instruction gives is another number at every call.
class ElementsNeeded : public GraphBreak {
 public:
  explicit ElementsNeeded(std::string reason, std::string hint = kTensorHint) : GraphBreak(std::move(reason), std::move(hint)) {}
};

/// Ends the capture before a call of a function that is called as it is.
class PlainCall : public GraphBreak {
 public:
  using GraphBreak::GraphBreak;
};

/// Ends the capture because a branch of the program goes by the elements of a tensor.
class BranchOnElements : public GraphBreak {
 public:
  using GraphBreak::GraphBreak;
};

/// Ends the capture because the program raises what it does not handle: it must be raised for real.
class UnhandledException : public GraphBreak {
 public:
  explicit UnhandledException(std::string reason) : GraphBreak(std::move(reason), kRaisesHint) {}
};

/// Ends the capture because a call is recorded of which only the library knows the gradient. Nothing has been recorded of it yet.
class GradientNeeded : public GraphBreak {
 public:
  explicit GradientNeeded(std::string reason) : GraphBreak(std::move(reason), "call it outside of the compiled function, or under torch.no_grad()") {}
};

/// Says that a Python exception is set. Thrown where the evaluator wants to unwind to the instruction that failed.
class PythonError : public std::exception {
 public:
  const char* what() const noexcept override { return "a Python exception is set"; }
};

/// Sets the Python exception that stands for a GraphBreak while C frames of CPython are being left (slots, `__torch_function__`).
/// No user handler sees it: the evaluator turns it back into a GraphBreak where the C call returns.
void set_break_signal(const std::string& reason, const std::string& hint = kOutsideHint);
void set_break_signal(const GraphBreak& graph_break);

/// With a Python exception set: throws GraphBreak when it is the signal, else PythonError.
[[noreturn]] void throw_python_error();

/// Takes over the result of a C API call; throws when it is null.
inline Ref checked(PyObject* new_reference) {
  if (new_reference == nullptr) [[unlikely]]
    throw_python_error();
  return Ref::steal(new_reference);
}
/// The same for functions that give -1 for an error.
inline int checked(int status) {
  if (status < 0) [[unlikely]]
    throw_python_error();
  return status;
}
inline Py_ssize_t checked(Py_ssize_t status) {
  if (status < 0) [[unlikely]]
    throw_python_error();
  return status;
}

}  // namespace tenon::python
