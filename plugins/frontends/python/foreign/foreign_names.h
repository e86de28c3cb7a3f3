// What a callable of torch or NumPy is called, and how it is recorded.
#pragma once

#include <string>
#include <string_view>

#include "core/ops/catalog.h"
#include "core/ops/foreign/foreign_call.h"
#include "python/foreign/function_traits.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// How a call of a library's function is treated.
enum class CallClass : std::uint8_t {
  unknown,    // not an operation of torch or NumPy that is known
  operation,  // the catalogue has an alias for it
  metadata,   // reads shapes, dtypes and the like; the answer is a constant under the guards
  data,       // reads elements (item, tolist, bool): ends the graph
  same_elements,  // gives self's elements as they are, as a view, a copy or self
  creation,   // makes a tensor from Python values; never an op
  missing,    // torch's or NumPy's, but the catalogue has no op for it
};

struct ForeignFunction {
  CallClass kind = CallClass::unknown;
  ops::Flavour flavour = ops::Flavour::torch;
  std::string name;             // the alias: "torch.Tensor.add", "numpy.sqrt"
  const ops::Op* op = nullptr;
  bool may_alias = false;       // a result may share memory with an argument, or be one
  bool composite = false;       // made of other functions: by torch, whose schema does not say what a result shares memory with, or by NumPy in Python
  bool writes = false;          // changes its first argument in place
  bool reshapes = false;        // changes the shape, strides or storage of an argument in place
  PyObject* ufunc = nullptr;    // the callable, where it is one; kept for the life of the process
  bool method = false;          // of a tensor or array
  bool operator_object = false; // of torch.ops
  bool in_graph = false;        // a function of the program, marked by tenon.allow_in_graph
  FunctionTraits traits;        // what its name says

  bool has(Trait trait) const { return traits.has(trait); }

  /// Whether it is a special method: `__add__`.
  bool is_special() const { return last_word().starts_with("__"); }
  /// "add" of "torch.Tensor.add".
  std::string_view last_word() const { return std::string_view(name).substr(name.rfind('.') + 1); }
};

/// Whether what a module or a class of torch or NumPy was found to have by a name is the library's own, not the program's.
bool is_of_library(PyObject* found);

/// Finds out about a callable; the answer is kept for the life of the process. The GIL must be held.
const ForeignFunction& foreign_function(PyObject* callable);

/// What stands for arrays and for their methods: `unwrapped_method` gives the method of arrays for one of theirs, else what it was given.
struct ArrayStandIns {
  PyTypeObject* type = nullptr;
  PyObject* (*unwrapped_method)(PyObject* callable) = nullptr;
};
/// Called once, at import.
void set_array_stand_ins(ArrayStandIns stand_ins);

}  // namespace tenon::python
