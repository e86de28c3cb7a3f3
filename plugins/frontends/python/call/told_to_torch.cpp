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

/// A name in a module of torch's, where the program has imported that, and what it stood for.
class WatchedName {
 public:
  constexpr WatchedName(const char* module, const char* name) : module_name_(module), name_text_(name) {}

  /// After a change of sys.modules.
  void find_module(PyObject* loaded) noexcept {
    if (!module_) module_ = PyUnicode_InternFromString(module_name_);
    PyObject* module = PyDict_GetItemWithError(loaded, module_);
    if (!module) PyErr_Clear();
    globals_ = module && PyModule_Check(module) ? PyModule_GetDict(module) : nullptr;
  }
  bool is_loaded() const noexcept { return globals_ != nullptr; }
  /// Whether it stands for another object than when this was last asked; `is` says for which.
  bool changed() noexcept {
    if (!watched_.changed(globals_)) [[likely]] return false;
    if (!name_) name_ = PyUnicode_InternFromString(name_text_);
    PyObject* now = PyDict_GetItemWithError(globals_, name_);
    if (!now) PyErr_Clear();
    if (now == held_) return false;
    Py_XSETREF(held_, Py_XNewRef(now));
    return true;
  }
  PyObject* is() const noexcept { return held_; }

 private:
  const char *module_name_, *name_text_;
  PyObject *module_ = nullptr, *name_ = nullptr;  // as strings of Python's
  PyObject* globals_ = nullptr;                   // borrowed from the module
  PyObject* held_ = nullptr;                      // another one is never at its address
  Watched watched_;
};

constinit Watched g_modules;
constinit WatchedName g_stance("torch._dynamo.eval_frame", "_stance");
constinit WatchedName g_profiler("torch.autograd.profiler", "_is_profiler_enabled");
constinit SaidToCalls g_said;

bool forces_eager(PyObject* stance) noexcept {
  const Ref said = stance ? Ref::steal(PyObject_GetAttrString(stance, "stance")) : Ref();
  if (!said) PyErr_Clear();
  return said && PyUnicode_Check(said.get()) && PyUnicode_CompareWithASCIIString(said.get(), "force_eager") == 0;
}

void find_modules(PyObject* loaded) noexcept {
  g_stance.find_module(loaded);
  if (compat::kHasDictVersions || !g_profiler.is_loaded()) g_profiler.find_module(loaded);
  if (!g_stance.is_loaded()) g_said.runs_plainly = false;
  if (!g_profiler.is_loaded()) g_said.is_profiled = false;
}

}  // namespace

SaidToCalls said_to_calls() noexcept {
  PyObject* const loaded = PyImport_GetModuleDict();
  if (g_modules.changed(loaded)) [[unlikely]] find_modules(loaded);
  if (g_stance.is_loaded() && g_stance.changed()) [[unlikely]] g_said.runs_plainly = forces_eager(g_stance.is());
  if (g_profiler.is_loaded() && g_profiler.changed()) [[unlikely]] g_said.is_profiled = g_profiler.is() == Py_True;
  return g_said;
}

}  // namespace tenon::python
