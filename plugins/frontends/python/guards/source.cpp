#include "python/guards/source.h"

#include <fmt/format.h>

#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

std::string name_of(PyObject* object) {
  if (PyModule_Check(object)) {
    const char* name = PyModule_GetName(object);
    if (name == nullptr) PyErr_Clear();
    return name ? name : "<module>";
  }
  if (PyType_Check(object)) return reinterpret_cast<PyTypeObject*>(object)->tp_name;
  if (PyFunction_Check(object)) {
    const char* name = PyUnicode_AsUTF8(reinterpret_cast<PyFunctionObject*>(object)->func_qualname);
    if (name == nullptr) PyErr_Clear();
    return name ? name : "<function>";
  }
  return fmt::format("<{}>", Py_TYPE(object)->tp_name);
}

std::string text_of(PyObject* string) {
  const char* chars = PyUnicode_Check(string) ? PyUnicode_AsUTF8(string) : nullptr;
  if (chars == nullptr) {
    PyErr_Clear();
    return shown(string);
  }
  return chars;
}

/// Whether two keys of this type may be compared by value: what has no identity of its own.
bool compares_by_value(PyObject* key) {
  return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyBytes_CheckExact(key);
}

}  // namespace

SourceTable::SourceTable() {
  index_->key_numbers = checked(PyDict_New());
  sources_.push_back({SourceKind::constant, {}, 0, {}});
}

std::size_t SourceTable::ShapeHash::operator()(const Shape& shape) const {
  std::uint64_t hash = static_cast<std::uint64_t>(shape.kind) * 0x9E3779B97F4A7C15u;
  hash = (hash ^ shape.parent) * 0xC2B2AE3D27D4EB4Fu;
  hash = (hash ^ static_cast<std::uint64_t>(shape.index)) * 0x165667B19E3779F9u;
  return hash ^ (hash >> 29);
}

SourceId SourceTable::intern(Source source, const Shape& shape) {
  auto [entry, fresh] = index_->ids.try_emplace(shape, static_cast<std::uint32_t>(sources_.size()));
  if (fresh) sources_.push_back(std::move(source));
  return {entry->second};
}

std::int64_t SourceTable::key_number(PyObject* key) {
  // An interned string is its address; the same text in a string that is not interned makes a second source, which does no harm.
  const bool interned = PyUnicode_CheckExact(key) && PyUnicode_CHECK_INTERNED(key);
  if (interned || !compares_by_value(key)) return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(key));
  Ref typed = PyUnicode_CheckExact(key) ? Ref::borrow(key)
                                        : checked(PyTuple_Pack(2, reinterpret_cast<PyObject*>(Py_TYPE(key)), key));
  if (PyObject* number = PyDict_GetItemWithError(index_->key_numbers.get(), typed.get())) return PyLong_AsLongLong(number);
  if (PyErr_Occurred()) throw_python_error();
  // Odd, so that it can never be the address of an object.
  const std::int64_t number = 2 * static_cast<std::int64_t>(PyDict_GET_SIZE(index_->key_numbers.get())) + 1;
  checked(PyDict_SetItem(index_->key_numbers.get(), typed.get(), checked(PyLong_FromLongLong(number)).get()));
  return number;
}

SourceId SourceTable::constant(PyObject* object) {
  return intern({SourceKind::constant, {}, 0, Ref::borrow(object)},
                {SourceKind::constant, 0, static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(object))});
}

SourceId SourceTable::argument(std::int64_t index) {
  return intern({SourceKind::argument, {}, index, {}}, {SourceKind::argument, 0, index});
}

SourceId SourceTable::part(SourceKind kind, SourceId parent) {
  return intern({kind, parent, 0, {}}, {kind, parent.value, 0});
}

SourceId SourceTable::item(SourceKind kind, SourceId parent, std::int64_t index) {
  return intern({kind, parent, index, {}}, {kind, parent.value, index});
}

SourceId SourceTable::chosen_item(SourceId parent, ChosenPlace place) {
  std::size_t at = 0;
  auto& places = index_->places;
  while (at < places.size() && !(*places[at] == place)) ++at;
  if (at == places.size()) places.push_back(std::make_shared<ChosenPlace>(std::move(place)));
  const auto number = static_cast<std::int64_t>(at);
  return intern({SourceKind::chosen_item, parent, number, {}, places[at]}, {SourceKind::chosen_item, parent.value, number});
}

SourceId SourceTable::keyed(SourceKind kind, SourceId parent, PyObject* key) {
  return intern({kind, parent, 0, Ref::borrow(key)}, {kind, parent.value, key_number(key)});
}

SourceTable SourceTable::closed_copy() const {
  SourceTable copy;
  copy.sources_ = sources_;
  copy.argument_names_ = argument_names_;
  copy.close();
  return copy;
}

bool SourceTable::from_argument(SourceId id) const {
  while (sources_[id.value].parent) id = sources_[id.value].parent;
  return sources_[id.value].kind == SourceKind::argument || sources_[id.value].kind == SourceKind::handled_exception;
}

/// The name of the closed-over variable, where the cell belongs to a known function.
std::string SourceTable::variable_of_cell(SourceId cell) const {
  const Source& item = sources_[cell.value];
  const Source& closure = sources_[item.parent.value];
  const Source& function = sources_[closure.parent.value];
  if (closure.kind == SourceKind::function_closure && function.kind == SourceKind::constant && PyFunction_Check(function.key.get())) {
    auto* code = reinterpret_cast<PyCodeObject*>(reinterpret_cast<PyFunctionObject*>(function.key.get())->func_code);
    const Py_ssize_t first = code->co_nlocalsplus - code->co_nfreevars;
    return text_of(PyTuple_GET_ITEM(code->co_localsplusnames, first + item.index));
  }
  return describe(cell) + ".cell_contents";
}

std::string SourceTable::describe(SourceId id) const {
  const Source& source = sources_[id.value];
  const auto parent = [&] { return describe(source.parent); };
  switch (source.kind) {
    case SourceKind::constant: return name_of(source.key.get());
    case SourceKind::argument:
      return static_cast<std::size_t>(source.index) < argument_names_.size() ? argument_names_[source.index]
                                                                             : fmt::format("arg[{}]", source.index);
    case SourceKind::instance_dict: return parent() + ".__dict__";
    case SourceKind::dict_item:
      if (sources_[source.parent.value].kind == SourceKind::instance_dict && PyUnicode_Check(source.key.get()))
        return describe(sources_[source.parent.value].parent) + "." + text_of(source.key.get());
      // The globals of a function: their names stand alone, as in the program.
      if (sources_[source.parent.value].kind == SourceKind::constant && PyUnicode_Check(source.key.get())) return text_of(source.key.get());
      return parent() + "[" + shown(source.key.get()) + "]";
    case SourceKind::dict_value: return fmt::format("list({}.values())[{}]", parent(), source.index);
    case SourceKind::list_item:
    case SourceKind::tuple_item:
    case SourceKind::sequence_item: return parent() + "[" + std::to_string(source.index) + "]";
    case SourceKind::chosen_item: return fmt::format("{}[{}]", parent(), python::describe(*this, *source.place));
    case SourceKind::member: {
      Ref name = Ref::steal(PyObject_GetAttrString(source.key.get(), "__name__"));
      if (!name) PyErr_Clear();
      return fmt::format("{}.{}", parent(), name ? text_of(name.get()) : "?");
    }
    case SourceKind::attribute:
    case SourceKind::type_attribute: return parent() + "." + text_of(source.key.get());
    case SourceKind::function_defaults: return parent() + ".__defaults__";
    case SourceKind::function_kwdefaults: return parent() + ".__kwdefaults__";
    case SourceKind::function_closure: return parent() + ".__closure__";
    case SourceKind::cell_contents: return variable_of_cell(source.parent);
    case SourceKind::method_function: return parent() + ".__func__";
    case SourceKind::method_self: return parent() + ".__self__";
    case SourceKind::called: return parent() + "()";
    case SourceKind::cached_result: return fmt::format("{}({})", parent(), shown(source.key.get()));
    case SourceKind::class_dict: return fmt::format("vars({})", parent());
    case SourceKind::proxied: return parent();
    case SourceKind::upcoming: return fmt::format("item {} to come of {}", source.index, parent());
    case SourceKind::handled_exception: return "sys.exception()";
  }
  return "?";
}

std::string name_text(PyObject* name) {
  const char* chars = PyUnicode_AsUTF8(name);
  if (chars == nullptr) PyErr_Clear();
  return chars ? chars : "?";
}

std::string describe(const SourceTable& sources, const ChosenPlace& place) {
  return place.index.to_string([&](SymbolId position) { return sources.describe(place.numbers[position.value]); });
}

}  // namespace tenon::python
