#include "python/foreign/weak_numbers.h"

#include <optional>

#include "python/heap/type_traits.h"

namespace tenon::python {
namespace {

/// The place of an object among arguments, behind the last one for a keyword; none for what is in one.
std::optional<Py_ssize_t> place_among(PyObject* args, PyObject* kwargs, PyObject* object) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (PyTuple_GET_ITEM(args, i) == object) return i;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &key, &value))
    if (value == object) return PyTuple_GET_SIZE(args);
  return std::nullopt;
}

}  // namespace

bool takes_weak(const ForeignFunction& function, PyObject* args, PyObject* kwargs, PyObject* number) {
  if (function.flavour != ops::Flavour::numpy) return true;
  const std::optional<Py_ssize_t> place = place_among(args, kwargs, number);
  const bool by_keyword = place == PyTuple_GET_SIZE(args);
  return place && (by_keyword || function.ufunc || (function.method && !function.has(Trait::strong_operands)) || function.has(Trait::weak_operands) || (function.has(Trait::weak_behind_first) && *place > 0));
}

std::optional<DType> dtype_beside_halves(const ForeignFunction& function, PyObject* args, PyObject* kwargs, PyObject* number, DType half) {
  if (function.has(Trait::rounds_numbers)) return half;
  return function.has(Trait::numbers_in_float32) && place_among(args, kwargs, number).value_or(0) > 0 ? std::optional(DType::f32) : std::nullopt;
}

bool has_scalar_of_numpy(PyObject* args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (is_scalar_of_numpy(PyTuple_GET_ITEM(args, i))) return true;
  return false;
}

}  // namespace tenon::python
