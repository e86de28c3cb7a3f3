// How many arrays a call gives that takes one apart, as far as its arguments say: so many are not made only to find that they are too many.
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// The argument at a place, or by one of its names; null where it is not given.
PyObject* argument_of(const Arguments& arguments, std::size_t place, std::string_view given_names) {
  if (place < arguments.positional()) return arguments.values[place].get();
  for (std::size_t at = 0; at < arguments.named(); ++at)
    if (const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(arguments.names.get(), at)); name && is_among(name, given_names)) return arguments.values[arguments.positional() + at].get();
  PyErr_Clear();
  return nullptr;
}

std::size_t count_of(PyObject* number) {
  const long value = number && PyLong_CheckExact(number) ? PyLong_AsLong(number) : 0;
  PyErr_Clear();
  return value > 0 ? static_cast<std::size_t>(value) : 0;
}

/// The size along a dimension; 0 where it varies or there is none such.
std::size_t extent_of(PyObject* array, PyObject* dimension) {
  const Ref shape = Ref::steal(PyObject_GetAttrString(array, "shape"));
  const Ref place = dimension ? Ref::borrow(dimension) : checked(PyLong_FromLong(0));
  const Ref extent = shape && PyLong_CheckExact(place.get()) ? Ref::steal(PyObject_GetItem(shape.get(), place.get())) : Ref();
  PyErr_Clear();
  return extent ? count_of(extent.get()) : 0;
}

}  // namespace

/// Breaks where a call takes its first argument apart into more arrays than are written out.
void Evaluator::require_few_pieces_of(PyObject* callable, const Arguments& arguments) {
  PyObject* array = options_.leave_loops && arguments.positional() > 0 ? arguments.values[0].get() : nullptr;
  if (!array || !is_stand_in(array)) return;
  const Recorder::Pieces how = recorder_.pieces_of(callable);
  if (how == Recorder::Pieces::none) return;
  const bool unbinds = how == Recorder::Pieces::by_dimension;
  PyObject* by = unbinds ? nullptr : argument_of(arguments, 1, " indices_or_sections split_size_or_sections split_size split_sizes chunks sections indices ");
  std::size_t pieces = 0;
  if (by && (PyList_CheckExact(by) || PyTuple_CheckExact(by))) {
    pieces = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(by)) + 1;
  } else if (how != Recorder::Pieces::by_count) {
    const std::size_t size = unbinds ? 1 : count_of(by), extent = extent_of(array, argument_of(arguments, unbinds ? 1 : 2, " dim axis "));
    pieces = size > 0 ? (extent + size - 1) / size : 0;
  } else {
    pieces = count_of(by);
  }
  if (pieces > UnrolledLoops::kMostRounds) UnrolledLoops::takes_apart(heap_.now);
}

}  // namespace tenon::python
