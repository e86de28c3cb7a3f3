#include "python/session/session.h"

#include <sstream>

#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/session/errors.h"
#include "python/session/messages.h"
#include "python/session/notebook.h"

namespace tenon::python {
namespace {

TenonSession* g_session = nullptr;
const TenonPlugin* g_own_plugin = nullptr;
Counters g_counters;
Logs g_logs;

void apply(const std::string& names) {
  g_logs = {};
  std::stringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const bool all = name == "all";
    g_logs.graph_code |= all || name == "graph_code";
    g_logs.graph_breaks |= all || name == "graph_breaks";
    g_logs.recompiles |= all || name == "recompiles";
    g_logs.guards |= all || name == "guards";
    g_logs.autodiff |= all || name == "autodiff";
    g_logs.fallbacks |= all || name == "fallbacks";
  }
}

Ref parse(const char* json) {
  Ref module = Ref::steal(imported("json"));
  return module ? Ref::steal(PyObject_CallMethod(module.get(), "loads", "s", json)) : Ref();
}

/// Takes over the logs that the configuration or the environment switched on: "flags" lists each flag with its value.
void read_configured_logs() {
  char* json = nullptr;
  if (tenon_session_query(g_session, "config", &json) != TENON_OK) return;
  Ref config = parse(json);
  tenon_free(json);
  Ref section = config ? Ref::steal(PyMapping_GetItemString(config.get(), "diagnostics")) : Ref();
  Ref names = section ? Ref::steal(PyMapping_GetItemString(section.get(), "logs")) : Ref();
  Ref text = names && PyUnicode_Check(names.get()) ? names : Ref();
  if (names && PyList_Check(names.get())) {
    Ref comma = Ref::steal(PyUnicode_FromString(","));
    text = Ref::steal(PyUnicode_Join(comma.get(), names.get()));
  }
  if (text) apply(PyUnicode_AsUTF8(text.get()));
  PyErr_Clear();
}

}  // namespace

void set_own_plugin(const TenonPlugin* plugin) { g_own_plugin = plugin; }

TenonSession* session() {
  if (g_session) return g_session;
  TenonSessionOptions options{};
  options.struct_size = sizeof options;
  TenonSession* made = nullptr;
  if (tenon_session_create(&options, &made) != TENON_OK) {
    set_host_error();
    return nullptr;
  }
  if (tenon_session_register(made, g_own_plugin) != TENON_OK) {
    set_host_error();
    tenon_session_release(made);
    return nullptr;
  }
  g_session = made;
  read_configured_logs();
  show_progress_in_notebooks();
  deliver_messages();
  return g_session;
}

Counters& counters() { return g_counters; }

const Logs& logs() {
  if (g_session == nullptr) {  // what is configured is known from then on; its failure is told to the call that compiles
    PendingException pending;
    session();
    PyErr_Clear();
  }
  return g_logs;
}

bool set_logs(const std::string& names) {
  TenonSession* s = session();
  if (!s) return false;
  if (tenon_session_set_logs(s, names.c_str()) != TENON_OK) {
    set_host_error();
    return false;
  }
  apply(names);
  return true;
}

void log_line(std::string_view text) { PySys_FormatStderr("%s\n", std::string(text).c_str()); }

Ref query_text(const char* what) {
  TenonSession* s = session();
  char* json = nullptr;
  if (!s) return {};
  const Delivery delivery;
  if (tenon_session_query(s, what, &json) != TENON_OK) {
    set_host_error();
    return {};
  }
  Ref text = Ref::steal(PyUnicode_FromString(json));
  tenon_free(json);
  return text;
}

Ref query(const char* what) {
  Ref text = query_text(what);
  return text ? parse(PyUnicode_AsUTF8(text.get())) : Ref();
}

Ref query(TenonProgram* program, const char* what) {
  char* json = nullptr;
  if (tenon_program_query(program, what, &json) != TENON_OK) {
    set_host_error();
    return {};
  }
  Ref parsed = parse(json);
  tenon_free(json);
  return parsed;
}

}  // namespace tenon::python
