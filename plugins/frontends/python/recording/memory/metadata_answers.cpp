#include "python/recording/memory/metadata_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/foreign/foreign_arguments.h"
#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/recording/memory/device_results.h"
#include "python/recording/memory/result_types.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

/// What a torch tensor says that every other of its dtype and rank says, too.
std::optional<Ref> answer_of_kind(std::string_view name, const StandIn& self) {
  const auto flag = [](bool yes) { return Ref::borrow(yes ? Py_True : Py_False); };
  if (name == "is_complex") return flag(is_complex(self.dtype));
  if (name == "is_floating_point") return flag(is_float(self.dtype));
  if (name == "is_sparse" || name == "is_quantized" || name == "is_nested") return flag(false);
  if (name == "dtype") return torch_library()->dtypes[static_cast<std::size_t>(self.dtype)];
  if (name == "ndim" || name == "dim" || name == "ndimension") return checked(PyLong_FromSize_t(self.shape.size()));
  return std::nullopt;
}

/// What a tensor says of itself as an object: how often it was written, its number among the results of a node. Of those that the graph makes that is
/// known.
std::optional<Ref> answer_of_object(std::string_view name, const RecordedGraph& core, StandIns::Index index) {
  if (name != "_version" && name != "output_nr") return std::nullopt;
  const StandIns& stand_ins = core.stand_ins;
  const StandIn &self = stand_ins[index], &owner = stand_ins[stand_ins.owner(index)];
  const bool is_made = owner.kind == TensorKind::torch && !owner.input && !self.base && !stand_ins.is_reinterpreted(index) && !core.is_inference(index);
  if (is_made && name == "_version" && !self.counts_apart && !self.crossed) return checked(PyLong_FromUnsignedLong(stand_ins.storage_of(index).writes));
  if (is_made && name == "output_nr" && !self.requires_grad) return checked(PyLong_FromLong(0));
  throw GraphBreak(fmt::format("{} of a tensor that is older than the call, or shares memory", name));
}

}  // namespace

/// Whether two arrays may share memory, where that follows from how they were made: one and the same, or one made by the program.
std::optional<Ref> MetadataAnswers::answer_sharing(PyObject* args, PyObject* kwargs) {
  if (kwargs != nullptr || PyTuple_GET_SIZE(args) != 2) return std::nullopt;
  const auto a = stand_ins_.find(PyTuple_GET_ITEM(args, 0)), b = stand_ins_.find(PyTuple_GET_ITEM(args, 1));
  if (!a || !b) return std::nullopt;
  const auto is_empty = [&](Index index) { return std::ranges::find(stand_ins_[index].shape, 0) != stand_ins_[index].shape.end(); };
  if (is_empty(*a) || is_empty(*b) || core_.is_late(stand_ins_[*a].value) || core_.is_late(stand_ins_[*b].value)) return std::nullopt;
  if (*a == *b) return Ref::borrow(Py_True);
  const auto is_input = [&](Index index) { return stand_ins_[stand_ins_.owner(index)].input.has_value() || stand_ins_.is_reinterpreted(index); };
  if (stand_ins_.memory_of(*a) == stand_ins_.memory_of(*b) || (is_input(*a) && is_input(*b))) return std::nullopt;
  return Ref::borrow(Py_False);
}

Ref MetadataAnswers::answer(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  const std::string_view name = function.last_word();
  const std::vector<Index> operands = stand_ins_.among(args, kwargs);
  if (!operands.empty() && function.flavour == ops::Flavour::torch) {
    const StandIn& self = stand_ins_[operands.front()];
    if (std::optional<Ref> said = operands.size() == 1 ? answer_of_device(callable, name, self, args, kwargs) : std::nullopt) return std::move(*said);
    if (operands.size() == 1 && PyTuple_GET_SIZE(args) == 1)
      if (std::optional<Ref> said = answer_of_kind(name, self)) return std::move(*said);
    if (std::optional<Ref> said = answer_of_object(name, core_, operands.front())) return std::move(*said);
    if (name == "is_inference") return Ref::borrow(core_.is_inference(operands.front()) ? Py_True : Py_False);
    if (name == "requires_grad") return Ref::borrow(self.requires_grad ? Py_True : Py_False);
    if (name == "storage_offset" && self.input) throw GraphBreak("the storage offset of an input");
    if (name == "storage_offset" && core_.in_late_memory(operands.front())) late_.refuse({{stand_ins_.owner(operands.front())}});
    if (name == "is_leaf" && self.requires_grad && !self.input) return Ref::borrow(self.leaf ? Py_True : Py_False);
    if (name == "is_leaf" && self.requires_grad) throw GraphBreak("whether a tensor that requires grad is a leaf");
  }
  if (function.has(Trait::asks_for_layout) && !asks_for_another_order(kwargs, operands)) results_.settle_gaps(operands);
  const bool same_for_all = function.has(Trait::same_for_all_sizes) && !(function.has(Trait::asks_for_layout) && late_.layout_varies(operands));
  if (!operands.empty() && !same_for_all)
    for (std::optional<Ref> known : {answer_size(name, stand_ins_[operands.front()], args, kwargs), answer_strides(name, operands.front(), args, kwargs)})
      if (known) return std::move(*known);
  if (!same_for_all) fix_sizes(operands);
  Ref twin_args = stand_ins_.with_twins(args);
  Ref twin_kwargs = kwargs ? stand_ins_.with_twins(kwargs) : Ref();
  Ref answer = checked(PyObject_Call(callable, twin_args.get(), twin_kwargs.get()));
  if (is_tensor(answer.get())) throw GraphBreak(fmt::format("{} gave a tensor where a plain value was expected", function.name));
  return answer;
}

Ref MetadataAnswers::length(PyObject* stand_in) {
  const ir::Shape& shape = graph_.type(stand_ins_[stand_ins_.require(stand_in)].value).shape;
  if (shape.empty() || shape.front().is_constant()) return {};
  symbols_.value(shape.front());  // breaks for one that depends on data
  return make_integer(shape.front());
}

/// A torch.Size, or a tuple. The constructor of torch.Size takes plain ints only.
Ref MetadataAnswers::size_tuple(ops::Flavour flavour, std::span<const ir::Dim> shape) {
  auto* type = flavour == ops::Flavour::torch ? reinterpret_cast<PyTypeObject*>(torch_library()->size.get()) : &PyTuple_Type;
  Ref tuple = checked(type->tp_alloc(type, static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t d = 0; d < shape.size(); ++d) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(d), make_integer(shape[d]).release());
  return tuple;
}

std::optional<Ref> MetadataAnswers::answer_size(std::string_view name, const StandIn& self, PyObject* args, PyObject* kwargs) {
  const ir::Shape& shape = graph_.type(self.value).shape;
  if (std::ranges::all_of(shape, [](const ir::Dim& d) { return d.is_constant(); })) return std::nullopt;
  symbols_.values(shape);  // breaks for one that depends on data
  const bool torch = self.kind == TensorKind::torch;
  const bool plain = PyTuple_GET_SIZE(args) == 1 && (!kwargs || PyDict_GET_SIZE(kwargs) == 0);
  if (plain && (name == "shape" || (torch && name == "size"))) return size_tuple(torch ? ops::Flavour::torch : ops::Flavour::numpy, shape);
  if (plain && (name == "numel" || name == "nelement" || (!torch && name == "size"))) return make_integer(ir::product(shape));
  if (plain && name == "__len__") return checked(PyLong_FromLongLong(symbols_.specialise(shape.front(), "C code asks for a tensor's length")));
  if (!torch || name != "size") return std::nullopt;
  PyObject* dim = PyTuple_GET_SIZE(args) == 2 ? PyTuple_GET_ITEM(args, 1) : kwargs ? PyDict_GetItemString(kwargs, "dim") : nullptr;
  if (!dim || !PyLong_CheckExact(dim)) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t at = PyLong_AsLongLong(dim);
  if (at < -rank || at >= rank) return std::nullopt;
  return make_integer(shape[static_cast<std::size_t>(at < 0 ? at + rank : at)]);
}

/// Whether a call asks for channels last of a tensor of which they are not: that it is not in that format is so with gaps and without.
bool MetadataAnswers::asks_for_another_order(PyObject* kwargs, std::span<const Index> operands) const {
  if (!kwargs_name_a_layout(kwargs) || operands.size() != 1) return false;
  const StandIn& self = stand_ins_[operands.front()];
  return self.shape.size() > 2 && graph_.type(self.value).shape[1].is_constant() && self.shape[1] > 1 && self.strides[1] > self.strides.back() && self.strides.back() > 0;
}

/// `stride()`, or `strides` in bytes, of a tensor whose sizes vary.
std::optional<Ref> MetadataAnswers::answer_strides(std::string_view name, Index index, PyObject* args, PyObject* kwargs) {
  const StandIn& self = stand_ins_[index];
  const bool torch = self.kind == TensorKind::torch;
  if (name != (torch ? "stride" : "strides") || PyTuple_GET_SIZE(args) != 1 || (kwargs && PyDict_GET_SIZE(kwargs) > 0)) return std::nullopt;
  const auto strides = results_.strides_of(index);
  if (!strides || symbols_.values(*strides) != self.strides) return std::nullopt;
  ir::Shape steps;
  for (const ir::Dim& stride : *strides) {
    steps.push_back(stride * ir::Dim(torch ? 1 : static_cast<std::int64_t>(size_of(self.dtype))));
    symbols_.compute(steps.back());
  }
  return size_tuple(ops::Flavour::numpy, steps);
}

/// What is asked depends on sizes in a way that is not followed: they are constants.
void MetadataAnswers::fix_sizes(std::span<const Index> operands) {
  for (Index index : operands)
    for (const ir::Dim& dim : graph_.type(stand_ins_[index].value).shape)
      if (!dim.is_constant()) symbols_.specialise(dim, "metadata that depends on it is read");
}

}  // namespace tenon::python
