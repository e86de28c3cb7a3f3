#include "python/call/told_to_torch.h"

#include "python/objects/imported.h"

namespace tenon::python {
namespace {

PyObject* told(PyObject* words, const char* name) {
  PyObject* value = PyDict_GetItemString(words, name);
  return value == Py_None ? nullptr : value;
}

bool is_told(PyObject* words, const char* name) {
  PyObject* value = told(words, name);
  return value && PyObject_IsTrue(value) == 1;
}

std::optional<std::size_t> number(PyObject* words, const char* name) {
  PyObject* value = told(words, name);
  return value ? std::optional(PyLong_AsSize_t(value)) : std::nullopt;
}

}  // namespace

ToldToTorch told_to_torch() {
  ToldToTorch found;
  if (!is_imported("torch._dynamo.eval_frame")) return found;
  const Ref module = Ref::steal(imported("tenon._torch_compile.told"));
  const Ref words = module ? Ref::steal(PyObject_CallMethod(module.get(), "words", nullptr)) : Ref();
  if (words && PyDict_Check(words.get())) {
    if (told(words.get(), "dynamic")) found.dynamic = is_told(words.get(), "dynamic");
    found.recompile_limit = number(words.get(), "recompile_limit");
    found.accumulated_limit = number(words.get(), "accumulated_limit");
    found.runs_plainly = is_told(words.get(), "runs_plainly");
    found.recompiles_plainly = is_told(words.get(), "recompiles_plainly");
    if (PyObject* who = told(words.get(), "no_recompiles")) {
      const char* text = PyUnicode_AsUTF8(who);
      found.no_recompiles = text ? text : "";
    }
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return {};
  }
  return found;
}

}  // namespace tenon::python
