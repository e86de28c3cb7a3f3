// What the groups share whose nodes are calls of Python.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "python/compat/object_layout.h"
#include "python/compat/waiting_signals.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/segments/exception_text.h"
#include "tenon/backend.h"

namespace tenon::python {

/// Runs with the GIL. What Python raises is a failure of the plan that names what was called.
class PythonArtefact : public Artefact {
 public:
  void execute(const TenonExecuteArgs& args) final {
    const GilHeld gil;
    const compat::SignalsWait waiting;  // what a handler raises is no failure of the call
    try {
      run(args);
    } catch (const PythonError&) {
      throw Failure(TENON_PLUGIN_FAILED, fmt::format("{} raised {}", name(), type_and_text(compat::take_exception().get())));
    } catch (const GraphBreak& odd) {
      throw Failure(TENON_PLUGIN_FAILED, fmt::format("{}: {}", name(), odd.reason()));
    }
  }

 protected:
  virtual void run(const TenonExecuteArgs& args) = 0;
  /// Of what it calls, for people.
  virtual std::string name() const = 0;

  /// Drops references at the artefact's end.
  template <class Held>
  static void drop(Held& held) {
    if (!Py_IsInitialized()) {  // what Python held is gone with it
      new Held(std::move(held));
      return;
    }
    const GilHeld gil;
    held = Held();
  }
};

}  // namespace tenon::python
