#include "python/recording/numbers/number_inputs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "python/library/numpy_api.h"
#include "python/library/torch_library.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/stand_ins/late_text.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {

Ref NumberInputs::number(PyObject* object, SourceId source, GuardSet& guards) {
  if (!core_.symbols.dynamic()) return {};
  if (PyFloat_CheckExact(object)) return floats_.input(object, source, guards);
  if (PyUnicode_CheckExact(object)) return texts_.input(object, source, guards);
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) return {};
  const SourceKind kind = guards.sources()[source].kind;
  std::string words = inputs_.words_of(source, guards);
  if (kind == SourceKind::chosen_item) core_.symbols.vary(words, value);
  const ir::Dim dim = core_.symbols.number({NumberSource::Kind::integer, source, 0, std::move(words)}, value, kind == SourceKind::argument);
  if (dim.is_constant()) return {};
  guards.add(GuardKind::type_is, source, reinterpret_cast<PyObject*>(&PyLong_Type));
  return make_integer(dim);
}

Ref NumberInputs::length_at(SourceId source, std::int64_t length, GuardSet& guards) {
  if (!core_.symbols.dynamic() || core_.alone) return {};
  const ir::Dim dim = core_.symbols.number({NumberSource::Kind::length, source, 0, name_of_length(source, guards)}, length, false);
  return dim.is_constant() ? Ref() : make_integer(dim);
}

std::string NumberInputs::name_of_length(SourceId source, GuardSet& guards) { return "len(" + inputs_.words_of(source, guards) + ")"; }

bool NumberInputs::length_wears_out(SourceId source, std::int64_t length, GuardSet& guards) {
  const std::string name = name_of_length(source, guards);
  return core_.symbols.varies(name, length, false) && core_.symbols.wear_out({&name, 1});
}

bool NumberInputs::items_keep_varying(SourceId source, GuardSet& guards) { return core_.symbols.items_keep_varying(guards.sources().describe(source)); }

bool NumberInputs::rounds_keep_varying(std::span<const Ref> bounds) {
  std::vector<std::string> names;
  for (const Ref& bound : bounds)
    if (is_symbolic_int(bound.get())) std::ranges::move(core_.symbols.names_of(*integer_of(bound.get())), std::back_inserter(names));
  return core_.symbols.rounds_keep_varying(names);
}

void NumberInputs::counts(SourceId source, PyObject* count, PyObject* next, GuardSet& guards) {
  if (!core_.symbols.dynamic()) return;
  const std::string name = guards.sources().describe(source);
  for (PyObject* each : {next, count}) {
    int overflow = 0;
    const long long value = each && PyLong_CheckExact(each) ? PyLong_AsLongLongAndOverflow(each, &overflow) : 0;
    if (each && PyLong_CheckExact(each) && !overflow) core_.symbols.vary(name, value);
  }
}

std::optional<Recorder::VaryingPlace> NumberInputs::place_of(PyObject* number) {
  if (!is_symbolic_int(number)) return std::nullopt;
  const ir::Dim dim = *integer_of(number);
  std::optional<ChosenPlace> place = core_.symbols.is_known(dim) ? core_.symbols.place(dim) : std::nullopt;
  if (!place) return std::nullopt;
  return Recorder::VaryingPlace{std::move(*place), core_.symbols.value(dim)};
}

bool NumberInputs::may_be_chosen(PyObject* object) {
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object)) return true;
  if (PyArray_CheckExact(object)) return true;
  const TorchLibrary* torch = known_torch_library();
  return torch && !inputs_.freezes() && reinterpret_cast<PyObject*>(Py_TYPE(object)) == torch->tensor.get();
}

std::optional<bool> NumberInputs::equal_ints(std::span<PyObject* const> left, std::span<PyObject* const> right) {
  std::vector<std::pair<ir::Dim, ir::Dim>> pairs;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const auto x = integer_of(left[i]), y = integer_of(right[i]);
    if (!x || !y || !core_.symbols.is_known(*x) || !core_.symbols.is_known(*y)) return std::nullopt;
    pairs.emplace_back(*x, *y);
  }
  return core_.symbols.all_equal(pairs);
}

Ref NumberInputs::plain_number(PyObject* number) {
  if (is_late_text(number)) need_text(core_.symbols, number, "the use as a key");
  if (is_symbolic_scalar(number)) need_scalar(core_.symbols, scalar_of(number), "the use as a key");
  return specialised(number, "it is looked up as a key");
}

}  // namespace tenon::python
