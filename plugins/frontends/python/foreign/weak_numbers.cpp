#include "python/foreign/weak_numbers.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

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

BesideHalves beside_halves(const ForeignFunction& function, PyObject* args, PyObject* number) {
  static constexpr std::string_view kRounding[] = {"add", "sub", "lt", "le", "gt", "ge", "eq", "ne", "where", "clamp"}, kInFloat32[] = {"mul", "div", "addcmul", "addcdiv", "lerp"};
  if (function.flavour != ops::Flavour::torch || !function.op) return BesideHalves::unknown;
  const auto is_among = [&](std::span<const std::string_view> names) { return std::ranges::find(names, std::string_view(function.op->name)) != names.end(); };
  const std::optional<Py_ssize_t> place = place_among(args, nullptr, number);
  const bool is_alpha = !place || *place > 1;  // of a sum
  if (is_among(kRounding)) return is_alpha && (function.op->name == "add" || function.op->name == "sub") ? BesideHalves::unknown : BesideHalves::rounded;
  const bool divides_by_tensor = function.op->name == "div" && (place == 0 || function.last_word().starts_with("__r"));  // by way of a rounded reciprocal
  return is_among(kInFloat32) && !divides_by_tensor && (place != 0 || function.op->name == "mul") ? BesideHalves::in_float32 : BesideHalves::unknown;
}

bool has_scalar_of_numpy(PyObject* args) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (is_scalar_of_numpy(PyTuple_GET_ITEM(args, i))) return true;
  return false;
}

}  // namespace tenon::python
