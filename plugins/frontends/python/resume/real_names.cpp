// Locals, cells, globals and imports, for real.
#include "python/objects/names.h"
#include "python/resume/real_instruction.h"

namespace tenon::python {
namespace {

PyFunctionObject* function_parts(compat::RealFrame* frame) { return reinterpret_cast<PyFunctionObject*>(compat::function_of(frame)); }

Effect raise_name_error(PyObject* type, const char* format, PyObject* name) {
  PyErr_Format(type, format, name);
  if (type == PyExc_NameError) {  // suggestions read it
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    PyErr_NormalizeException(&kind, &value, &traceback);
    if (value && PyObject_SetAttr(value, names().name, name) < 0) PyErr_Clear();
    PyErr_Restore(kind, value, traceback);
  }
  return Effect::raised;
}

/// mapping[key], or null; an exception is set only for a failure other than absence.
PyObject* look_up(PyObject* mapping, PyObject* key) {
  if (PyDict_CheckExact(mapping)) return Py_XNewRef(PyDict_GetItemWithError(mapping, key));
  PyObject* value = PyObject_GetItem(mapping, key);
  if (value == nullptr && PyErr_ExceptionMatches(PyExc_KeyError)) PyErr_Clear();
  return value;
}

}  // namespace

Effect RealInstruction::names() {
  const int arg = instruction_.arg;
  switch (instruction_.op) {
    case Op::load_fast:
      if (local(arg) == nullptr)
        return raise_name_error(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value", local_name(arg));
      push(Py_NewRef(local(arg)));
      return Effect::next;
    case Op::load_fast_and_clear: push(std::exchange(local(arg), nullptr)); return Effect::next;
    case Op::store_fast: {
      Ref old = Ref::steal(std::exchange(local(arg), pop().release()));
      return Effect::next;
    }
    case Op::delete_fast: {
      Ref old = Ref::steal(std::exchange(local(arg), nullptr));
      if (!old) return raise_name_error(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value", local_name(arg));
      return Effect::next;
    }
    case Op::load_closure: push(Py_NewRef(local(arg))); return Effect::next;
    case Op::load_deref: {
      PyObject* value = PyCell_GET(local(arg));
      if (value == nullptr) {
        const bool own = arg < code()->co_nlocalsplus - code()->co_nfreevars;
        return own ? raise_name_error(PyExc_UnboundLocalError, "cannot access local variable '%U' where it is not associated with a value", local_name(arg))
                   : raise_name_error(PyExc_NameError, "cannot access free variable '%U' where it is not associated with a value in enclosing scope", local_name(arg));
      }
      push(Py_NewRef(value));
      return Effect::next;
    }
    case Op::store_deref: return done(1, PyCell_Set(local(arg), peek(1)));
    case Op::load_global: return load_global();
    case Op::store_global: return done(1, PyDict_SetItem(function_parts(frame_)->func_globals, name(arg), peek(1)));
    case Op::delete_global:
      if (PyDict_DelItem(function_parts(frame_)->func_globals, name(arg)) == 0) return Effect::next;
      if (!PyErr_ExceptionMatches(PyExc_KeyError)) return Effect::raised;
      PyErr_Clear();
      return raise_name_error(PyExc_NameError, "name '%U' is not defined", name(arg));
    case Op::load_build_class: {
      PyObject* found = look_up(function_parts(frame_)->func_builtins, python::names().__build_class__);
      if (found == nullptr && !PyErr_Occurred()) PyErr_SetString(PyExc_NameError, "__build_class__ not found");
      return replace(0, found);
    }
    case Op::load_assertion_error: push(Py_NewRef(PyExc_AssertionError)); return Effect::next;
    case Op::import_name: return import_name();
    case Op::import_from: return import_from();
    default: return Effect::unknown;
  }
}

Effect RealInstruction::load_global() {
  PyObject* key = name(instruction_.arg);
  PyFunctionObject* parts = function_parts(frame_);
  PyObject* found = look_up(parts->func_globals, key);
  if (found == nullptr && !PyErr_Occurred()) found = look_up(parts->func_builtins, key);
  if (found == nullptr) return PyErr_Occurred() ? Effect::raised : raise_name_error(PyExc_NameError, "name '%U' is not defined", key);
  if (instruction_.flags & kPushNullBefore) push(nullptr);
  push(found);
  if (instruction_.flags & kPushNullAfter) push(nullptr);
  return Effect::next;
}

/// Stack: the level, the names to import from the module.
Effect RealInstruction::import_name() {
  PyFunctionObject* parts = function_parts(frame_);
  Ref key = Ref::steal(PyUnicode_InternFromString("__import__"));
  Ref importer = key ? Ref::steal(look_up(parts->func_builtins, key.get())) : Ref();
  if (!importer) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "__import__ not found");
    return Effect::raised;
  }
  return replace(2, PyObject_CallFunctionObjArgs(importer.get(), name(instruction_.arg), parts->func_globals, Py_None, peek(1), peek(2), nullptr));
}

Effect RealInstruction::import_from() {
  PyObject *module = peek(1), *wanted = name(instruction_.arg);
  PyObject* found = PyObject_GetAttr(module, wanted);
  if (found != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return replace(0, found);
  PyErr_Clear();
  // A submodule that is being imported further up is in sys.modules, not yet in its package.
  Ref package = Ref::steal(PyObject_GetAttr(module, python::names().__name__));
  if (!package) PyErr_Clear();
  if (package && PyUnicode_Check(package.get())) {
    Ref full = Ref::steal(PyUnicode_FromFormat("%U.%U", package.get(), wanted));
    found = full ? PyImport_GetModule(full.get()) : nullptr;
    if (found != nullptr || PyErr_Occurred()) return replace(0, found);
  }
  Ref file = Ref::steal(PyModule_Check(module) ? PyModule_GetFilenameObject(module) : nullptr);
  PyErr_Clear();
  Ref unknown = Ref::steal(PyUnicode_FromString("<unknown module name>"));
  if (!package || !PyUnicode_Check(package.get())) package = unknown;
  Ref text = Ref::steal(file ? PyUnicode_FromFormat("cannot import name %R from %R (%S)", wanted, package.get(), file.get())
                             : PyUnicode_FromFormat("cannot import name %R from %R (unknown location)", wanted, package.get()));
  if (text) PyErr_SetImportError(text.get(), package.get(), file.get());
  return Effect::raised;
}

}  // namespace tenon::python
