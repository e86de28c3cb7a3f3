// Functions of torch that do the same to each tensor of a list (`torch._foreach_add_`): recorded as the calls that they stand for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "python/library/torch_library.h"
#include "python/recording/tensor_recorder.h"

namespace tenon::python {
namespace {

constexpr std::string_view kPrefix = "torch._foreach_";

bool is_list_argument(PyObject* object) { return PyList_CheckExact(object) || PyTuple_CheckExact(object); }

/// What torch calls for each tensor; empty where it has no such function.
Ref function_of_each(const TorchLibrary& torch, std::string_view name) {
  struct Renamed {
    std::string_view of_lists, of_each;
  };
  static constexpr std::array<Renamed, 4> kRenamed = {
      {{"maximum", "clamp_min"}, {"minimum", "clamp_max"}, {"maximum_", "clamp_min_"}, {"minimum_", "clamp_max_"}}};
  const auto renamed = std::ranges::find(kRenamed, name, &Renamed::of_lists);
  const std::string own(renamed == kRenamed.end() ? name : renamed->of_each);
  Ref owner = Ref::borrow(own.back() == '_' ? torch.tensor.get() : torch.module.get());
  if (own == "norm") owner = checked(PyObject_GetAttrString(torch.module.get(), "linalg"));
  Ref function = Ref::steal(PyObject_GetAttrString(owner.get(), own == "norm" ? "vector_norm" : own.c_str()));
  if (!function) PyErr_Clear();
  return function;
}

/// The arguments of a call on lists as positional ones, and those that only go by name.
struct ListCall {
  std::vector<PyObject*> positional;
  std::vector<std::pair<const char*, PyObject*>> named;
};

/// Puts the arguments where the function of each tensor takes them; false for what is not known.
bool take_arguments(std::string_view name, PyObject* args, PyObject* kwargs, ListCall& call) {
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
    else return false;
  }
  return !call.positional.empty() && call.positional.size() <= 3;
}

/// The length that all lists share; nothing where they differ, or where there is none.
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

Ref item_or_whole(PyObject* object, Py_ssize_t at) { return Ref::borrow(is_list_argument(object) ? PySequence_Fast_GET_ITEM(object, at) : object); }

}  // namespace

/// Whether the operands of a call on lists are such that torch's functions of each tensor do the same: tensors of one dtype, and where a
/// number is meant no tensor.
bool TensorRecorder::are_alike(PyObject* args, PyObject* kwargs) const {
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  for (Index index : operands)
    if (stand_ins_[index].kind != TensorKind::torch || stand_ins_[index].dtype != stand_ins_[operands.front()].dtype) return false;
  return !operands.empty();
}

/// Nothing for what is no call on lists, or not one that is known to be the same as calls on each.
std::optional<Ref> TensorRecorder::record_each(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  if (!std::string_view(function.name).starts_with(kPrefix) || torch_state().value_or(core_.state).autocast()) return std::nullopt;
  const std::string_view name = std::string_view(function.name).substr(kPrefix.size());
  ListCall call;
  if (!are_alike(args, kwargs) || !take_arguments(name, args, kwargs, call)) return std::nullopt;
  const auto length = common_length(call);
  Ref each = length ? function_of_each(*torch_library(), name) : Ref();
  const bool writes = name.back() == '_';
  if (!each || (writes && !is_list_argument(call.positional.front()))) return std::nullopt;
  // Numbers are given by lists of numbers, not of tensors; torch would refuse these, after others were written.
  for (const auto& [keyword, object] : call.named)
    if (is_list_argument(object) && !stand_ins_.among(object, nullptr).empty()) return std::nullopt;
  Ref results = checked(PyTuple_New(*length));
  for (Py_ssize_t i = 0; i < *length; ++i) {
    Ref positional = checked(PyTuple_New(static_cast<Py_ssize_t>(call.positional.size())));
    for (std::size_t at = 0; at < call.positional.size(); ++at)
      PyTuple_SET_ITEM(positional.get(), static_cast<Py_ssize_t>(at), item_or_whole(call.positional[at], i).release());
    Ref named = call.named.empty() ? Ref() : checked(PyDict_New());
    for (const auto& [keyword, object] : call.named) checked(PyDict_SetItemString(named.get(), keyword, item_or_whole(object, i).get()));
    PyTuple_SET_ITEM(results.get(), i, this->call(each.get(), positional.get(), named.get()).release());
  }
  return writes ? Ref::borrow(call.positional.front()) : std::move(results);
}

}  // namespace tenon::python
