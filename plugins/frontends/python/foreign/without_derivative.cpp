#include "python/foreign/without_derivative.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// Which argument, by position and by keyword.
struct Argument {
  Py_ssize_t position;
  const char* keyword;

  /// Borrowed; null where it is not given.
  PyObject* of(PyObject* args, PyObject* kwargs) const {
    if (position >= 0 && position < PyTuple_GET_SIZE(args)) return PyTuple_GET_ITEM(args, position);
    return kwargs ? PyDict_GetItemString(kwargs, keyword) : nullptr;
  }
};

struct WithoutIf {
  std::string_view functions;  // between spaces, by the last word of their names, or by the whole
  Argument argument;
};

// As torch 2.13 has it in its list of derivatives.
constexpr std::string_view kByNone = " floor_divide floor_divide_ __floordiv__ __ifloordiv__ __rfloordiv__ heaviside heaviside_ __rmod__ acosh_ asinh_ atanh_ arccosh_ arcsinh_ arctanh_ unique _unique _unique2 unique_dim unique_consecutive ";
constexpr WithoutIf kNotBy[] = {
    {" torch.batch_norm torch.native_batch_norm torch.instance_norm ", {3, "running_mean"}},
    {" torch.batch_norm torch.native_batch_norm torch.instance_norm ", {4, "running_var"}},
    {" torch.nn.functional.batch_norm torch.nn.functional.instance_norm ", {1, "running_mean"}},
    {" torch.nn.functional.batch_norm torch.nn.functional.instance_norm ", {2, "running_var"}},
    {" nll_loss nll_loss_nd nll_loss2d cross_entropy cross_entropy_loss binary_cross_entropy binary_cross_entropy_with_logits ", {2, "weight"}},
    {" torch.binary_cross_entropy_with_logits ", {3, "pos_weight"}},
    {" torch.nn.functional.binary_cross_entropy_with_logits ", {6, "pos_weight"}},
    {" multi_margin_loss ", {4, "weight"}},
    {" soft_margin_loss ", {1, "target"}},
};
constexpr WithoutIf kNoneIfGiven[] = {{" scatter scatter_ ", {-1, "reduce"}}};
constexpr WithoutIf kNoneIfNumber[] = {{" remainder ", {0, "self"}}};
constexpr WithoutIf kNoneIfNegative[] = {{" elu_ celu_ ", {1, "alpha"}}, {" leaky_relu_ ", {1, "negative_slope"}}};
constexpr WithoutIf kNoneIfNegativeInPlace[] = {{" torch.nn.functional.elu torch.nn.functional.celu ", {1, "alpha"}}, {" torch.nn.functional.leaky_relu ", {1, "negative_slope"}}};
constexpr Argument kInPlace = {2, "inplace"};  // of these

bool names(std::string_view list, const ForeignFunction& function) { return is_among(function.last_word(), list) || is_among(function.name, list); }

bool is_number(PyObject* object) { return PyFloat_Check(object) || PyLong_Check(object); }

bool is_negative(PyObject* object) { return (PyFloat_Check(object) && PyFloat_AS_DOUBLE(object) < 0) || (PyLong_CheckExact(object) && PyLong_AsDouble(object) < 0); }

bool has_none(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const auto any = [&](std::span<const WithoutIf> rows, auto&& holds) {
    return std::ranges::any_of(rows, [&](const WithoutIf& row) {
      PyObject* argument = names(row.functions, function) ? row.argument.of(args, kwargs) : nullptr;
      return argument && holds(argument);
    });
  };
  PyObject* in_place = kInPlace.of(args, kwargs);
  return names(kByNone, function) || any(kNoneIfGiven, [](PyObject* o) { return o != Py_None; }) || any(kNoneIfNumber, is_number) || any(kNoneIfNegative, is_negative) ||
         (in_place == Py_True && any(kNoneIfNegativeInPlace, is_negative));
}

}  // namespace

void for_arguments_without_derivative(const ForeignFunction& function, PyObject* args, PyObject* kwargs, const std::function<void(PyObject*)>& see) {
  if (function.flavour != ops::Flavour::torch) return;
  for (const WithoutIf& row : kNotBy)
    if (PyObject* argument = names(row.functions, function) ? row.argument.of(args, kwargs) : nullptr) see(argument);
  if (!has_none(function, args, kwargs)) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) see(PyTuple_GET_ITEM(args, i));
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, nullptr, &value);) see(value);
}

}  // namespace tenon::python
