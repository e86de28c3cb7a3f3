#include "python/call/told_to_torch.h"

#include <cstdint>

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
    if (compat::kHasDictVersions && dict_ == dict && version_ == version) [[likely]] return false;
    dict_ = dict, version_ = version;
    return true;
  }

 private:
  PyObject* dict_ = nullptr;  // compared, not read
  std::uint64_t version_ = 0;
};

/// What was found when the dicts were last looked into.
struct Stance {
  Watched modules, watched;     // sys.modules; the globals of the module that has the stance
  PyObject* globals = nullptr;  // borrowed from that module; null where the program has not imported it
  PyObject* held = nullptr;     // the stance: another one is never at its address
  bool plainly = false;
};

constinit Stance g_stance;

PyObject* find_globals(PyObject* loaded) noexcept {
  static PyObject* const name = PyUnicode_InternFromString("torch._dynamo.eval_frame");
  PyObject* module = PyDict_GetItemWithError(loaded, name);
  if (!module) PyErr_Clear();
  return module && PyModule_Check(module) ? PyModule_GetDict(module) : nullptr;
}

bool find_stance(PyObject* globals) noexcept {
  static PyObject* const name = PyUnicode_InternFromString("_stance");
  PyObject* stance = PyDict_GetItemWithError(globals, name);
  if (!stance) {
    PyErr_Clear();
    return false;
  }
  if (g_stance.held == stance) return g_stance.plainly;
  Py_XSETREF(g_stance.held, Py_NewRef(stance));
  const Ref said = Ref::steal(PyObject_GetAttrString(stance, "stance"));
  if (!said) PyErr_Clear();
  return said && PyUnicode_Check(said.get()) && PyUnicode_CompareWithASCIIString(said.get(), "force_eager") == 0;
}

}  // namespace

bool runs_plainly() noexcept {
  PyObject* const loaded = PyImport_GetModuleDict();
  if (g_stance.modules.changed(loaded)) [[unlikely]] g_stance.globals = find_globals(loaded);
  if (!g_stance.globals) [[likely]] return false;
  if (g_stance.watched.changed(g_stance.globals)) [[unlikely]] g_stance.plainly = find_stance(g_stance.globals);
  return g_stance.plainly;
}

}  // namespace tenon::python
