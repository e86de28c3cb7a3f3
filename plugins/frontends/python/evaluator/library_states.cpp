#include "python/evaluator/library_states.h"

#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
namespace tenon::python {

void LibraryStates::set(Ref setter, Ref before, Ref now) {
  for (State& state : states_)
    if (state.setter.is(setter.get())) {
      state.left = std::move(now);
      return;
    }
  states_.push_back({std::move(setter), std::move(before), std::move(now)});
}

PyObject* LibraryStates::now(PyObject* setter) const {
  for (const State& state : states_)
    if (state.setter.is(setter)) return state.left.get();
  return nullptr;
}

Ref LibraryStates::leave_mode(PyObject* owner) {
  if (modes_.empty() || !modes_.back().owner.is(owner)) return {};
  Ref context = std::move(modes_.back().context);
  modes_.pop_back();
  return context;
}

void LibraryStates::finish() {
  for (const Mode& mode : modes_) {
    if (!mode.enter) throw Unbuildable(mode.context.get(), "the graph ends inside of a mode that it has entered");
    heap_.journal().add(WriteKind::call, {mode.owner}, mode.enter);
  }
  for (const State& state : states_)
    if (!state.left.is(state.found.get())) heap_.journal().add(WriteKind::call, {state.left}, state.setter);
}

void LibraryStates::require_warnings_in_order(const std::string& function) { python::require_warnings_in_order(core_, warnings_at_start_, function); }

}  // namespace tenon::python
