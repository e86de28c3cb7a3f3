#include "python/builtins/c_arguments.h"

#include <fmt/format.h>

#include "python/builtins/table.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/generators.h"
#include "python/objects/names.h"

namespace tenon::python {

std::string name_of(PyObject* callable) {
  Ref name = Ref::steal(PyObject_GetAttr(callable, names().__qualname__));
  const char* chars = name && PyUnicode_Check(name.get()) ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (chars == nullptr) PyErr_Clear();
  return chars ? chars : Py_TYPE(callable)->tp_name;
}

PyObject* self_of(PyObject* callable) {
  if (PyCFunction_Check(callable)) return PyCFunction_GET_SELF(callable);
  if (Py_TYPE(callable) == compat::method_wrapper_type()) {
    Ref self = Ref::steal(PyObject_GetAttr(callable, names().__self__));
    if (!self) PyErr_Clear();
    return self.get();  // the wrapper holds it
  }
  return nullptr;
}

namespace {

/// Iterates its arguments whatever they are, and hands their items on as they are.
bool hands_items_on(PyObject* callable) { return is_among(name_of(callable), " zip enumerate map filter "); }
/// Iterates its arguments whatever they are.
bool takes_items(PyObject* callable) {
  return is_among(name_of(callable), " list tuple set frozenset sum any all min max sorted reduce accumulate islice chain filterfalse takewhile dropwhile pairwise groupby deque cycle zip_longest ");
}

/// Whether it asks what it iterates how long it is, to make room.
bool asks_for_length(PyObject* callable) { return is_among(name_of(callable), " list tuple sorted bytes list.extend list.__iadd__ list.__init__ "); }

}  // namespace

Iterated iterated_arguments(PyObject* callable, std::size_t positional) {
  const std::string full = name_of(callable);
  const std::string_view name = std::string_view(full).substr(full.rfind('.') + 1);
  PyObject* self = self_of(callable);
  const bool method = self != nullptr && !PyModule_Check(self) && !PyType_Check(self);
  constexpr std::string_view kMethods =
      " extend extendleft update __iadd__ __init__ __ior__ __iand__ __isub__ __ixor__ difference_update intersection_update symmetric_difference_update"
      " union intersection difference symmetric_difference issubset issuperset isdisjoint join ";
  if (method) return {0, is_among(name, kMethods) ? positional : 0};
  constexpr std::string_view kNone =
      " object callable property staticmethod classmethod slice range method MethodType partial ref weakref ReferenceType SimpleNamespace repeat count"
      " neg pos inv invert not_ truth index length_hint itemgetter attrgetter methodcaller"
      " int float complex bool abs divmod pow round chr ord hash format mappingproxy ";
  if (is_among(name, kNone)) return {};
  if (is_among(name, " map ")) return {1, positional};
  if (is_among(name, " filter filterfalse starmap takewhile dropwhile reduce defaultdict ")) return {1, 2};
  if (is_among(name, " fromkeys enumerate islice accumulate groupby ")) return {0, 1};
  if (is_among(name, " min max ")) return {0, positional == 1 ? 1u : 0u};
  return {0, positional};
}

std::optional<std::size_t> function_called_back(PyObject* callable, const Arguments& arguments) {
  const std::string full = name_of(callable);
  const bool second = is_among(std::string_view(full).substr(full.rfind('.') + 1), " accumulate groupby ");
  std::size_t at = second ? 1 : 0;
  if (at >= arguments.positional())
    for (at = arguments.positional(); at < arguments.values.size(); ++at)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(arguments.names.get(), at - arguments.positional()), "initial") != 0) break;
  return at < arguments.values.size() && PyCallable_Check(arguments[at]) ? std::optional(at) : std::nullopt;
}

void prepare_iterables(Evaluator& evaluator, PyObject* callable, Arguments& arguments) {
  const bool makes_dict = PyType_Check(callable) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(callable), &PyDict_Type);
  for (std::size_t at = 0; at < arguments.positional(); ++at) {
    Ref& value = arguments.values[at];
    const TypeTraits& traits = evaluator.heap().traits(value.get());
    if (traits.role == Recorder::Role::stand_in) {
      const Iterated iterated = iterated_arguments(callable, arguments.positional());
      if (at < iterated.first || at >= iterated.end) continue;
      if (hands_items_on(callable)) value = evaluator.iteration().counted_items(value.get());
      else if (takes_items(callable)) evaluator.iteration().require_few_items(value.get());
      continue;
    }
    const bool iterable = Py_TYPE(value.get())->tp_iter != nullptr || Py_TYPE(value.get())->tp_as_sequence != nullptr;
    if (traits.hidden && iterable) {
      const Iterated iterated = iterated_arguments(callable, arguments.positional());
      if (at >= iterated.first && at < iterated.end) evaluator.hidden_calls().require_readable(value.get());
    }
    if (!traits.python_class || traits.identity || traits.role != Recorder::Role::other) continue;
    if (makes_dict && evaluator.attributes().find(value.get(), names().keys) && traits.container != Container::dict)
      throw GraphBreak(fmt::format("C code reads a {} as a mapping", Py_TYPE(value.get())->tp_name), kCodeInCHint);
    PyObject* method = evaluator.heap().type_attribute(Py_TYPE(value.get()), names().__iter__);
    const bool by_index = method == nullptr && is_python_function(evaluator.heap().type_attribute(Py_TYPE(value.get()), names().__getitem__));
    if (!is_python_function(method) && !by_index) continue;
    const Iterated iterated = iterated_arguments(callable, arguments.positional());
    if (at < iterated.first || at >= iterated.end) continue;
    if (by_index && callable == as_object(&PyReversed_Type)) throw GraphBreak(fmt::format("C code would call {}.__getitem__", Py_TYPE(value.get())->tp_name), kCodeInCHint);
    Ref iterator = iterator_for(evaluator, evaluator.iteration().iterator_of(value.get()));  // not its items: C code may take only some of them, or later
    if (asks_for_length(callable)) evaluator.iteration().ask_for_length(value.get());
    value = std::move(iterator);
  }
}

void prepare_lookups(Evaluator& evaluator, PyObject* self, PyObject* name, const Arguments& arguments) {
  if (takes_a_key(name)) {
    const bool by_tensor = arguments.positional() > 0 && evaluator.is_stand_in(arguments[0]);
    if (by_tensor && evaluator.heap().source_of(self)) throw GraphBreak("C code looks a tensor up in a container that is older than the call", kCodeInCHint);
    if (arguments.positional() > 0) evaluator.equality().prepare_key(arguments[0], self);
    return;
  }
  for (const Ref& value : arguments.values) {
    const Container container = evaluator.heap().traits(value.get()).container;
    if (container != Container::list && container != Container::tuple) continue;
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(value.get()); ++at) {
      PyObject* item = PySequence_Fast_GET_ITEM(value.get(), at);
      if (evaluator.equality().has_python_equality(item)) evaluator.equality().prepare_key(item, self);
      else evaluator.equality().prepare_hash(item);
    }
  }
}

void prepare_items(Evaluator& evaluator, PyObject* callable, PyObject* iterable) {
  const Container container = evaluator.heap().traits(iterable).container;
  if (container != Container::list && container != Container::tuple) return;
  const std::string name = name_of(callable);
  const bool hashes = is_among(name, " set frozenset dict.fromkeys "), makes_dict = is_among(name, " dict "), groups = is_among(name, " groupby ");
  if (!hashes && !makes_dict && !groups) return;
  PyObject* before = nullptr;
  for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(iterable); ++at) {
    PyObject* item = PySequence_Fast_GET_ITEM(iterable, at);
    if (hashes) evaluator.equality().prepare_hash(item);
    if (makes_dict && PyTuple_Check(item) && PyTuple_GET_SIZE(item) == 2) evaluator.equality().prepare_hash(PyTuple_GET_ITEM(item, 0));
    if (groups && before != nullptr) evaluator.equality().tell_apart(before, item);
    before = item;
  }
}

}  // namespace tenon::python
