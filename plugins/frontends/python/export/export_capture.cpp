#include "python/export/export_capture.h"

#include <fmt/format.h>

#include "core/ops/portable.h"
#include "python/call/capture_run.h"
#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/export/exported_graph.h"
#include "python/export/flat_call.h"
#include "python/graph/lifted_graph.h"
#include "python/graph/traced_graph.h"
#include "python/library/numpy_state.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/session/errors.h"

namespace tenon::python {
namespace {

const char* name_of_kind(TensorKind kind) {
  switch (kind) {
    case TensorKind::torch: return "torch";
    case TensorKind::array: return "array";
    case TensorKind::scalar: return "scalar";
  }
  return "";
}

Ref kinds_of(const CapturedGraph& captured) {
  Ref kinds = checked(PyList_New(0));
  for (std::uint32_t output : captured.outputs)
    checked(PyList_Append(kinds.get(), checked(PyUnicode_FromString(name_of_kind(captured.tensors[output].tensor))).get()));
  return kinds;
}

Ref updates_of(const ir::Graph& graph) {
  Ref updates = checked(PyList_New(0));
  for (const ir::Output& output : graph.outputs())
    if (output.kind == ir::OutputKind::update)
      checked(PyList_Append(updates.get(), checked(PyLong_FromUnsignedLong(graph.value(output.target).index)).get()));
  return updates;
}

Ref guards_of(const Segment& segment) {
  Ref guards = checked(PyList_New(0));
  for (const std::string& guard : segment.guards.describe()) checked(PyList_Append(guards.get(), checked(PyUnicode_FromString(guard.c_str())).get()));
  return guards;
}

/// The result as a call makes it, with references in the places of what the graph computes.
Ref result_of(CacheEntry& entry) {
  std::vector<Ref> references;
  std::vector<PyObject*> outputs;
  for (std::size_t i = 0; i < entry.captured().outputs.size(); ++i) {
    references.push_back(make_value_reference(std::to_string(i)));
    outputs.push_back(references.back().get());
  }
  return entry.result_with(outputs.data());
}

std::vector<ArgumentTensor> argument_tensors(PyObject* tensors, PyObject* names) {
  std::vector<ArgumentTensor> arguments;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) {
    const char* name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, i));
    if (!name) throw PythonError();
    arguments.push_back({PyList_GET_ITEM(tensors, i), name});
  }
  return arguments;
}

/// Turns a capture into what `export_capture` gives. The entry's guards have just been found to hold.
Ref exported(CacheEntry& entry, PyObject* tensors, PyObject* names) {
  const Segment& segment = entry.segment();
  const CapturedGraph& captured = entry.captured();
  if (!segment.journal.empty()) throw GraphBreak("an exported program writes to Python objects", "give back what is to be kept instead");
  std::vector<PyObject*> objects;
  for (std::uint32_t slot : segment.input_slots) objects.push_back(segment.guards.values()[slot]);
  ir::Graph graph = lifted_graph(captured, objects, argument_tensors(tensors, names));
  if (const std::string stays = ops::why_not_portable(graph); !stays.empty()) throw GraphBreak("the graph cannot be exported: " + stays);
  Ref result = result_of(entry), updates = updates_of(graph);
  Ref wrapped = make_exported_graph(std::move(graph));
  return checked(Py_BuildValue("{sOsOsOsOsO}", "graph", wrapped.get(), "result", result.get(), "kinds", kinds_of(captured).get(), "updates",
                               updates.get(), "guards", guards_of(segment).get()));
}

Ref refuse(const CaptureBreak& broken, const std::string& name) {
  set_error(ErrorClass::graph_break, break_message(broken, name));
  throw PythonError();
}

/// A history in which the named numbers have varied.
NumberHistory history_of(PyObject* varying) {
  NumberHistory history;
  history.graph_alone = true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(varying); ++i) {
    const char* name = PyUnicode_AsUTF8(PyList_GET_ITEM(varying, i));
    if (!name) throw PythonError();
    history.varies(name, 0);
    history.varies(name, 1);
  }
  return history;
}

Ref capture_and_export(PyObject* callable, const CallArguments& call, PyObject* tensors, PyObject* names, PyObject* varying) {
  torch_library();
  const std::optional<TorchState> state = torch_state();
  CaptureBreak broken;
  const std::string name = name_of_callable(callable);
  broken.reason = refusal(state);
  broken.hint = kStateHint;
  if (!broken.reason.empty()) return refuse(broken, name);
  NumberHistory history = history_of(varying);
  const Dynamic dynamic = PyList_GET_SIZE(varying) > 0 ? Dynamic::when_varying : Dynamic::never;
  std::optional<compat::SignalsWait> waiting(std::in_place);
  auto captured = capture_segment({callable, nullptr, call}, *state, name, dynamic, history);
  waiting.reset();
  if (auto* stopped = std::get_if<CaptureBreak>(&captured)) {
    if (Ref interrupt = compat::take_interrupt()) compat::set_exception(std::move(interrupt));
    if (stopped->interrupted) throw PythonError();
    return refuse(*stopped, name);
  }
  const EntryRef entry = std::get<EntryRef>(captured);
  if (entry->segment().stop) return refuse(entry->segment().stop->why, name);
  try {
    if (!entry->matches(*state, call)) throw GraphBreak("the guards of the capture do not hold right after it", kReportHint);
    return exported(*entry, tensors, names);
  } catch (const GraphBreak& stop) {
    broken.reason = stop.reason();
    broken.hint = stop.hint();
    return refuse(broken, name);
  }
}

}  // namespace

PyObject* export_capture(PyObject*, PyObject* args) {
  PyObject *callable = nullptr, *values = nullptr, *keywords = nullptr, *tensors = nullptr, *names = nullptr, *varying = nullptr;
  if (!PyArg_ParseTuple(args, "OO!O!O!O!O!:export_capture", &callable, &PyTuple_Type, &values, &PyDict_Type, &keywords, &PyList_Type, &tensors,
                        &PyList_Type, &names, &PyList_Type, &varying))
    return nullptr;
  if (PyList_GET_SIZE(tensors) != PyList_GET_SIZE(names)) {
    PyErr_SetString(PyExc_ValueError, "export_capture takes a name for each tensor");
    return nullptr;
  }
  try {
    const FlatCall flat(values, keywords);
    return capture_and_export(callable, flat.arguments, tensors, names, varying).release();
  } catch (const PythonError&) {
  } catch (const std::exception& failure) {
    set_error(ErrorClass::error, failure.what());
  }
  return nullptr;
}

}  // namespace tenon::python
