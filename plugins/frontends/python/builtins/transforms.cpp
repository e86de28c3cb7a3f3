#include "python/builtins/transforms.h"

#include <fmt/format.h>

#include "python/builtins/answers.h"
#include "python/objects/imported.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

/// Stand-ins of a list of tensors.
std::vector<PyObject*> tensors_of(Evaluator& evaluator, PyObject* list, std::vector<Ref>& held) {
  std::vector<PyObject*> tensors;
  for (Ref& item : evaluator.iteration().items_of(list)) {
    if (!evaluator.is_stand_in(item.get())) throw GraphBreak("torch.vmap of what is no tensor of the graph");
    tensors.push_back(held.emplace_back(std::move(item)).get());
  }
  return tensors;
}

Ref adopted(Evaluator& evaluator, std::vector<Ref> stand_ins) {
  for (Ref& stand_in : stand_ins) evaluator.heap().adopt(stand_in);
  return evaluator.heap().born(list_of(std::move(stand_ins)));
}

bool is_index_mode(PyObject* mode) {
  if (!is_imported("torch._dynamo._trace_wrapped_higher_order_op")) return false;
  Ref module = checked(imported("torch._dynamo._trace_wrapped_higher_order_op"));
  return checked(PyObject_GetAttrString(module.get(), "TransformGetItemToIndex")).is(reinterpret_cast<PyObject*>(Py_TYPE(mode)));
}

}  // namespace

std::optional<Ref> vmap(Evaluator& evaluator, Arguments arguments) {
  return call_in_python(evaluator, "vmap", std::move(arguments), kTransformApplied, "tenon._batching", kTransformHint);
}

std::optional<Ref> by_example(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  Recorder& recorder = evaluator.recorder();
  try {
    const std::vector<PyObject*> tensors = tensors_of(evaluator, arguments[1], held);
    const Heap::NoWrites pure(evaluator.heap(), "a function that torch.vmap is applied to");
    Arguments examples;
    examples.values.push_back(adopted(evaluator, recorder.begin_batch(tensors)));
    Ref found = evaluator.call_now(arguments[0], std::move(examples));
    const std::vector<Ref> pair = evaluator.iteration().items_of(found.get());
    const std::vector<PyObject*> results = tensors_of(evaluator, pair.at(0).get(), held);
    evaluator.mark_position();
    Ref whole = adopted(evaluator, recorder.end_batch(results));
    return evaluator.heap().born(checked(PyTuple_Pack(2, whole.get(), pair.at(1).get())));
  } catch (const PythonError&) {
    PyErr_Clear();
    throw GraphBreak(fmt::format("{}: the function raises an exception", kTransformApplied), kTransformHint);
  } catch (const GraphBreak& stop) {
    throw GraphBreak(fmt::format("{}: {}", kTransformApplied, stop.reason()), kTransformHint);
  }
}

std::optional<Ref> enter_function_mode(Evaluator& evaluator, Arguments arguments) {
  const bool known = arguments.values.size() == 1 && is_index_mode(arguments[0]);
  if (!known || !evaluator.heap().is_born(arguments[0])) throw GraphBreak("a torch function mode is entered", "enter it outside of the compiled function: what runs in it is plain Python");
  evaluator.recorder().index_by_tensors(true);
  evaluator.library_states().enter_mode(arguments.values[0], arguments.values[0]);
  return std::move(arguments.values[0]);
}

std::optional<Ref> leave_function_mode(Evaluator& evaluator, Arguments arguments) {
  if (arguments.values.empty() || !evaluator.library_states().leave_mode(arguments[0])) throw GraphBreak("a torch function mode is left that was entered before the graph");
  evaluator.recorder().index_by_tensors(false);
  return Ref::borrow(Py_None);
}

}  // namespace tenon::python
