#include "python/call/told_to_torch.h"

#include <cstdint>
#include <utility>

#include "python/compat/object_layout.h"
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

namespace {

/// What a name in a dict of the interpreter's stood for when the dict was last looked into.
class Watched {
 public:
  /// Whether the dict may have changed since, which is forgotten.
  bool changed(PyObject* dict) noexcept {
    const std::uint64_t version = compat::kHasDictVersions ? compat::dict_version(dict) : 0;
    return std::exchange(dict_, dict) != dict || std::exchange(version_, version) != version || !compat::kHasDictVersions;
  }

 private:
  PyObject* dict_ = nullptr;  // compared, not read
  std::uint64_t version_ = 0;
};

/// The globals of the module that has the stance, borrowed from it; null where the program has not imported it.
PyObject* globals_of_stance() noexcept {
  static Watched modules;
  static PyObject* globals = nullptr;
  static PyObject* const name = PyUnicode_InternFromString("torch._dynamo.eval_frame");
  PyObject* loaded = PyImport_GetModuleDict();
  if (!modules.changed(loaded)) [[likely]] return globals;
  PyObject* module = PyDict_GetItemWithError(loaded, name);
  if (!module) PyErr_Clear();
  return globals = module && PyModule_Check(module) ? PyModule_GetDict(module) : nullptr;
}

}  // namespace

bool runs_plainly() noexcept {
  PyObject* const globals = globals_of_stance();
  if (!globals) [[likely]] return false;
  static Watched watched;
  static PyObject* stance_then = nullptr;  // held: another one is never at its address
  static bool plainly = false;
  static PyObject* const name = PyUnicode_InternFromString("_stance");
  if (!watched.changed(globals)) [[likely]] return plainly;
  PyObject* stance = PyDict_GetItemWithError(globals, name);
  if (!stance) {
    PyErr_Clear();
    return plainly = false;
  }
  if (stance_then == stance) return plainly;
  Py_XSETREF(stance_then, Py_NewRef(stance));
  const Ref said = Ref::steal(PyObject_GetAttrString(stance, "stance"));
  if (!said) PyErr_Clear();
  return plainly = said && PyUnicode_Check(said.get()) && PyUnicode_CompareWithASCIIString(said.get(), "force_eager") == 0;
}

}  // namespace tenon::python
