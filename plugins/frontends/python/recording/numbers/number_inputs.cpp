#include <algorithm>
#include <iterator>

#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/recording/tensor_recorder.h"
#include "python/stand_ins/late_text.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

// Numbers in a recording: ints that vary, sizes that the program asks for.

namespace tenon::python {

Ref TensorRecorder::number(PyObject* object, SourceId source, GuardSet& guards) {
  if (!symbols_.dynamic()) return {};
  if (PyFloat_CheckExact(object)) return float_input(object, source, guards);
  if (PyUnicode_CheckExact(object)) return text_input(object, source, guards);
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) return {};
  const SourceKind kind = guards.sources()[source].kind;
  std::string words = inputs_.words_of(source, guards);
  if (kind == SourceKind::chosen_item) symbols_.vary(words, value);
  const ir::Dim dim = symbols_.number({NumberSource::Kind::integer, source, 0, std::move(words)}, value, kind == SourceKind::argument);
  if (dim.is_constant()) return {};
  guards.add(GuardKind::type_is, source, reinterpret_cast<PyObject*>(&PyLong_Type));
  return make_integer(dim);
}

Ref TensorRecorder::length_at(SourceId source, std::int64_t length, GuardSet& guards) {
  if (!symbols_.dynamic() || core_.alone) return {};
  const ir::Dim dim = symbols_.number({NumberSource::Kind::length, source, 0, name_of_length(source, guards)}, length, false);
  return dim.is_constant() ? Ref() : make_integer(dim);
}

std::string TensorRecorder::name_of_length(SourceId source, GuardSet& guards) { return "len(" + inputs_.words_of(source, guards) + ")"; }

bool TensorRecorder::length_wears_out(SourceId source, std::int64_t length, GuardSet& guards) {
  const std::string name = name_of_length(source, guards);
  return symbols_.varies(name, length, false) && symbols_.wear_out({&name, 1});
}

bool TensorRecorder::items_keep_varying(SourceId source, GuardSet& guards) { return symbols_.items_keep_varying(guards.sources().describe(source)); }

bool TensorRecorder::rounds_keep_varying(std::span<const Ref> bounds) {
  std::vector<std::string> names;
  for (const Ref& bound : bounds)
    if (is_symbolic_int(bound.get())) std::ranges::move(symbols_.names_of(*integer_of(bound.get())), std::back_inserter(names));
  return symbols_.rounds_keep_varying(names);
}

void TensorRecorder::counts(SourceId source, PyObject* count, PyObject* next, GuardSet& guards) {
  if (!symbols_.dynamic()) return;
  const std::string name = guards.sources().describe(source);
  for (PyObject* each : {next, count}) {
    int overflow = 0;
    const long long value = each && PyLong_CheckExact(each) ? PyLong_AsLongLongAndOverflow(each, &overflow) : 0;
    if (each && PyLong_CheckExact(each) && !overflow) symbols_.vary(name, value);
  }
}

std::optional<Recorder::VaryingPlace> TensorRecorder::place_of(PyObject* number) {
  if (!is_symbolic_int(number)) return std::nullopt;
  const ir::Dim dim = *integer_of(number);
  std::optional<ChosenPlace> place = symbols_.is_known(dim) ? symbols_.place(dim) : std::nullopt;
  if (!place) return std::nullopt;
  return VaryingPlace{std::move(*place), symbols_.value(dim)};
}

bool TensorRecorder::may_be_chosen(PyObject* object) {
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object)) return true;
  if (PyArray_CheckExact(object)) return true;
  const TorchLibrary* torch = known_torch_library();
  return torch && !inputs_.freezes() && reinterpret_cast<PyObject*>(Py_TYPE(object)) == torch->tensor.get();
}

Ref TensorRecorder::plain_number(PyObject* number) {
  if (is_late_text(number)) need_text(number, "the use as a key");
  if (is_symbolic_scalar(number)) need_scalar(scalar_of(number), "the use as a key");
  return specialised(number, "it is looked up as a key");
}

Ref TensorRecorder::length(PyObject* stand_in) {
  const ir::Shape& shape = graph_.type(stand_ins_[stand_ins_.require(stand_in)].value).shape;
  if (shape.empty() || shape.front().is_constant()) return {};
  symbols_.value(shape.front());  // breaks for one that depends on data
  return make_integer(shape.front());
}

/// A torch.Size, or a tuple. The constructor of torch.Size takes plain ints only.
Ref TensorRecorder::size_tuple(ops::Flavour flavour, std::span<const ir::Dim> shape) {
  auto* type = flavour == ops::Flavour::torch ? reinterpret_cast<PyTypeObject*>(torch_library()->size.get()) : &PyTuple_Type;
  Ref tuple = checked(type->tp_alloc(type, static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t d = 0; d < shape.size(); ++d) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(d), make_integer(shape[d]).release());
  return tuple;
}

std::optional<Ref> TensorRecorder::answer_size(std::string_view name, const StandIn& self, PyObject* args, PyObject* kwargs) {
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

/// `stride()`, or `strides` in bytes, of a tensor whose sizes vary.
std::optional<Ref> TensorRecorder::answer_strides(std::string_view name, Index index, PyObject* args, PyObject* kwargs) {
  const StandIn& self = stand_ins_[index];
  const bool torch = self.kind == TensorKind::torch;
  if (name != (torch ? "stride" : "strides") || PyTuple_GET_SIZE(args) != 1 || (kwargs && PyDict_GET_SIZE(kwargs) > 0)) return std::nullopt;
  const auto strides = strides_of(index);
  if (!strides || symbols_.values(*strides) != self.strides) return std::nullopt;
  ir::Shape steps;
  for (const ir::Dim& stride : *strides) {
    steps.push_back(stride * ir::Dim(torch ? 1 : static_cast<std::int64_t>(size_of(self.dtype))));
    symbols_.compute(steps.back());
  }
  return size_tuple(ops::Flavour::numpy, steps);
}

/// What is asked depends on sizes in a way that is not followed: they are constants.
void TensorRecorder::fix_sizes(std::span<const Index> operands) {
  for (Index index : operands)
    for (const ir::Dim& dim : graph_.type(stand_ins_[index].value).shape)
      if (!dim.is_constant()) symbols_.specialise(dim, "metadata that depends on it is read");
}

/// The numbers among the arguments of an opaque call are part of it: in a capture to come they are constants.
void TensorRecorder::fix_numbers_in(PyObject* object) {
  if (is_symbolic_int(object)) symbols_.constant(*integer_of(object));
  if (is_symbolic_scalar(object)) need_scalar(scalar_of(object), "a call that the library makes itself");
  if (is_late_text(object)) need_text(object, "a call that the library makes itself");
  if (PyDict_Check(object)) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) fix_numbers_in(value);
  } else if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    for (PyObject* part : {slice->start, slice->stop, slice->step}) fix_numbers_in(part);
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) fix_numbers_in(PySequence_Fast_GET_ITEM(object, i));
  }
}

}  // namespace tenon::python
