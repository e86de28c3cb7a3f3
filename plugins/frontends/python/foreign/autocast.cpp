#include "python/foreign/autocast.h"

#include <string>
#include <unordered_map>

#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

/// Whether torch has a rule of autocast for the operator of that name.
bool has_rule(const std::string& name, TorchState::Autocast of) {
  static std::unordered_map<std::string, bool>* const tables[] = {new std::unordered_map<std::string, bool>(), new std::unordered_map<std::string, bool>()};
  const bool cpu = of == TorchState::Autocast::cpu;
  auto* const known = tables[cpu ? 0 : 1];
  if (const auto found = known->find(name); found != known->end()) return found->second;
  Ref native = checked(PyObject_GetAttrString(torch_library()->module.get(), "_C"));
  Ref answer = Ref::steal(PyObject_CallMethod(native.get(), "_dispatch_has_kernel_for_dispatch_key", "ss", ("aten::" + name).c_str(), cpu ? "AutocastCPU" : "AutocastCUDA"));
  if (!answer) PyErr_Clear();  // no operator of that name
  return known->emplace(name, answer.is(Py_True)).first->second;
}

}  // namespace

bool autocast_may_change(const ForeignFunction& function, bool random, TorchState::Autocast of) {
  if (function.flavour != ops::Flavour::torch || function.kind == CallClass::same_elements || function.kind == CallClass::metadata) return false;
  const bool simple = random || (function.op && function.op->body);
  return !simple || has_rule(std::string(function.last_word()), of) || (function.op && has_rule(std::string(function.op->name), of));
}

AutocastVerdict judge_autocast(PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, TorchState::Autocast of) {
  Ref module = checked(imported("tenon._autocast"));
  Ref no_keywords = twin_kwargs ? Ref() : checked(PyDict_New());
  Ref answer = checked(PyObject_CallMethod(module.get(), "judge", "OOOs", callable, twin_args, twin_kwargs ? twin_kwargs : no_keywords.get(), of == TorchState::Autocast::cpu ? "cpu" : "cuda"));
  PyObject* first = PyTuple_GET_ITEM(answer.get(), 0);
  if (first == Py_None) return {};
  if (PyList_Check(first)) return {Ref::borrow(first), {}, {}, {}};
  PyObject* result = PyTuple_GET_ITEM(answer.get(), 1);
  if (result == Py_None) return {{}, {}, {}, Ref::borrow(first)};
  return {{}, Ref::borrow(first), Ref::borrow(result), {}};
}

WithoutAutocast::WithoutAutocast(const TorchState& state) : cpu_(state.autocast(TorchState::Autocast::cpu)), cuda_(state.autocast(TorchState::Autocast::cuda)) {
  if (cpu_) known_torch_library()->set_autocast(0, false);
  if (cuda_) known_torch_library()->set_autocast(1, false);
}

WithoutAutocast::~WithoutAutocast() {
  if (cpu_) known_torch_library()->set_autocast(0, true);
  if (cuda_) known_torch_library()->set_autocast(1, true);
}

}  // namespace tenon::python
