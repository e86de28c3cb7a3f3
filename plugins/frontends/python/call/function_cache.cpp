#include "python/call/function_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/call/capture_run.h"
#include "python/call/errors.h"
#include "python/call/session.h"
#include "python/call/traced_graph.h"
#include "python/evaluator/graph_break.h"
#include "python/tensors/numpy_state.h"
#include "python/tensors/torch_library.h"

namespace tenon::python {
namespace {

PyObject* g_renderer = nullptr;  // of the package; lives as long as the process

}  // namespace

void take_renderer(Ref renderer) { Py_XSETREF(g_renderer, renderer.release()); }

Ref render(PyObject* traced) {
  if (!g_renderer) return checked(PyObject_CallMethod(traced, "text", nullptr));
  return Ref::steal(PyObject_CallOneArg(g_renderer, traced));
}

FunctionCache::FunctionCache(Ref callable, Settings settings)
    : x_callable(std::move(callable)), x_settings(std::move(settings)), x_name(name_of_callable(x_callable.get())) {}

int FunctionCache::traverse(visitproc visit, void* arg) const {
  Py_VISIT(x_callable.get());
  Py_VISIT(x_settings.callable.get());
  for (const CacheEntry* entry : x_entries)
    if (int stopped = entry->traverse(visit, arg)) return stopped;
  return 0;
}

void FunctionCache::clear() {
  std::vector<CacheEntry*> entries = std::move(x_entries);
  x_entries.clear();
  x_breaks = {};
  x_reported.clear();
  x_limit_reported = false;
  x_numbers.clear();
  for (CacheEntry* entry : entries) entry->release();
}

PyObject* FunctionCache::call(PyObject* const* values, std::size_t nargsf, PyObject* keyword_names) {
  counters().calls.fetch_add(1, std::memory_order_relaxed);
  const CallArguments call{values, static_cast<std::size_t>(PyVectorcall_NARGS(nargsf)), keyword_names};
  const std::optional<TorchState> state = torch_state();
  if (state) [[likely]] {
    for (std::size_t i = 0; i < x_entries.size(); ++i) {
      CacheEntry* entry = x_entries[i];
      if (!entry->matches(*state, call)) continue;
      if (i > 0) std::rotate(x_entries.begin(), x_entries.begin() + static_cast<std::ptrdiff_t>(i), x_entries.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      if (entry->uses_numpy() && !numpy_errors_are_quiet()) [[unlikely]] return loudly(call);
      return run(entry, call);
    }
  }
  return miss(call);
}

PyObject* FunctionCache::run(CacheEntry* entry, const CallArguments& call) {
  entry->retain();  // a reset on another thread must not take it away
  Ref result;
  const RunStatus status = entry->run(result);
  entry->release();
  if (status == RunStatus::done) return result.release();
  if (status == RunStatus::raised) return nullptr;
  if (logs().fallbacks || logs().graph_breaks) {
    const TenonFailure* failure = tenon_last_error();
    const char* why = status == RunStatus::warned ? "a floating-point error of which NumPy warns" : failure && failure->text ? failure->text : "the graph could not run";
    log_line(fmt::format("tenon: {} runs this call eagerly: {}", x_name, why));
  }
  return eagerly(call);
}

PyObject* FunctionCache::loudly(const CallArguments& call) {
  CaptureBreak why;
  why.reason = kLoudErrors;
  return broken(why, call);
}

PyObject* FunctionCache::eagerly(const CallArguments& call) {
  counters().eager_fallbacks.fetch_add(1, std::memory_order_relaxed);
  return PyObject_Vectorcall(x_callable.get(), call.values, call.positional, call.keyword_names);
}

PyObject* FunctionCache::miss(const CallArguments& call) {
  torch_library();  // torch may have been imported since
  const std::optional<TorchState> now = torch_state();
  CaptureBreak why;
  why.reason = refusal(now);
  if (!why.reason.empty()) return broken(why, call);
  if (limit_reached(*now)) return eagerly(call);
  if (!x_entries.empty()) report_recompile(*now, call);
  auto captured = capture_call(x_callable.get(), call, *now, dynamic_of(x_settings), x_numbers);
  if (const auto* stopped = std::get_if<CaptureBreak>(&captured)) {
    ++x_breaks[now->autograd];
    x_last_break = stopped->reason;
    return broken(*stopped, call);
  }
  CacheEntry* entry = std::get<CacheEntry*>(captured);
  report_capture(*entry);
  if (entry->uses_numpy() && !numpy_errors_are_quiet()) {
    entry->release();
    return loudly(call);
  }
  if (!entry->matches(*now, call)) {  // finds the inputs of this call; the capture itself has checked that it holds
    entry->release();
    why.reason = "the guards of the capture do not hold right after it (a defect of Tenon)";
    return broken(why, call);
  }
  if (!entry->compile(x_settings, x_name)) {
    entry->release();
    return failed_to_compile(call);
  }
  if (!x_settings.callable) entry->drop_trace();
  if (entry->op_count() > 0) counters().graphs.fetch_add(1, std::memory_order_relaxed);
  x_entries.insert(x_entries.begin(), entry);
  if (!entry->matches(*now, call)) return eagerly(call);  // compiling gave other threads time to change what was read
  return run(entry, call);
}

bool FunctionCache::limit_reached(const TorchState& state) {
  const bool variants = x_entries.size() >= x_settings.recompile_limit;
  const bool breaks = x_breaks[state.autograd] >= x_settings.recompile_limit && !x_settings.fullgraph;
  if (!variants && !breaks) return false;
  if (!x_limit_reported) {
    x_limit_reported = true;
    log_line(variants ? fmt::format("tenon: recompile limit of {} reached for {}: further variants run eagerly; TENON_LOGS=recompiles shows which guards fail",
                                    x_settings.recompile_limit, x_name)
                      : fmt::format("tenon: recompile limit of {} reached for {}: each of its captures ended early, it runs eagerly from now on; the last "
                                    "one: {}",
                                    x_settings.recompile_limit, x_name, x_last_break));
  }
  return true;
}

void FunctionCache::report_recompile(const TorchState& state, const CallArguments& call) {
  counters().recompiles.fetch_add(1, std::memory_order_relaxed);
  if (!logs().recompiles) return;
  CacheEntry& latest = *x_entries.front();
  if (!(latest.state() == state)) {
    log_line(fmt::format("tenon: recompiling {}: torch's global state changed (grad mode, inference mode, default dtype)", x_name));
    return;
  }
  auto failure = latest.segment().guards.explain(call);
  if (!failure) return;
  log_line(fmt::format("tenon: recompiling {}: {}: {} was {}, is {}", x_name, failure->guard, failure->source, failure->expected, failure->found));
}

void FunctionCache::report_capture(CacheEntry& entry) {
  try {
    if (logs().graph_code && entry.op_count() > 0) {
      Ref traced = make_traced_graph(entry.captured(), x_name);
      Ref text = checked(render(traced.get()).release());
      log_line(PyUnicode_AsUTF8(text.get()));
    }
    if (logs().guards)
      for (const std::string& guard : entry.segment().guards.describe()) log_line(fmt::format("tenon: guard of {}: {}", x_name, guard));
  } catch (const std::exception&) {
    PyErr_WriteUnraisable(x_callable.get());
  }
}

PyObject* FunctionCache::broken(const CaptureBreak& why, const CallArguments& call) {
  counters().graph_breaks.fetch_add(1, std::memory_order_relaxed);
  const std::string message = break_message(why, x_name);
  if (x_settings.fullgraph) {
    set_error(ErrorClass::graph_break, message);
    return nullptr;
  }
  if (logs().graph_breaks && x_reported.insert(message).second) log_line(fmt::format("tenon: graph break: {}\n  The call runs eagerly.", message));
  return eagerly(call);
}

/// What the user asked for wrongly, or their own backend's failure, is theirs to see; a failure of ours is an event and an eager call.
PyObject* FunctionCache::failed_to_compile(const CallArguments& call) {
  const TenonFailure* failure = x_settings.callable ? nullptr : tenon_last_error();
  const bool theirs = x_settings.callable || x_settings.fullgraph || !PyErr_Occurred() ||
                      (failure && (failure->code == TENON_INVALID_ARGUMENT || failure->code == TENON_NOT_FOUND));
  if (theirs && PyErr_Occurred()) return nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref text = value ? Ref::steal(PyObject_Str(value)) : Ref();
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyErr_Clear();
  const std::string message = fmt::format("tenon: {} runs eagerly: {}", x_name, text ? PyUnicode_AsUTF8(text.get()) : "it could not be compiled");
  if (x_reported.insert(message).second) log_line(message);
  return eagerly(call);
}

}  // namespace tenon::python
