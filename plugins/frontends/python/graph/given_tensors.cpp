#include "python/graph/given_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/session/errors.h"

namespace tenon::python {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  set_error(ErrorClass::compile, why);
  throw PythonError();
}

/// Whether a tensor that nobody else has is all that shows its memory.
bool has_memory_for_itself(PyObject* tensor) {
  static PyObject* const asked = checked(PyObject_GetAttrString(checked(imported("tenon._autograd")).get(), "has_memory_for_itself")).release();
  return checked(PyObject_IsTrue(checked(PyObject_CallOneArg(asked, tensor)).get())) != 0;
}

/// The metadata of what was given for a tensor of that dtype and these sizes.
TensorSpec required_spec(PyObject* tensor, DType dtype, const ir::Device& device, const Extents& shape) {
  const std::variant<TensorSpec, std::string> read = read_spec(tensor);
  if (const auto* why = std::get_if<std::string>(&read)) refuse(fmt::format("the compiled graph gave {}", *why));
  const TensorSpec& spec = std::get<TensorSpec>(read);
  if (spec.kind == TensorKind::torch && spec.dtype == dtype && spec.device == device && spec.shape == shape) return spec;
  TensorSpec wanted;
  wanted.dtype = dtype;
  wanted.shape = shape;
  wanted.strides = row_major(shape);
  refuse(fmt::format("the compiled graph gave a result {} instead of {}", spec.describe(), wanted.describe()));
}

}  // namespace

std::vector<GivenTensor> given_by_callable(Ref given, std::span<const std::uint32_t> places, bool of_ops) {
  Ref sequence = checked(PySequence_Fast(given.get(), "what a backend compiles must give a tuple of the graph's outputs"));
  given = {};
  const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(sequence.get()));
  if (count != places.size()) refuse(fmt::format("the compiled graph gave {} results instead of {}", count, places.size()));
  const bool kept = Py_REFCNT(sequence.get()) > 1;
  std::vector<GivenTensor> tensors;
  for (std::uint32_t place : places) {
    PyObject* tensor = PySequence_Fast_GET_ITEM(sequence.get(), static_cast<Py_ssize_t>(place));
    const bool alone = of_ops && !kept && Py_REFCNT(tensor) == 1 && has_memory_for_itself(tensor);
    tensors.push_back({Ref::borrow(tensor), alone});
  }
  return tensors;
}

bool is_as_said(const GivenTensor& given, const TensorOutput& output) {
  const TensorSpec spec = required_spec(given.tensor.get(), output.dtype, output.device, output.shape);
  return given.alone && spec.strides == output.strides && !output.base && !output.inference && output.writes == 0;
}

void copy_to(PyObject* made, const GivenTensor& given) {
  Ref uncounted = checked(PyObject_GetAttrString(made, "data"));  // whose writes leave the tensor's version
  checked(PyObject_CallMethod(uncounted.get(), "copy_", "O", given.tensor.get()));
}

Ref as_new_value(const GivenTensor& given, const TensorSpec& input) {
  required_spec(given.tensor.get(), input.dtype, input.device, input.shape);
  return given.alone ? given.tensor : checked(PyObject_CallMethod(given.tensor.get(), "clone", nullptr));
}

}  // namespace tenon::python
