// warnings.warn in captured code: every call of the segment issues the warning again, for the place in the program where it was issued.
#include <fmt/format.h>

#include "python/builtins/handlers.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"

namespace tenon::python {
namespace {

/// Holds while no filter turns warnings of a category into exceptions, which the program could catch.
class NoWarningRaises : public ValueCheck {
 public:
  explicit NoWarningRaises(PyTypeObject* category) : category_(Ref::borrow(reinterpret_cast<PyObject*>(category))) {}

  bool holds(PyObject* filters) const noexcept override {
    if (!PyList_CheckExact(filters)) return false;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(filters); ++at)
      if (raises(PyList_GET_ITEM(filters, at))) return false;
    return true;
  }
  std::string expected() const override { return "filters that turn no such warning into an exception"; }
  std::string found(PyObject*) const override { return "one that does"; }

 private:
  bool raises(PyObject* filter) const noexcept {
    if (!PyTuple_Check(filter) || PyTuple_GET_SIZE(filter) < 3) return true;
    PyObject *action = PyTuple_GET_ITEM(filter, 0), *category = PyTuple_GET_ITEM(filter, 2);
    if (!PyUnicode_Check(action) || PyUnicode_CompareWithASCIIString(action, "error") != 0) return false;
    return !PyType_Check(category) || PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(category_.get()), reinterpret_cast<PyTypeObject*>(category));
  }

  Ref category_;
};

constexpr const char* kParameters[] = {"message", "category", "stacklevel"};

/// The arguments in the order of the parameters; empty where they are not given.
std::vector<Ref> in_order(const Arguments& arguments) {
  std::vector<Ref> values(std::size(kParameters));
  if (arguments.positional() > values.size()) throw GraphBreak("a warning with a source");
  for (std::size_t at = 0; at < arguments.values.size(); ++at) {
    std::size_t place = at;
    if (at >= arguments.positional()) {
      PyObject* name = PyTuple_GET_ITEM(arguments.names.get(), static_cast<Py_ssize_t>(at - arguments.positional()));
      for (place = 0; place < values.size() && PyUnicode_CompareWithASCIIString(name, kParameters[place]) != 0;) ++place;
    }
    if (place == values.size() || values[place]) throw GraphBreak("a warning with unusual arguments");
    values[place] = arguments.values[at];
  }
  return values;
}

/// The frame that a stack level names. What called the compiled function is not known.
const Frame& frame_at(const Evaluator& evaluator, PyObject* level) {
  if (level && !PyLong_CheckExact(level)) throw GraphBreak("a warning with a stack level that varies");
  const long wanted = level ? PyLong_AsLong(level) : 1;
  const auto& frames = evaluator.frames();
  if (wanted < 1 || static_cast<std::size_t>(wanted) > frames.size()) throw GraphBreak("a warning is issued for a caller of the compiled function");
  return *frames[frames.size() - static_cast<std::size_t>(wanted)];
}

PyTypeObject* category_of(Evaluator& evaluator, PyObject* given) {
  if (!given || given == Py_None) return reinterpret_cast<PyTypeObject*>(PyExc_UserWarning);
  const bool known = PyType_Check(given) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(given), reinterpret_cast<PyTypeObject*>(PyExc_Warning));
  if (!known || evaluator.heap().is_born(given)) throw GraphBreak("a warning of an unusual category");
  return reinterpret_cast<PyTypeObject*>(given);
}

}  // namespace

Handled issue_warning(Evaluator& evaluator, Arguments& arguments) {
  const std::vector<Ref> given = in_order(arguments);
  if (!given[0] || !PyUnicode_CheckExact(given[0].get())) throw GraphBreak("a warning whose message is no string");
  PyTypeObject* category = category_of(evaluator, given[1].get());
  const Frame& frame = frame_at(evaluator, given[2].get());
  Heap& heap = evaluator.heap();
  Ref module = checked(PyImport_ImportModule("warnings"));
  Ref filters = checked(PyObject_GetAttrString(module.get(), "filters"));
  auto check = std::make_shared<NoWarningRaises>(category);
  if (!check->holds(filters.get())) throw GraphBreak("a warning that is turned into an exception");
  Ref name = checked(PyUnicode_InternFromString("filters"));
  heap.guards().add_value_check(heap.sources().keyed(SourceKind::attribute, heap.sources().constant(module.get()), name.get()), std::move(check));
  const int line = PyCode_Addr2Line(frame.code->code(), 2 * frame.instruction().unit);
  Ref package = checked(PyImport_ImportModule("tenon._warnings"));
  Ref issue = checked(PyObject_GetAttrString(package.get(), "issue"));
  Ref partial = checked(PyObject_GetAttrString(checked(PyImport_ImportModule("functools")).get(), "partial"));
  Ref place = checked(PyObject_CallFunction(partial.get(), "OOOOi", issue.get(), category, frame.globals.get(), frame.code->code()->co_filename, line));
  heap.journal().add(WriteKind::call, {given[0]}, std::move(place));
  return Ref::borrow(Py_None);
}

}  // namespace tenon::python
