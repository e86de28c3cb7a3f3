// inspect.signature of a Python function: asked for real, under guards on all that it reads.
#include "python/builtins/answers.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// Attributes that a signature would be taken from instead of the function's code.
constexpr const char* kInstead[] = {"__wrapped__", "__signature__", "__text_signature__"};

void guard_code(Heap& heap, PyObject* function, SourceId source) {
  const auto part = [](PyObject* value) { return value == nullptr ? Py_None : Py_Ellipsis; };
  Ref expected = checked(PyTuple_Pack(4, PyFunction_GET_CODE(function), part(PyFunction_GET_DEFAULTS(function)), part(PyFunction_GET_KW_DEFAULTS(function)),
                                      PyFunction_GET_GLOBALS(function)));
  heap.guards().add_function_parts(source, std::move(expected), PyFunction_GET_CODE(function));
}

/// Guards a part of the function, and what it holds. That a part is missing is guarded with the code.
void guard_part(Heap& heap, PyObject* part, SourceId source) {
  if (part == nullptr || part == Py_None) return;
  heap.make_known(part, source);
  heap.expose(part);
}

void guard_signature(Heap& heap, PyObject* function, SourceId source) {
  guard_code(heap, function, source);
  SourceTable& sources = heap.sources();
  guard_part(heap, PyFunction_GET_DEFAULTS(function), sources.part(SourceKind::function_defaults, source));
  guard_part(heap, PyFunction_GET_KW_DEFAULTS(function), sources.part(SourceKind::function_kwdefaults, source));
  guard_part(heap, checked(PyObject_GetAttr(function, names().__annotations__)).get(), sources.keyed(SourceKind::attribute, source, names().__annotations__));
}

}  // namespace

std::optional<Ref> inspect_signature(Evaluator& evaluator, PyObject* signature, Arguments arguments) {
  if (arguments.named() != 0 || arguments.positional() != 1) throw GraphBreak("inspect.signature() with options");
  Heap& heap = evaluator.heap();
  Ref function = arguments.values[0];
  if (PyMethod_Check(function.get())) function = heap.part(SourceKind::method_function, function.get(), PyMethod_GET_FUNCTION(function.get()));
  if (!PyFunction_Check(function.get())) throw GraphBreak("inspect.signature() of what is no Python function");
  const bool born = heap.is_born(function.get());
  if (!born && !heap.source_of(function.get())) heap.make_known(function.get(), heap.sources().constant(function.get()));
  PyObject* attributes = heap.attributes_of(function.get());
  for (const char* name : kInstead)
    if (attributes != nullptr && heap.dict_contains(attributes, checked(PyUnicode_InternFromString(name)).get()))
      throw GraphBreak("inspect.signature() of a function that wraps another");
  if (!born) guard_signature(heap, function.get(), heap.source_of(function.get()));
  return heap.adopt(evaluator.calls().call_real(signature, arguments));
}

}  // namespace tenon::python
