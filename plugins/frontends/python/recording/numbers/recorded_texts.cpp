#include "python/recording/numbers/recorded_texts.h"

#include <utility>
#include <vector>

#include "python/heap/type_traits.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/stand_ins/late_text.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

bool is_size(PyObject* object) { return PyTuple_Check(object) && std::string_view(Py_TYPE(object)->tp_name) == "torch.Size"; }

/// Arguments in which all is a constant, a stand-in or a tuple of such; empty where something else is.
Ref taken_over(PyObject* object) {
  if (is_symbolic_int(object) || is_symbolic_scalar(object) || is_late_text(object)) return Ref::borrow(object);
  const bool constant = PyUnicode_CheckExact(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) || object == Py_None;
  if (constant) return Ref::borrow(object);
  if (!PyTuple_CheckExact(object) && !is_size(object)) return {};
  Ref items = checked(PyTuple_New(PyTuple_GET_SIZE(object)));
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(object); ++at) {
    Ref item = taken_over(PyTuple_GET_ITEM(object, at));
    if (!item) return {};
    PyTuple_SET_ITEM(items.get(), at, item.release());
  }
  if (!is_size(object)) return items;
  return make_late_text({Ref::borrow(as_object(Py_TYPE(object))), checked(PyTuple_Pack(1, items.get()))});
}

}  // namespace

Ref RecordedTexts::input(PyObject* object, SourceId source, GuardSet& guards) {
  if (core_.alone) return {};
  const std::string name = inputs_.words_of(source, guards);
  const Py_hash_t hash = PyObject_Hash(object);
  if (hash == -1 || !core_.symbols.varies(name, hash, false)) return {};
  guards.add(GuardKind::type_is, source, reinterpret_cast<PyObject*>(&PyUnicode_Type));
  any_input_ = true;
  return make_late_text({{}, {}, source, name});
}

Ref RecordedTexts::made(PyObject* function, PyObject* arguments) {
  if (core_.alone || !core_.symbols.dynamic() || core_.in_branch()) return {};
  Ref taken = taken_over(arguments);
  if (!taken) return {};
  Ref text = make_late_text({Ref::borrow(function), std::move(taken)});
  // What any number may be decides whether the call raises: -1 is no character, either.
  Ref any_int = checked(PyLong_FromLong(-1)), any_float = checked(PyFloat_FromDouble(0.5)), any_text = checked(PyUnicode_FromString("-1"));
  std::vector<std::pair<PyObject*, PyObject*>> samples;
  for (PyObject* number : inputs_of_text(text.get())) {
    if (is_symbolic_int(number) && !core_.symbols.is_known(*integer_of(number))) return {};
    PyTypeObject* type = type_of_number(number);
    samples.emplace_back(number, (type == &PyLong_Type ? any_int : type == &PyFloat_Type ? any_float : any_text).get());
  }
  PyTypeObject* type = nullptr;
  try {
    type = text_with(late_text_of(text.get()), samples).type();
  } catch (const PythonError&) {
    PyErr_Clear();
    return {};
  }
  return type == &PyFloat_Type ? make_late_text({Ref::borrow(function), late_text_of(text.get()).arguments, {}, {}, type}) : text;
}

std::optional<Recorder::LateCall> how_text_is_made(PyObject* stand_in) {
  if (!is_late_text(stand_in)) return std::nullopt;
  const LateText& text = late_text_of(stand_in);
  return text.source ? std::nullopt : std::optional(Recorder::LateCall{text.function, text.arguments});
}

}  // namespace tenon::python
