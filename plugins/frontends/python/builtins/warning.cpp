// warnings.warn in captured code: every call of the segment issues the warning again, for the place in the program where it was issued.
#include <fmt/format.h>

#include <algorithm>

#include "python/builtins/handlers.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"

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

/// Where a warning goes that no filter keeps back.
enum class Destination : std::uint8_t {
  shown,     // where Python shows it
  recorded,  // into a list, of warnings.catch_warnings(record=True)
  other,     // to a function of the program
};

Destination destination(PyObject* shows) {
  if (PyFunction_Check(shows)) {
    PyObject* module = PyFunction_GetModule(shows);
    return module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "warnings") == 0 ? Destination::shown : Destination::other;
  }
  PyObject* list = PyCFunction_Check(shows) ? PyCFunction_GET_SELF(shows) : nullptr;
  return list && PyList_CheckExact(list) ? Destination::recorded : Destination::other;
}

class SameDestination : public ValueCheck {
 public:
  explicit SameDestination(Destination where) : where_(where) {}
  bool holds(PyObject* shows) const noexcept override { return destination(shows) == where_; }
  std::string expected() const override { return "warnings that go where they went"; }
  std::string found(PyObject*) const override { return "another place"; }

 private:
  Destination where_;
};

bool is_seen(Evaluator& evaluator, PyObject* list) {
  if (evaluator.heap().source_of(list) || evaluator.heap().is_born(list)) return true;
  const auto holds = [&](const Slot& slot) { return slot.object.is(list); };
  return std::ranges::any_of(evaluator.frames(), [&](const auto& frame) { return std::ranges::any_of(frame->locals, holds) || std::ranges::any_of(frame->stack, holds); });
}

/// The journal issues a warning at the end of the segment: nothing that the program sees may change by it before.
void require_unseen_destination(Evaluator& evaluator, PyObject* module) {
  Heap& heap = evaluator.heap();
  for (const char* attribute : {"showwarning", "_showwarnmsg_impl"}) {
    Ref name = checked(PyUnicode_InternFromString(attribute)), shows = checked(PyObject_GetAttr(module, name.get()));
    const Destination where = destination(shows.get());
    if (where == Destination::other) throw GraphBreak("a warning is issued to a function of the program", kWarningHint);
    if (where == Destination::recorded) {
      PyObject* list = PyCFunction_GET_SELF(shows.get());
      if (is_seen(evaluator, list)) throw GraphBreak("a warning is issued that the program records", kWarningHint);
      heap.hide(list, "warnings are read that were recorded");
    }
    heap.guards().add_value_check(heap.sources().keyed(SourceKind::attribute, heap.sources().constant(module), name.get()), std::make_shared<SameDestination>(where));
  }
}

constexpr const char* kParameters[] = {"message", "category", "stacklevel"};

/// The arguments in the order of the parameters; empty where they are not given.
std::vector<Ref> in_order(const Arguments& arguments) {
  std::vector<Ref> values(std::size(kParameters));
  if (arguments.positional() > values.size()) throw GraphBreak("a warning with a source", kWarningHint);
  for (std::size_t at = 0; at < arguments.values.size(); ++at) {
    std::size_t place = at;
    if (at >= arguments.positional()) {
      PyObject* name = PyTuple_GET_ITEM(arguments.names.get(), static_cast<Py_ssize_t>(at - arguments.positional()));
      for (place = 0; place < values.size() && PyUnicode_CompareWithASCIIString(name, kParameters[place]) != 0;) ++place;
    }
    if (place == values.size() || values[place]) throw GraphBreak("a warning with unusual arguments", kWarningHint);
    values[place] = arguments.values[at];
  }
  return values;
}

/// The frame that a stack level names. What called the compiled function is not known.
const Frame& frame_at(const Evaluator& evaluator, PyObject* level) {
  if (level && !PyLong_CheckExact(level)) throw GraphBreak("a warning with a stack level that varies", kWarningHint);
  const long wanted = level ? PyLong_AsLong(level) : 1;
  const auto& frames = evaluator.frames();
  if (wanted < 1 || static_cast<std::size_t>(wanted) > frames.size()) throw GraphBreak("a warning is issued for a caller of the compiled function", kWarningHint);
  return *frames[frames.size() - static_cast<std::size_t>(wanted)];
}

PyTypeObject* category_of(Evaluator& evaluator, PyObject* given) {
  if (!given || given == Py_None) return reinterpret_cast<PyTypeObject*>(PyExc_UserWarning);
  const bool known = PyType_Check(given) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(given), reinterpret_cast<PyTypeObject*>(PyExc_Warning));
  if (!known || evaluator.heap().is_born(given)) throw GraphBreak("a warning of an unusual category", kWarningHint);
  return reinterpret_cast<PyTypeObject*>(given);
}

}  // namespace

Handled issue_warning(Evaluator& evaluator, Arguments& arguments) {
  const std::vector<Ref> given = in_order(arguments);
  if (!given[0] || !PyUnicode_CheckExact(given[0].get())) throw GraphBreak("a warning whose message is no string", kWarningHint);
  PyTypeObject* category = category_of(evaluator, given[1].get());
  const Frame& frame = frame_at(evaluator, given[2].get());
  Heap& heap = evaluator.heap();
  Ref module = checked(imported("warnings"));
  require_unseen_destination(evaluator, module.get());
  Ref filters = checked(PyObject_GetAttrString(module.get(), "filters"));
  auto check = std::make_shared<NoWarningRaises>(category);
  if (!check->holds(filters.get())) throw GraphBreak("a warning that is turned into an exception", kWarningHint);
  Ref name = checked(PyUnicode_InternFromString("filters"));
  heap.guards().add_value_check(heap.sources().keyed(SourceKind::attribute, heap.sources().constant(module.get()), name.get()), std::move(check));
  const int line = PyCode_Addr2Line(frame.code->code(), 2 * frame.instruction().unit);
  Ref package = checked(imported("tenon._warnings"));
  Ref issue = checked(PyObject_GetAttrString(package.get(), "issue"));
  Ref partial = checked(PyObject_GetAttrString(checked(imported("functools")).get(), "partial"));
  Ref place = checked(PyObject_CallFunction(partial.get(), "OOOOi", issue.get(), category, frame.globals.get(), frame.code->code()->co_filename, line));
  heap.journal().add(WriteKind::call, {given[0]}, std::move(place));
  return Ref::borrow(Py_None);
}

Handled note_changed_filters(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 0, 0, "_filters_mutated");
  Frame& frame = evaluator.frame();
  if (PyUnicode_CompareWithASCIIString(frame.code->code()->co_qualname, "catch_warnings.__enter__") == 0) {
    Ref records = evaluator.attributes().load(evaluator.local(frame, 0), checked(PyUnicode_InternFromString("_record")).get());
    if (!records.is(Py_False)) throw GraphBreak("warnings are recorded", kWarningHint);  // those of the segment are issued at its end
  }
  Ref native = checked(PyObject_GetAttrString(checked(imported("_warnings")).get(), "_filters_mutated"));
  evaluator.heap().on_rollback([native] {
    if (!Ref::steal(PyObject_CallNoArgs(native.get()))) PyErr_Clear();
  });
  checked(PyObject_CallNoArgs(native.get()));
  evaluator.heap().journal().add(WriteKind::call, {}, std::move(native));
  return Ref::borrow(Py_None);
}

void require_warnings_in_order(Evaluator& evaluator, const WarningState& at_start, const std::string& function) {
  if (!at_start.is_current()) throw GraphBreak(fmt::format("{} is called under filters of warnings that the program has changed", function), kWarningHint);
  Ref shows = checked(PyObject_GetAttrString(checked(imported("warnings")).get(), "_showwarnmsg_impl"));
  if (destination(shows.get()) != Destination::recorded) return;
  PyObject* list = PyCFunction_GET_SELF(shows.get());
  if (is_seen(evaluator, list)) throw GraphBreak(fmt::format("{} is called where the program records warnings", function), kWarningHint);
  evaluator.heap().hide(list, "warnings are read that were recorded");
}

}  // namespace tenon::python
