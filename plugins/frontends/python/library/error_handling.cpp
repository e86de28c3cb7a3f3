#include "python/library/error_handling.h"

#include <algorithm>

#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

constexpr ErrorHandling kOfContext;
constexpr std::pair<const char*, bool FloatErrors::*> kKinds[] = {
    {"divide", &FloatErrors::divide}, {"over", &FloatErrors::over}, {"under", &FloatErrors::under}, {"invalid", &FloatErrors::invalid}};

void set(ErrorHandling& handling, bool FloatErrors::*kind, PyObject* mode) {
  if (mode == Py_None) return;
  if (!PyUnicode_Check(mode)) throw GraphBreak("np.errstate with a mode that is no text");
  const auto is = [&](const char* name) { return PyUnicode_CompareWithASCIIString(mode, name) == 0; };
  const bool ignores = is("ignore");
  if (!ignores && !is("warn")) throw GraphBreak("np.errstate makes floating-point errors raise, call or log", kErrstateHint);
  if (!ignores && kind == &FloatErrors::under) throw GraphBreak("np.errstate speaks of underflow");
  handling.ignored.*kind = ignores;
  handling.heard.*kind = !ignores;
}

}  // namespace

ErrorHandling ErrorHandling::within(PyObject* modes) const {
  ErrorHandling result = *this;
  for (const auto& [name, kind] : kKinds) {
    PyObject* own = PyDict_GetItemString(modes, name);
    set(result, kind, own != Py_None ? own : PyDict_GetItemString(modes, "all"));
  }
  return result;
}

Ref ErrorHandling::modes() const {
  Ref result = checked(PyDict_New());
  const auto add = [&](const FloatErrors& kinds, const char* mode) {
    Ref text = checked(PyUnicode_FromString(mode));
    for (const auto& [name, kind] : kKinds)
      if (kinds.*kind) checked(PyDict_SetItemString(result.get(), name, text.get()));
  };
  add(ignored, "ignore");
  add(heard, "warn");
  return result;
}

void ErrorHandlings::enter(const ir::Graph& graph, PyObject* modes) {
  const ErrorHandling outer = now();
  const ErrorHandling inner = outer.within(modes);
  outer_.push_back(outer);
  changes_.emplace_back(graph.node_capacity(), inner);
}

void ErrorHandlings::leave(const ir::Graph& graph) {
  changes_.emplace_back(graph.node_capacity(), outer_.back());
  outer_.pop_back();
}

ErrorHandlings::OnScalars::OnScalars(ErrorHandlings& handlings, const ir::Graph& graph) : handlings_(handlings), graph_(graph) {
  handlings.outer_.push_back(handlings.now());
  ErrorHandling inner = handlings.outer_.back();
  inner.of_scalars = true;
  handlings.changes_.emplace_back(graph.node_capacity(), inner);
}

void ErrorHandlings::always_hear(const ir::Graph& graph, bool heard) {
  if (heard) {
    outer_.push_back(now());
    changes_.emplace_back(graph.node_capacity(), ErrorHandling{{}, {.divide = true, .over = true, .invalid = true}});
  } else {
    leave(graph);
  }
}

const ErrorHandling& ErrorHandlings::now() const { return changes_.empty() ? kOfContext : changes_.back().second; }

const ErrorHandling& ErrorHandlings::of(ir::NodeId node) const {
  const auto after = std::ranges::upper_bound(changes_, node.value, {}, &std::pair<std::size_t, ErrorHandling>::first);
  return after == changes_.begin() ? kOfContext : std::prev(after)->second;
}

}  // namespace tenon::python
