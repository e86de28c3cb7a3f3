#include "python/recording/recorded_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "python/foreign/autocast.h"
#include "python/foreign/foreign_arguments.h"
#include "python/foreign/list_functions.h"
#include "python/foreign/without_derivative.h"
#include "python/library/replaced_kernels.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/recording/memory/device_results.h"
#include "python/recording/writing_call.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

/// Whether a symbolic int is among arguments, in tuples and lists too: short ones, as a graph has an operand for each item.
bool holds_symbolic_int(PyObject* object) {
  constexpr Py_ssize_t kLong = 256;
  if (is_symbolic_int(object)) return true;
  if ((!PyTuple_Check(object) && !PyList_Check(object)) || PySequence_Fast_GET_SIZE(object) > kLong) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (holds_symbolic_int(PySequence_Fast_GET_ITEM(object, i))) return true;
  return false;
}

constexpr std::array<std::string_view, 5> kKeywordsOfSplits = {"chunks", "dim", "axis", "indices_or_sections", "split_size_or_sections"};

}  // namespace

Ref RecordedCalls::record(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  try {
    return record_here(callable, function, args, kwargs);
  } catch (const NumberNeeded&) {
    Ref numbers = known_.with_integers(args), named = kwargs ? known_.with_integers(kwargs) : Ref();
    if (!numbers && !named) throw;
    return uses_.call(callable, numbers ? numbers.get() : args, named ? named.get() : kwargs);
  }
}

Ref RecordedCalls::record_here(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  if (const TorchLibrary* torch = known_torch_library(); torch && kernels_are_replaced(*torch)) throw GraphBreak("torch.library has replaced a kernel of torch");
  if (!function.has(Trait::detaches) && history_.tracks(operands)) {
    history_.require_tracked(operands);
    if (PyObject* out = kwargs ? PyDict_GetItemString(kwargs, "out") : nullptr; out && out != Py_None) throw GraphBreak("out= beside tensors that require grad, which torch refuses");
    if (PyObject* sparse = kwargs ? PyDict_GetItemString(kwargs, "sparse_grad") : nullptr; sparse == Py_True) throw GraphBreak(fmt::format("{} has a sparse gradient", function.name));
    for_arguments_without_derivative(function, args, kwargs, [&](PyObject* argument) {
      if (const auto index = stand_ins_.find(argument); index && stand_ins_[*index].requires_grad) throw GraphBreak(fmt::format("{}: torch has no derivative by an argument that requires grad", function.name));
    });
  }
  if (function.op || is_of_lists(function)) twins_.require_no_number(callable, function, operands, args, kwargs);
  if (const auto of = autocast_of(operands); of && autocast_may_change(function, draws(callable, function, args, kwargs), *of))
    if (std::optional<Ref> result = record_under_autocast(callable, function, args, kwargs, *of)) return std::move(*result);
  const auto first = static_cast<Index>(stand_ins_.size());
  Ref result = split_by_expressions(function, args, kwargs);
  if (!result) result = record_as_is(callable, function, args, kwargs);
  if (function.has(Trait::gives_several_views))
    for (Index index = first; index < stand_ins_.size(); ++index) stand_ins_[index].one_of_several = stand_ins_[index].viewed.has_value();
  return result;
}

/// Records a call whose tensors have the dtypes that it computes with.
Ref RecordedCalls::record_as_is(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  const bool tracks = !function.has(Trait::detaches) && history_.tracks(operands);
  const auto first = static_cast<Index>(stand_ins_.size());
  const std::size_t first_node = graph_.nodes().size();
  const auto before = tracks ? history_.operands_of(operands) : std::vector<KeptByTorch::Operand>();
  const History::Scope scope(history_, tracks);
  Ref result = record_by_kind(callable, function, args, kwargs, operands);
  results_.settle_gaps_for(function, kwargs, first_node, operands);
  if (!tracks) return result;
  history_.expand_from(first_node);
  const auto unread = first < stand_ins_.size() && !function.writes ? history_.unread(operands, first, first_node) : std::vector<Index>();
  if (!unread.empty() && twins_.have_gradient(callable, function, unread, args, kwargs).value_or(false))
    history_.go_on_through(unread, first);
  history_.note_call({Ref::borrow(callable), Ref::borrow(args), kwargs ? Ref::borrow(kwargs) : Ref(), result, before, !function.has(Trait::keeps_no_operand)}, first, first_node);
  return result;
}

Ref RecordedCalls::record_by_kind(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, std::span<const Index> operands) {
  late_.refuse(function, operands);
  if (function.has(Trait::retains_gradient) && operands.size() == 1) history_.retain_gradient(operands.front());
  if (function.has(Trait::asks_for_gradient) || function.has(Trait::detaches_in_place)) return ask_for_gradient(function, args, kwargs);
  if (function.in_graph) {
    if (operands.empty()) throw GraphBreak(fmt::format("{}, allowed in graphs, is called without a tensor", function.name));
    for (Index index : operands) present_.of(index);
    return opaque_.record(callable, function, args, kwargs);
  }
  if (std::optional<Ref> result = opaque_writes_.record_declared(callable, function, args, kwargs)) return std::move(*result);
  const auto writing = as_writing_call(callable, function, args, kwargs);
  if (writing && writing->kind != WritingCall::Kind::none) return writes_.record(callable, function, args, kwargs, *writing);
  if (writing) return record_here(callable, function, writing->args.get(), writing->kwargs.get());
  if (operands.empty() && !draws(callable, function, args, kwargs) && !(function.op && (holds_symbolic_int(args) || names_a_device(function, args, kwargs)))) return constants_.fold(callable, args, kwargs);
  return op_calls_.record(callable, function, args, kwargs, operands);
}

/// torch.Tensor.requires_grad_(requires_grad=True), or detach_(), which says no.
Ref RecordedCalls::ask_for_gradient(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  PyObject* named = kwargs ? PyDict_GetItemString(kwargs, "requires_grad") : nullptr;
  PyObject* wanted = PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1) : named ? named : Py_True;
  const auto index = PyTuple_GET_SIZE(args) > 0 ? stand_ins_.find(PyTuple_GET_ITEM(args, 0)) : std::nullopt;
  if (!index || !PyBool_Check(wanted)) throw GraphBreak("requires_grad_() with unusual arguments");
  const bool detaches = function.has(Trait::detaches_in_place);
  if (detaches && history_.is_view(*index)) throw GraphBreak("a view is detached in place");
  history_.ask_for_gradient(*index, !detaches && wanted == Py_True);
  return stand_ins_[*index].object;
}

/// A call that splits a tensor of which a size varies, as the views that it gives; empty for other calls.
Ref RecordedCalls::split_by_expressions(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const auto index = function.has(Trait::splits) && PyTuple_GET_SIZE(args) > 0 ? stand_ins_.find(PyTuple_GET_ITEM(args, 0)) : std::nullopt;
  if (!index || core_.is_late(stand_ins_[*index].value)) return {};
  if (std::ranges::all_of(graph_.type(stand_ins_[*index].value).shape, &ir::Dim::is_constant)) return {};
  PyObject* key = nullptr;
  for (Py_ssize_t position = 0; kwargs && PyDict_Next(kwargs, &position, &key, nullptr);)
    if (std::ranges::find(kKeywordsOfSplits, std::string_view(PyUnicode_AsUTF8(key))) == kKeywordsOfSplits.end()) return {};
  const std::string name = fmt::format("{}{}", function.flavour == ops::Flavour::numpy ? "numpy_" : "", function.last_word());
  Ref split = checked(PyObject_GetAttrString(checked(imported("tenon._splits")).get(), name.c_str()));
  Ref parts = checked(PyObject_Call(split.get(), args, kwargs));
  return parts.is(Py_NotImplemented) ? Ref() : std::move(parts);
}

}  // namespace tenon::python
