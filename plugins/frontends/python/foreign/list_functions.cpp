#include "python/foreign/list_functions.h"

#include <algorithm>
#include <array>

#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

constexpr std::string_view kPrefix = "torch._foreach_";

std::string_view own_name(const ForeignFunction& function) { return std::string_view(function.name).substr(kPrefix.size()); }

/// Functions of lists that stand for one of another name.
struct Renamed {
  std::string_view of_lists, of_each;
};
constexpr std::array<Renamed, 4> kRenamed = {
    {{"maximum", "clamp_min"}, {"minimum", "clamp_max"}, {"maximum_", "clamp_min_"}, {"minimum_", "clamp_max_"}}};

}  // namespace

bool is_of_lists(const ForeignFunction& function) { return std::string_view(function.name).starts_with(kPrefix); }

bool is_list_argument(PyObject* object) { return PyList_CheckExact(object) || PyTuple_CheckExact(object); }

Ref function_of_each(const ForeignFunction& function) {
  const std::string_view name = own_name(function);
  const auto renamed = std::ranges::find(kRenamed, name, &Renamed::of_lists);
  const std::string own(renamed == kRenamed.end() ? name : renamed->of_each);
  const TorchLibrary& torch = *torch_library();
  Ref owner = Ref::borrow(own.back() == '_' ? torch.tensor.get() : torch.module.get());
  if (own == "norm") owner = checked(PyObject_GetAttrString(torch.module.get(), "linalg"));
  Ref found = Ref::steal(PyObject_GetAttrString(owner.get(), own == "norm" ? "vector_norm" : own.c_str()));
  if (!found) PyErr_Clear();
  return found;
}

std::optional<ListCall> list_call(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  ListCall call;
  const std::string_view name = own_name(function);
  const bool has_value = name.starts_with("addcmul") || name.starts_with("addcdiv");
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    if (has_value && i == 3) call.named.emplace_back("value", PyTuple_GET_ITEM(args, i));
    else call.positional.push_back(PyTuple_GET_ITEM(args, i));
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  int moved = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
    const std::string_view keyword = PyUnicode_AsUTF8(key);
    if (keyword == "alpha") call.named.emplace_back("alpha", value);
    else if (keyword == "dtype") call.named.emplace_back("dtype", value);
    else if (has_value && (keyword == "value" || keyword == "scalars")) call.named.emplace_back("value", value);
    else if (!has_value && ++moved == 1 && keyword != "self" && keyword != "memory_format") call.positional.push_back(value);
    else return std::nullopt;
  }
  if (call.positional.empty() || call.positional.size() > 3) return std::nullopt;
  return call;
}

std::optional<Py_ssize_t> common_length(const ListCall& call) {
  std::optional<Py_ssize_t> length;
  bool same = true;
  const auto look = [&](PyObject* object) {
    if (!is_list_argument(object)) return;
    const Py_ssize_t own = PySequence_Fast_GET_SIZE(object);
    same &= length.value_or(own) == own;
    length = own;
  };
  for (PyObject* object : call.positional) look(object);
  for (const auto& [name, object] : call.named) look(object);
  return same ? length : std::nullopt;
}

}  // namespace tenon::python
