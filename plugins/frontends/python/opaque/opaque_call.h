// Calls of library functions that no op describes: recorded once, made again on every run of their graph.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/library/error_handling.h"
#include "python/metadata/strides.h"
#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// The arguments of a call with places for its tensors. Everything else in them is a constant.
class ArgumentTemplate {
 public:
  using PlaceOf = std::function<std::optional<std::uint32_t>(PyObject*)>;

  ArgumentTemplate() = default;
  /// Copies the containers; `place_of` numbers the tensors. Throws GraphBreak for an argument that a library function might change, or
  /// whose meaning may be another next time.
  ArgumentTemplate(PyObject* object, const PlaceOf& place_of);

  /// The arguments with these tensors. Throws PythonError.
  Ref fill(PyObject* const* tensors) const;
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Kind : std::uint8_t { constant, tensor, tuple, list, dict };
  Kind kind_ = Kind::constant;
  std::uint32_t place_ = 0;
  Ref object_;                          // constant
  std::vector<Ref> keys_;               // dict
  std::vector<ArgumentTemplate> items_;
};

/// One result that is a tensor, as it was when the call was recorded.
struct OpaqueResult {
  TensorKind kind = TensorKind::torch;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  MemoryOrder order = {};  // in which the graph has its dimensions; empty: as they are
};

/// A recorded call. A node of the graph refers to it by its handle.
class OpaqueCall {
 public:
  OpaqueCall(std::string target, Ref callable, ArgumentTemplate args, ArgumentTemplate kwargs);
  ~OpaqueCall();
  OpaqueCall(const OpaqueCall&) = delete;
  OpaqueCall& operator=(const OpaqueCall&) = delete;

  /// Makes a call known under a handle for as long as somebody owns it.
  static std::shared_ptr<OpaqueCall> make(std::string target, Ref callable, ArgumentTemplate args, ArgumentTemplate kwargs);
  /// The call of that handle, or null when nobody owns it any longer. From any thread.
  static std::shared_ptr<OpaqueCall> find(std::int64_t handle);

  /// Calls the function with these tensors and gives those of its results, in order: empty where it gives None. Throws PythonError.
  std::vector<Ref> run(PyObject* const* tensors) const;

  /// The positional arguments with these tensors: a tuple. Throws PythonError.
  Ref arguments(PyObject* const* tensors) const { return args_.fill(tensors); }
  /// The named ones: a dict, or empty. Throws PythonError.
  Ref named_arguments(PyObject* const* tensors) const { return kwargs_.fill(tensors); }
  PyObject* callable() const { return callable_.get(); }

  std::int64_t handle() const { return handle_; }
  const std::string& target() const { return target_; }
  int traverse(visitproc visit, void* arg) const;

  std::vector<TensorKind> operands;   // by place
  std::vector<MemoryOrder> orders;    // by place: in which the graph has the dimensions, and the function finds them in memory; empty where it does not matter
  std::vector<std::uint32_t> numbers; // places of operands that the function gets as Python's numbers
  std::vector<OpaqueResult> results;  // by result: the tensors that the function gives, then those that it writes
  std::vector<std::uint32_t> written; // places of the operands that the function declares to write, besides what it gives
  ErrorHandling handling;             // of floating-point errors, by NumPy's functions
  bool keeps_run = false;  // it gives the number of its run, too (package/tenon/_kept_runs.py)
  /// The function is not the library's own: it may keep its arguments, and gets copies of its own.
  bool may_keep_arguments = false;

 private:
  std::string target_;
  Ref callable_;
  ArgumentTemplate args_, kwargs_;
  std::int64_t handle_ = 0;
};

/// A tensor, an array or a scalar of NumPy's.
bool is_result_tensor(PyObject* object);

/// The tensors, arrays and NumPy scalars in a result, in order; throws GraphBreak for what is none, nor None, nor a sequence of these.
void collect_tensors(PyObject* result, std::vector<Ref>& found);

}  // namespace tenon::python
