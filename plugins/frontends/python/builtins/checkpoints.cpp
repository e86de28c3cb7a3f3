#include "python/builtins/checkpoints.h"

#include "python/builtins/answers.h"
#include "python/evaluator/evaluator.h"

namespace tenon::python {
namespace {

/// (function, positional arguments, arguments by name): what it gives.
Ref call_as_given(Evaluator& evaluator, const Arguments& arguments) {
  Arguments given;
  for (Ref& value : evaluator.iteration().items_of(arguments[1])) given.values.push_back(std::move(value));
  Heap& heap = evaluator.heap();
  PyObject *named = arguments[2], *name = nullptr, *value = nullptr;
  std::vector<Ref> names;
  for (Py_ssize_t at = 0; PyDict_Next(named, &at, &name, &value);) names.push_back(Ref::borrow(name));
  for (const Ref& each : names) given.values.push_back(heap.dict_item(named, each.get()));
  if (!names.empty()) {
    given.names = checked(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
    for (std::size_t at = 0; at < names.size(); ++at) PyTuple_SET_ITEM(given.names.get(), static_cast<Py_ssize_t>(at), names[at].release());
  }
  return evaluator.call_now(arguments[0], std::move(given));
}

/// A place in the recording as the package holds it: an int each.
Ref as_python(const Recorder::Progress& place) { return checked(Py_BuildValue("(nnnn)", place.tensors, place.writes, place.draws, place.functions)); }

Recorder::Progress progress_of(PyObject* place) {
  const auto item = [&](Py_ssize_t at) { return PyLong_AsSize_t(PyTuple_GET_ITEM(place, at)); };
  return {item(0), item(1), item(2), item(3)};
}

}  // namespace

bool is_checkpoint(PyObject* function) {
  PyObject* module = PyFunction_GetModule(function);
  PyObject* name = reinterpret_cast<PyFunctionObject*>(function)->func_qualname;
  return module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "torch.utils.checkpoint") == 0 &&
         PyUnicode_CompareWithASCIIString(name, "checkpoint") == 0;
}

std::optional<Ref> checkpoint(Evaluator& evaluator, Arguments arguments) {
  return call_in_python(evaluator, "checkpoint", std::move(arguments), "torch evaluates a checkpointed part of the program again, which does more than compute", "tenon._checkpoint");
}

std::optional<Ref> evaluate_region(Evaluator& evaluator, Arguments arguments) {
  Heap& heap = evaluator.heap();
  Recorder& recorder = evaluator.recorder();
  const std::size_t journalled = heap.journal().size();
  const Recorder::Progress before = recorder.progress();
  const Heap::NotedWrites written(heap);
  Ref result = call_as_given(evaluator, arguments);
  std::vector<Ref> held = evaluator.iteration().items_of(arguments[3]);
  std::vector<PyObject*> given;
  for (const Ref& tensor : held) given.push_back(tensor.get());
  const Recorder::Deeds deeds = recorder.deeds_since(before, given);
  const auto truth = [](bool yes) { return yes ? Py_True : Py_False; };
  Ref place = as_python(before);
  heap.born(place);
  return heap.born(checked(PyTuple_Pack(9, result.get(), place.get(), truth(written.any() || heap.journal().size() != journalled), truth(deeds.writes),
                                        truth(deeds.writes_given), truth(deeds.kept_since), truth(deeds.draws), truth(deeds.draws_of_another_library), truth(deeds.functions))));
}

std::optional<Ref> evaluate_again(Evaluator& evaluator, Arguments arguments) {
  Recorder& recorder = evaluator.recorder();
  recorder.draw_again_from(progress_of(arguments[3]));
  call_as_given(evaluator, arguments);
  recorder.end_drawing_again();
  return Ref::borrow(Py_None);
}

std::optional<Ref> let_through_to_all_leaves(Evaluator& evaluator, Arguments arguments) {
  const std::vector<Ref> held = evaluator.iteration().items_of(arguments[0]);
  std::vector<PyObject*> tensors;
  for (const Ref& tensor : held) tensors.push_back(tensor.get());
  if (evaluator.heap().has_new_hooks()) return Ref::borrow(Py_False);
  return Ref::borrow(evaluator.recorder().let_through_to_all_leaves(tensors, evaluator.heap().guards()) ? Py_True : Py_False);
}

}  // namespace tenon::python
