#include "python/call/compiled_function.h"

#include <new>
#include <unordered_set>

#include "python/call/function_cache.h"
#include "python/session/errors.h"

namespace tenon::python {
namespace {

struct CompiledFunction {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak_references;
  PyObject* settings;  // the dict that the package made
  FunctionCache* cache;
};

CompiledFunction* as_function(PyObject* self) { return reinterpret_cast<CompiledFunction*>(self); }

/// All that are alive, for `reset`.
std::unordered_set<CompiledFunction*>& alive() {
  static auto* functions = new std::unordered_set<CompiledFunction*>();
  return *functions;
}

PyObject* call(PyObject* self, PyObject* const* values, std::size_t nargsf, PyObject* names) {
  CompiledFunction* function = as_function(self);
  if (!function->cache) {
    PyErr_SetString(PyExc_RuntimeError, "this compiled function has been torn down by the garbage collector");
    return nullptr;
  }
  Py_INCREF(self);  // the call may drop the last reference elsewhere
  PyObject* result = nullptr;
  try {
    result = function->cache->call(values, nargsf, names);
  } catch (const std::exception& failure) {
    if (!PyErr_Occurred()) set_error(ErrorClass::error, failure.what());
  }
  Py_DECREF(self);
  return result;
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"fn", "settings", nullptr};
  PyObject *callable = nullptr, *dict = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:CompiledFunction", const_cast<char**>(names), &callable, &dict)) return nullptr;
  if (!PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "a callable is needed, got %s", Py_TYPE(callable)->tp_name);
    return nullptr;
  }
  auto settings = read_settings(dict);
  if (!settings) return nullptr;
  auto* self = as_function(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = call;
  self->settings = Py_NewRef(dict);
  self->cache = new (std::nothrow) FunctionCache(Ref::borrow(callable), std::move(*settings));
  if (!self->cache) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  alive().insert(self);
  return reinterpret_cast<PyObject*>(self);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_function(self)->dict);
  Py_VISIT(as_function(self)->settings);
  return as_function(self)->cache ? as_function(self)->cache->traverse(visit, arg) : 0;
}

int clear(PyObject* self) {
  Py_CLEAR(as_function(self)->dict);
  Py_CLEAR(as_function(self)->settings);
  delete std::exchange(as_function(self)->cache, nullptr);
  return 0;
}

void destroy(PyObject* self) {
  PyObject_GC_UnTrack(self);
  alive().erase(as_function(self));
  if (as_function(self)->weak_references) PyObject_ClearWeakRefs(self);
  clear(self);
  Py_TYPE(self)->tp_free(self);
}

PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
  return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

PyObject* print(PyObject* self) {
  FunctionCache* cache = as_function(self)->cache;
  return cache ? PyUnicode_FromFormat("<tenon.compile of %R>", cache->callable()) : PyUnicode_FromString("<tenon.compile of nothing>");
}

/// What the wrapped callable has and `functools.update_wrapper` does not copy (`__code__`, `__defaults__`, attributes of objects).
PyObject* attribute(PyObject* self, PyObject* name) {
  PyObject* own = PyObject_GenericGetAttr(self, name);
  if (own || !PyErr_ExceptionMatches(PyExc_AttributeError) || !as_function(self)->cache) return own;
  PyErr_Clear();
  PyObject* callable = as_function(self)->cache->callable();
  if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) return Py_NewRef(callable);
  return PyObject_GetAttr(callable, name);
}

PyObject* guard_seconds(PyObject* self, PyObject* args) {
  PyObject* values = nullptr;
  int repeats = 0;
  if (!PyArg_ParseTuple(args, "O!i:guard_seconds", &PyTuple_Type, &values, &repeats)) return nullptr;
  FunctionCache* cache = as_function(self)->cache;
  const CallArguments call{PySequence_Fast_ITEMS(values), static_cast<std::size_t>(PyTuple_GET_SIZE(values)), nullptr};
  return PyFloat_FromDouble(cache ? cache->seconds_to_find(call, repeats) : -1);
}

/// Calls a function of the package's module about copies with the compiled function, and with an argument where there is one.
PyObject* as_package_does(const char* function, PyObject* self, PyObject* argument) {
  Ref module = Ref::steal(PyImport_ImportModule("tenon._pickling"));
  Ref name = Ref::steal(PyUnicode_FromString(function));
  return module && name ? PyObject_CallMethodObjArgs(module.get(), name.get(), self, argument, nullptr) : nullptr;
}

PyObject* shallow_copy(PyObject* self, PyObject*) { return as_package_does("shallow_copy", self, nullptr); }
PyObject* deep_copy(PyObject* self, PyObject* memo) { return as_package_does("deep_copy", self, memo); }
PyObject* reduce(PyObject* self, PyObject*) { return as_package_does("reduce", self, nullptr); }

PyMethodDef kMethods[] = {
    {"__copy__", shallow_copy, METH_NOARGS, "A compiled function of the same callable and settings, which compiles for itself."},
    {"__deepcopy__", deep_copy, METH_O, "A compiled function of a deep copy of the callable."},
    {"__reduce_ex__", reduce, METH_O, "Pickles by name where the name leads here, else as the callable and the settings."},
    {"guard_seconds", guard_seconds, METH_VARARGS, "Seconds that the guards of a call take: guard_seconds(args, repeats). -1 where no compiled code holds."},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* settings_of(PyObject* self, void*) { return as_function(self)->settings ? PyDict_Copy(as_function(self)->settings) : PyDict_New(); }

PyGetSetDef kProperties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                             {"_tenon_settings", settings_of, nullptr, "What it was compiled with, as a dict of the package.", nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject g_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

}  // namespace

bool add_compiled_function_type(PyObject* module) {
  g_type.tp_name = "tenon._tenon.CompiledFunction";
  g_type.tp_doc = "A compiled callable: CompiledFunction(fn, settings).";
  g_type.tp_basicsize = sizeof(CompiledFunction);
  g_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
  g_type.tp_new = make;
  g_type.tp_dealloc = destroy;
  g_type.tp_traverse = traverse;
  g_type.tp_clear = clear;
  g_type.tp_vectorcall_offset = offsetof(CompiledFunction, vectorcall);
  g_type.tp_call = PyVectorcall_Call;
  g_type.tp_dictoffset = offsetof(CompiledFunction, dict);
  g_type.tp_weaklistoffset = offsetof(CompiledFunction, weak_references);
  g_type.tp_descr_get = bind;
  g_type.tp_repr = print;
  g_type.tp_getattro = attribute;
  g_type.tp_getset = kProperties;
  g_type.tp_methods = kMethods;
  return PyModule_AddType(module, &g_type) == 0;
}

void clear_all_caches() {
  std::vector<Ref> functions;
  for (CompiledFunction* function : alive()) functions.push_back(Ref::borrow(reinterpret_cast<PyObject*>(function)));
  for (const Ref& function : functions)
    if (FunctionCache* cache = as_function(function.get())->cache) cache->clear();
}

}  // namespace tenon::python
