#include "python/foreign/opaque_purity.h"

#include <fmt/format.h>

#include <functional>
#include <unordered_map>

#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

Ref attribute_or_none(PyObject* object, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return value;
}

/// torch.ops.aten.<name>, or nothing.
Ref aten_packet(const std::string& name) {
  Ref ops = attribute_or_none(torch_library()->module.get(), "ops");
  Ref aten = ops ? attribute_or_none(ops.get(), "aten") : Ref();
  return aten ? attribute_or_none(aten.get(), name.c_str()) : Ref();
}

bool has_tag(PyObject* overload, const char* name) {
  Ref tags = attribute_or_none(overload, "tags");
  if (!tags) return false;
  Ref list = checked(PySequence_List(tags.get()));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    Ref text = checked(PyObject_Str(PyList_GET_ITEM(list.get(), i)));
    if (std::string_view(PyUnicode_AsUTF8(text.get())).ends_with(name)) return true;
  }
  return false;
}

/// Whether an overload writes only into what `out=` gives it: a call without that keyword never reaches it.
bool writes_out_only(PyObject* schema) {
  Ref arguments = attribute_or_none(schema, "arguments");
  Ref list = arguments ? checked(PySequence_List(arguments.get())) : checked(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i)
    if (Ref out = attribute_or_none(PyList_GET_ITEM(list.get(), i), "is_out"); out.is(Py_True)) return true;
  return false;
}

void read_overload(PyObject* overload, Purity& purity) {
  Ref schema = attribute_or_none(overload, "_schema");
  Ref is_mutable = schema ? attribute_or_none(schema.get(), "is_mutable") : Ref();
  if (!is_mutable || writes_out_only(schema.get())) return;
  purity.known = true;
  purity.writes |= PyObject_IsTrue(is_mutable.get()) == 1;
  purity.random |= has_tag(overload, "nondeterministic_seeded");
  purity.writes_several |= std::string_view(PyUnicode_AsUTF8(checked(PyObject_Str(schema.get())).get())).find("(b!)") != std::string_view::npos;
}

void read_packet(PyObject* packet, Purity& purity) {
  Ref names = Ref::steal(PyObject_CallMethod(packet, "overloads", nullptr));
  if (!names) return PyErr_Clear();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    const char* name = PyUnicode_AsUTF8(PyList_GET_ITEM(names.get(), i));
    if (!name) continue;
    if (Ref overload = attribute_or_none(packet, name)) read_overload(overload.get(), purity);
  }
}

/// ATen's name of a function: torch.fft.rfft is fft_rfft there.
std::string aten_name(const ForeignFunction& function) {
  const std::string name(function.last_word());
  for (const char* part : {"fft", "linalg", "special"})
    if (function.name == fmt::format("torch.{}.{}", part, name)) return fmt::format("{}_{}", part, name);
  return name;
}

Purity torch_purity(PyObject* callable, const ForeignFunction& function) {
  Purity purity;
  if (function.operator_object) {
    const bool packet = attribute_or_none(callable, "overloads").get() != nullptr;
    if (packet) read_packet(callable, purity);
    else read_overload(callable, purity);
    purity.foreign = !function.name.starts_with("aten.");
  } else if (Ref packet = aten_packet(aten_name(function))) {
    read_packet(packet.get(), purity);
  }
  if (!purity.known && function.op) purity.known = true;
  purity.writes |= function.writes;
  purity.undeclared = function.has(Trait::undeclared);
  purity.writes |= purity.undeclared;
  return purity;
}

Purity numpy_purity(const ForeignFunction& function) {
  Purity purity;
  purity.known = function.ufunc || function.has(function.writes ? Trait::writes_elements : Trait::computes) || function.has(Trait::finds_elements);
  purity.undeclared = function.has(Trait::undeclared);
  purity.writes = function.writes || purity.undeclared;
  return purity;
}

/// The number given by keyword, or at that position; 0 when it is not given.
double number_argument(PyObject* args, PyObject* kwargs, const char* keyword, Py_ssize_t position) {
  PyObject* given = kwargs ? PyDict_GetItemString(kwargs, keyword) : nullptr;
  if (!given && position < PyTuple_GET_SIZE(args)) given = PyTuple_GET_ITEM(args, position);
  if (!given) return 0;
  const double number = PyFloat_AsDouble(given);
  if (!PyErr_Occurred()) return number;
  PyErr_Clear();
  return 1;  // not a number: as if it were one that matters
}

/// A ufunc of np.frompyfunc, which takes and gives objects alone, or a method of one (`outer`, `reduce`).
bool is_made_of_function(PyObject* callable) {
  if (PyCFunction_Check(callable)) return PyCFunction_GET_SELF(callable) && is_made_of_function(PyCFunction_GET_SELF(callable));
  static PyObject* const name = PyUnicode_InternFromString("types");
  Ref types = Ref::steal(PyObject_GetAttr(callable, name));
  if (!types) PyErr_Clear();
  if (!types || !PyList_Check(types.get()) || PyList_GET_SIZE(types.get()) != 1) return false;
  const char* loop = PyUnicode_AsUTF8(PyList_GET_ITEM(types.get(), 0));
  return loop && std::string_view(loop).find("O->") != std::string_view::npos;
}

/// Whether NumPy calls code of the program in this call: that must run once for each time that the program asks for it.
bool calls_back(PyObject* callable, PyObject* arguments) {
  if (is_made_of_function(callable)) return true;
  const auto is_code = [](PyObject* object) { return PyFunction_Check(object) || PyMethod_Check(object) || (PyCallable_Check(object) && !PyType_Check(object) && !PyCFunction_Check(object)); };
  std::function<bool(PyObject*)> holds_code = [&](PyObject* object) {
    if (!PyTuple_Check(object) && !PyList_Check(object)) return is_code(object);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (holds_code(PySequence_Fast_GET_ITEM(object, i))) return true;
    return false;
  };
  return arguments && holds_code(arguments);
}

/// Whether the sizes of what NumPy gives depend on elements in this call.
bool finds_sizes(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (function.has(Trait::finds_places)) return PyTuple_GET_SIZE(args) == 1;
  if (!function.has(Trait::bins_by_name)) return false;
  PyObject* bins = kwargs ? PyDict_GetItemString(kwargs, "bins") : nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && !bins; ++i)
    if (PyUnicode_Check(PyTuple_GET_ITEM(args, i))) return true;
  return bins && PyUnicode_Check(bins);
}

}  // namespace

const Purity& purity_of(PyObject* callable, const ForeignFunction& function) {
  static auto* known = new std::unordered_map<std::string, Purity>();
  auto found = known->find(function.name);
  if (found != known->end()) return found->second;
  const Purity purity = function.flavour == ops::Flavour::torch ? torch_purity(callable, function) : numpy_purity(function);
  return known->emplace(function.name, purity).first->second;
}

bool takes_random_numbers(const ForeignFunction& function, const Purity& purity, PyObject* args, PyObject* kwargs) {
  if (function.has(Trait::random_by_dropout)) return number_argument(args, kwargs, "dropout_p", 4) != 0;
  if (function.has(Trait::random_in_training)) {
    // (input, hx, params, has_biases, num_layers, dropout, train, ...), or with batch_sizes after input.
    for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(args); ++i)
      if (PyFloat_Check(PyTuple_GET_ITEM(args, i))) return PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(args, i)) != 0 && PyTuple_GET_ITEM(args, i + 1) == Py_True;
    return true;
  }
  return purity.random;
}

std::string why_not_opaque(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, bool complex) {
  const Purity& purity = purity_of(callable, function);
  if (purity.writes || (kwargs && PyDict_GetItemString(kwargs, "out"))) return fmt::format("{} may write into a tensor", function.name);
  if (function.has(Trait::other_strides)) return fmt::format("the strides of {}'s result are not known", function.name);
  const bool known = purity.known || (complex && function.flavour == ops::Flavour::numpy && function.has(Trait::computes_complex));
  if (!known) return fmt::format("Tenon has no op for {}", function.name);
  Ref named = kwargs ? checked(PyDict_Values(kwargs)) : Ref();
  if (function.flavour == ops::Flavour::numpy && (calls_back(callable, args) || calls_back(callable, named.get())))
    return fmt::format("{} calls a function of the program", function.name);
  if (function.flavour == ops::Flavour::numpy && finds_sizes(function, args, kwargs)) return fmt::format("the sizes that {} gives depend on data", function.name);
  if (takes_random_numbers(function, purity, args, kwargs)) return fmt::format("{} takes random numbers", function.name);
  return {};
}

}  // namespace tenon::python
