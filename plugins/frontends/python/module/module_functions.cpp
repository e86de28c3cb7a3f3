// The functions of the extension module.
#include <map>

#include "python/call/capture_run.h"
#include "python/call/compiled_function.h"
#include "python/call/function_cache.h"
#include "python/call/gradients/segment_node.h"
#include "python/decode/code.h"
#include "python/export/export_capture.h"
#include "python/export/exported_graph.h"
#include "python/export/flat_call.h"
#include "python/graph/gradient_report.h"
#include "python/graph/traced_graph.h"
#include "python/library/torch_library.h"
#include "python/module/module.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/opaque/python_backend.h"
#include "python/session/collected_logs.h"
#include "python/session/errors.h"
#include "python/session/messages.h"
#include "python/session/session.h"
#include "python/session/warm_up.h"

namespace tenon::python {
namespace {

PyObject* take_errors(PyObject*, PyObject* args) {
  PyObject* given[5];
  if (!PyArg_ParseTuple(args, "OOOOO:set_error_classes", &given[0], &given[1], &given[2], &given[3], &given[4])) return nullptr;
  Ref classes[5];
  for (int i = 0; i < 5; ++i) classes[i] = Ref::borrow(given[i]);
  take_error_classes(classes);
  Py_RETURN_NONE;
}

PyObject* take_render(PyObject*, PyObject* renderer) {
  take_renderer(Ref::borrow(renderer));
  Py_RETURN_NONE;
}

void set_count(PyObject* dict, const char* name, std::int64_t value) {
  checked(PyDict_SetItemString(dict, name, checked(PyLong_FromLongLong(value)).get()));
}

/// {tier, reason, nodes, backward_graphs, copied_gradients}: of torch's autograd graph. Before torch has been imported there is no tier.
Ref autograd_stats() {
  Ref dict = checked(PyDict_New());
  const bool known = torch_library() != nullptr;
  const std::string tier = !known ? "" : node_tier().native ? "native" : "autograd.Function", reason = known ? node_tier().reason : "";
  checked(PyDict_SetItemString(dict.get(), "tier", checked(PyUnicode_FromString(tier.c_str())).get()));
  checked(PyDict_SetItemString(dict.get(), "reason", checked(PyUnicode_FromString(reason.c_str())).get()));
  set_count(dict.get(), "nodes", node_counts().nodes);
  set_count(dict.get(), "backward_graphs", node_counts().backward_graphs);
  set_count(dict.get(), "copied_gradients", node_counts().copied_gradients);
  return dict;
}

/// How this process's torch and CPython are reached, after the checks of both: texts by name, for people.
PyObject* report_layouts(PyObject*, PyObject*) {
  try {
    Ref dict = checked(PyDict_New());
    const auto set = [&](const char* name, const std::string& text) { checked(PyDict_SetItemString(dict.get(), name, checked(PyUnicode_FromString(text.c_str())).get())); };
    set("frames", compat::real_frames_work() ? "go on as CPython's own after a break" : "are interpreted after a break: the check of CPython's layout failed");
    if (const TorchLibrary* torch = torch_library()) {
      set("tensors", torch->fallback_reason.empty() ? "are read and made directly" : torch->fallback_reason);
      set("gradients", node_tier().native ? "nodes of our own in torch's graph" : "by autograd.Function: " + node_tier().reason);
    }
    return dict.release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyObject* use_native(PyObject*, PyObject* wanted) {
  use_native_nodes(wanted == Py_True);
  Py_RETURN_NONE;
}

PyObject* stats(PyObject*, PyObject*) {
  try {
    Ref dict = checked(PyDict_New());
    const Counters& c = counters();
    set_count(dict.get(), "graphs", c.graphs);
    set_count(dict.get(), "graph_breaks", c.graph_breaks);
    set_count(dict.get(), "recompiles", c.recompiles);
    set_count(dict.get(), "calls", c.calls);
    set_count(dict.get(), "opaque_nodes", c.opaque_nodes);
    set_count(dict.get(), "eager_fallbacks", c.eager_fallbacks);
    set_count(dict.get(), "left_to_python", c.left_to_python);
    Ref host = query("statistics");
    if (!host) return nullptr;
    Ref events = checked(PyMapping_GetItemString(host.get(), "events"));
    Ref failed = PyMapping_HasKeyString(events.get(), "compile_failed_nodes") ? checked(PyMapping_GetItemString(events.get(), "compile_failed_nodes")) : checked(PyLong_FromLong(0));
    checked(PyDict_SetItemString(dict.get(), "compile_failures", failed.get()));
    Ref backends = PyMapping_HasKeyString(host.get(), "backends") ? checked(PyMapping_GetItemString(host.get(), "backends")) : checked(PyDict_New());
    checked(PyDict_SetItemString(dict.get(), "backends", backends.get()));
    checked(PyDict_SetItemString(dict.get(), "host", host.get()));
    checked(PyDict_SetItemString(dict.get(), "autograd", autograd_stats().get()));
    return dict.release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyObject* reset(PyObject*, PyObject*) {
  clear_all_caches();
  forget_decoded_code();
  counters() = {};
  node_counts().nodes = node_counts().backward_graphs = node_counts().copied_gradients = 0;
  TenonSession* host = session();
  if (!host) return nullptr;
  tenon_session_reset_statistics(host);
  Py_RETURN_NONE;
}

PyObject* set_log_names(PyObject*, PyObject* names) {
  const char* text = PyUnicode_AsUTF8(names);
  if (!text || !set_logs(text)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* query_host(PyObject*, PyObject* what) {
  const char* text = PyUnicode_AsUTF8(what);
  return text ? query_text(text).release() : nullptr;
}

// ---- explain

PyObject* begin_collecting_logs(PyObject*, PyObject* names) {
  const char* text = PyUnicode_AsUTF8(names);
  if (!text || !begin_collecting(text)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* end_collecting_logs(PyObject*, PyObject*) { return end_collecting().release(); }

Ref break_dict(const CaptureBreak& broken) {
  Ref stack = checked(PyList_New(0));
  for (const StackEntry& e : broken.stack)
    checked(PyList_Append(stack.get(), checked(Py_BuildValue("(sissii)", e.file.c_str(), e.line, e.function.c_str(), e.code.c_str(), e.begin, e.end)).get()));
  return checked(Py_BuildValue("{sssssO}", "reason", broken.reason.c_str(), "hint", broken.hint.c_str(), "stack", stack.get()));
}

/// Collects what the captures of one call give.
class Report : public CaptureObserver {
 public:
  explicit Report(PyObject* callable) : name_(name_of_callable(callable)) {}

  void captured(CacheEntry& entry) override {
    const bool computes = entry.op_count() > 0;
    const Py_ssize_t graph = computes ? PyList_GET_SIZE(graphs_.get()) : -1, first_guard = PyList_GET_SIZE(guards_.get()), stop = PyList_GET_SIZE(breaks_.get());
    if (computes) checked(PyList_Append(graphs_.get(), make_traced_graph(entry.captured(), name_).get()));
    if (computes) say_in_steps("graph", graph);
    entries_.emplace_back(&entry);
    for (const BackwardReport& backward : backward_reports(entry.captured())) {
      Ref kept = checked(PyList_New(0));
      for (const std::string& line : backward.kept) checked(PyList_Append(kept.get(), checked(PyUnicode_FromString(line.c_str())).get()));
      checked(PyList_Append(backwards_.get(), checked(Py_BuildValue("(sOL)", backward.graph.c_str(), kept.get(), static_cast<long long>(backward.kept_bytes))).get()));
    }
    for (const std::string& guard : entry.segment().guards.describe())
      checked(PyList_Append(guards_.get(), checked(PyUnicode_FromString(guard.c_str())).get()));
    const bool breaks = entry.segment().stop && !entry.segment().stop->why.raises;
    if (breaks) checked(PyList_Append(breaks_.get(), break_dict(entry.segment().stop->why).get()));
    add_segment(graph, breaks ? stop : -1, first_guard);
  }
  void failed(const CaptureBreak& why) override {
    add_segment(-1, PyList_GET_SIZE(breaks_.get()), PyList_GET_SIZE(guards_.get()));
    checked(PyList_Append(breaks_.get(), break_dict(why).get()));
  }
  void spent(const char* phase, double seconds) override { seconds_[phase] += seconds; }

  Ref dict(const Ref& result) const {
    Ref times = checked(PyDict_New());
    for (const auto& [phase, seconds] : seconds_) checked(PyDict_SetItemString(times.get(), phase.c_str(), checked(PyFloat_FromDouble(seconds)).get()));
    return checked(Py_BuildValue("{sOsOsOsOsOsOsOsO}", "graphs", graphs_.get(), "segments", segments_.get(), "backwards", backwards_.get(), "breaks", breaks_.get(), "guards", guards_.get(), "compile_times",
                                 times.get(), "plans", plans().get(), "result", result.get()));
  }

 private:
  /// Numbers in the lists of this report; -1 where there is none. Guards from `first_guard` on are the segment's.
  void add_segment(Py_ssize_t graph, Py_ssize_t stop, Py_ssize_t first_guard) {
    checked(PyList_Append(segments_.get(), checked(Py_BuildValue("(nnnn)", graph, stop, first_guard, PyList_GET_SIZE(guards_.get()))).get()));
  }

  /// What libtenon knows of each program that it runs.
  Ref plans() const {
    Ref plans = checked(PyList_New(0));
    for (const EntryRef& entry : entries_) {
      if (!entry->program().native()) continue;
      const Ref plan = query(entry->program().native(), "plan");
      if (!plan) throw PythonError();
      checked(PyList_Append(plans.get(), plan.get()));
    }
    return plans;
  }

  std::string name_;
  std::vector<EntryRef> entries_;
  Ref graphs_ = checked(PyList_New(0)), backwards_ = checked(PyList_New(0)), breaks_ = checked(PyList_New(0)), guards_ = checked(PyList_New(0)), segments_ = checked(PyList_New(0));
  std::map<std::string, double> seconds_;
};

/// What is called once and then again, without being captured anew where nothing has changed: steps then have times that are not of a first run.
Ref explain(PyObject* callable, PyObject* args, PyObject* kwargs, Settings settings, long runs) {
  FlatCall flat(args, kwargs);
  Report report(callable);
  FunctionCache cache(Ref::borrow(callable), std::move(settings));
  cache.observe(&report);
  Ref result = checked(cache.call(flat.arguments.values, flat.arguments.positional, flat.arguments.keyword_names));
  cache.observe(nullptr);
  for (long run = 1; run < runs; ++run) {
    say_in_steps("run", run);
    checked(cache.call(flat.arguments.values, flat.arguments.positional, flat.arguments.keyword_names));
  }
  return report.dict(result);
}

PyObject* explain_capture(PyObject*, PyObject* args) {
  PyObject *callable = nullptr, *values = nullptr, *keywords = nullptr, *dict = nullptr;
  long runs = 1;
  if (!PyArg_ParseTuple(args, "OO!O!Ol:explain_capture", &callable, &PyTuple_Type, &values, &PyDict_Type, &keywords, &dict, &runs)) return nullptr;
  auto settings = read_settings(dict);
  if (!settings) return nullptr;
  try {
    return explain(callable, values, keywords, std::move(*settings), runs).release();
  } catch (const PythonError&) {
  } catch (const std::exception& failure) {
    set_error(ErrorClass::error, failure.what());
  }
  return nullptr;
}

PyObject* load_exported(PyObject*, PyObject* path) {
  PyObject* bytes = nullptr;
  if (!PyUnicode_FSConverter(path, &bytes)) return nullptr;
  Ref owned = Ref::steal(bytes);
  try {
    return load_exported_graph(PyBytes_AS_STRING(bytes)).release();
  } catch (const PythonError&) {
  } catch (const std::exception& failure) {
    set_error(ErrorClass::error, failure.what());
  }
  return nullptr;
}

PyObject* begin_warm_up(PyObject*, PyObject*) {
  start_warm_up();
  Py_RETURN_NONE;
}

PyObject* end_warm_up(PyObject*, PyObject*) {
  {
    const GilReleased released;
    finish_warm_up();
  }
  deliver_messages();  // of threads that have ended, before the interpreter does
  Py_RETURN_NONE;
}

PyMethodDef kFunctions[] = {
    {"set_error_classes", take_errors, METH_VARARGS, "Takes over the exception classes of the package."},
    {"set_renderer", take_render, METH_O, "Takes over the function that turns a TracedGraph into the text of the log graph_code."},
    {"stats", stats, METH_NOARGS, "Counters since the last reset."},
    {"use_native_nodes", use_native, METH_O, "For tests: whether nodes of torch's autograd graph may be made without torch.autograd.Function."},
    {"reset", reset, METH_NOARGS, "Forgets compiled code and counters."},
    {"set_logs", set_log_names, METH_O, "Switches logs: names separated by commas."},
    {"query", query_host, METH_O, "A JSON document of the session."},
    {"explain_capture", explain_capture, METH_VARARGS, "Captures and runs a call once and reports."},
    {"begin_collecting_logs", begin_collecting_logs, METH_O, "Keeps what the host's logs of these names say from now on."},
    {"end_collecting_logs", end_collecting_logs, METH_NOARGS, "Ends that: a list of (log, plugin, text)."},
    {"export_capture", export_capture, METH_VARARGS, "Captures a call whole, apart from the program."},
    {"start_warm_up", begin_warm_up, METH_NOARGS, "Starts the code generator on a thread of its own."},
    {"layouts", report_layouts, METH_NOARGS, "How torch and CPython are reached, as texts by name."},
    {"finish_warm_up", end_warm_up, METH_NOARGS, "Waits until that has been done."},
    {"load_exported", load_exported, METH_O, "Reads a .tnx file."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_call_types(PyObject* module) {
  set_own_plugin(python_backend());
  return add_compiled_function_type(module) && add_exported_graph_type(module) && PyModule_AddFunctions(module, kFunctions) == 0;
}

}  // namespace tenon::python
