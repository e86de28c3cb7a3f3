#include "python/foreign/autocast.h"

#include <string>
#include <unordered_map>

#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

/// Whether torch has a rule of autocast for the operator of that name.
bool has_rule(const std::string& name) {
  static auto* const known = new std::unordered_map<std::string, bool>();
  if (const auto found = known->find(name); found != known->end()) return found->second;
  Ref native = checked(PyObject_GetAttrString(torch_library()->module.get(), "_C"));
  Ref answer = Ref::steal(PyObject_CallMethod(native.get(), "_dispatch_has_kernel_for_dispatch_key", "ss", ("aten::" + name).c_str(), "AutocastCPU"));
  if (!answer) PyErr_Clear();  // no operator of that name
  return known->emplace(name, answer.is(Py_True)).first->second;
}

}  // namespace

bool autocast_may_change(const ForeignFunction& function, bool random) {
  if (function.flavour != ops::Flavour::torch || function.kind == CallClass::same_elements || function.kind == CallClass::metadata) return false;
  const bool simple = random || (function.op && function.op->body);
  return !simple || has_rule(std::string(function.last_word())) || (function.op && has_rule(std::string(function.op->name)));
}

AutocastVerdict judge_autocast(PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs) {
  Ref module = checked(imported("tenon._autocast"));
  Ref no_keywords = twin_kwargs ? Ref() : checked(PyDict_New());
  Ref answer = checked(PyObject_CallMethod(module.get(), "judge", "OOO", callable, twin_args, twin_kwargs ? twin_kwargs : no_keywords.get()));
  PyObject* first = PyTuple_GET_ITEM(answer.get(), 0);
  if (first == Py_None) return {};
  if (PyList_Check(first)) return {Ref::borrow(first), {}, {}};
  return {{}, Ref::borrow(first), Ref::borrow(PyTuple_GET_ITEM(answer.get(), 1))};
}

WithoutAutocast::WithoutAutocast(bool needed) : needed_(needed) {
  if (needed_) known_torch_library()->set_autocast(0, false);
}

WithoutAutocast::~WithoutAutocast() {
  if (needed_) known_torch_library()->set_autocast(0, true);
}

}  // namespace tenon::python
