#include "python/compat/result_cache.h"

#include "python/objects/graph_break.h"
#include "python/objects/imported.h"

namespace tenon::python::compat {
namespace {

/// `lru_list_elem` and `lru_cache_object` of CPython's Modules/_functoolsmodule.c, in 3.11 to 3.13.
struct Link {
  PyObject_HEAD
  Link *previous, *next;
  Py_hash_t hash;
  PyObject *key, *result;
};
struct Cache {
  Link root;
  void* wrapper;
  int typed;
  PyObject* results;  // dict: of links where there is a limit, else of the results themselves
  Py_ssize_t hits;
  PyObject* function;
  Py_ssize_t limit, misses;
  PyObject* mark_of_names;
  PyTypeObject* link_type;
  PyObject* info_type;
  PyObject* attributes;
  PyObject* weak_references;
};

Cache* books_of(PyObject* cache) { return reinterpret_cast<Cache*>(cache); }

Ref made_cache(PyObject* function, Py_ssize_t limit) {
  Ref functools = checked(imported("functools"));
  Ref decorator = checked(limit < 0 ? PyObject_CallMethod(functools.get(), "lru_cache", "O", Py_None) : PyObject_CallMethod(functools.get(), "lru_cache", "n", limit));
  return checked(PyObject_CallOneArg(decorator.get(), function));
}

Ref key_by_books(const Cache& books, PyObject* positional, PyObject* named) {
  const Py_ssize_t count = PyTuple_GET_SIZE(positional), by_name = named ? PyDict_GET_SIZE(named) : 0;
  PyObject* only = count == 1 ? PyTuple_GET_ITEM(positional, 0) : nullptr;
  if (!books.typed && by_name == 0) return Ref::borrow(only != nullptr && (PyUnicode_CheckExact(only) || PyLong_CheckExact(only)) ? only : positional);
  Ref parts = checked(PyList_New(0));
  PyObject *name, *value;
  for (Py_ssize_t at = 0; at < count; ++at) checked(PyList_Append(parts.get(), PyTuple_GET_ITEM(positional, at)));
  if (by_name > 0) checked(PyList_Append(parts.get(), books.mark_of_names));
  for (Py_ssize_t position = 0; by_name > 0 && PyDict_Next(named, &position, &name, &value);) {
    checked(PyList_Append(parts.get(), name));
    checked(PyList_Append(parts.get(), value));
  }
  for (Py_ssize_t at = 0; books.typed && at < count; ++at) checked(PyList_Append(parts.get(), as_object(Py_TYPE(PyTuple_GET_ITEM(positional, at)))));
  for (Py_ssize_t position = 0; books.typed && by_name > 0 && PyDict_Next(named, &position, &name, &value);) checked(PyList_Append(parts.get(), as_object(Py_TYPE(value))));
  return checked(PyList_AsTuple(parts.get()));
}

PyObject* result_by_books(const Cache& books, PyObject* key) noexcept {
  PyObject* held = PyDict_GetItemWithError(books.results, key);
  if (held == nullptr) PyErr_Clear();
  return held == nullptr || books.limit < 0 ? held : reinterpret_cast<Link*>(held)->result;
}

/// Whether a cache with this limit keeps its books as they are read here.
bool is_as_known(Py_ssize_t limit) {
  PyObject* function = as_object(&PyDict_Type);
  Ref cache = made_cache(function, limit), positional = checked(Py_BuildValue("(())")), named = checked(Py_BuildValue("{si}", "name", 5));
  if (Py_TYPE(cache.get())->tp_basicsize != static_cast<Py_ssize_t>(sizeof(Cache))) return false;
  Cache& books = *books_of(cache.get());
  if (books.function != function || books.limit != limit || books.results == nullptr || !PyDict_CheckExact(books.results)) return false;
  Ref made = checked(PyObject_Call(cache.get(), positional.get(), named.get()));
  checked(PyObject_Call(cache.get(), positional.get(), named.get()));
  const bool counts = books.hits == 1 && books.misses == 1;
  return counts && result_by_books(books, key_by_books(books, positional.get(), named.get()).get()) == made.get();
}

bool all_as_known() {
  static const bool known = [] {
    try {
      return is_as_known(-1) && is_as_known(3);
    } catch (const PythonError&) {
      PyErr_Clear();
      return false;
    }
  }();
  return known;
}

/// Called by a cache instead of its function, once: `self` is a tuple of the cache, its function, and what to give.
PyObject* give(PyObject* self, PyObject*, PyObject*) {
  books_of(PyTuple_GET_ITEM(self, 0))->function = PyTuple_GET_ITEM(self, 1);  // the cache held it all along
  return Py_NewRef(PyTuple_GET_ITEM(self, 2));
}
PyMethodDef kGive = {"give", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(give)), METH_VARARGS | METH_KEYWORDS, nullptr};

}  // namespace

Ref key_in_cache(PyObject* cache, PyObject* positional, PyObject* named) { return key_by_books(*books_of(cache), positional, named); }

PyObject* result_in_cache(PyObject* cache, PyObject* key) noexcept { return books_of(cache)->limit == 0 ? nullptr : result_by_books(*books_of(cache), key); }

PyObject* function_of_cache(PyObject* cache) { return all_as_known() ? books_of(cache)->function : nullptr; }

Py_ssize_t size_limit_of_cache(PyObject* cache) { return books_of(cache)->limit; }

void call_cache_giving(PyObject* cache, PyObject* positional, PyObject* named, PyObject* given) {
  Cache& books = *books_of(cache);
  const Ref function = Ref::borrow(books.function), parts = checked(PyTuple_Pack(3, cache, function.get(), given)), giver = checked(PyCFunction_New(&kGive, parts.get()));
  books.function = giver.get();
  Ref result = Ref::steal(PyObject_Call(cache, positional, named));
  books.function = function.get();
  if (!result) throw_python_error();
}

}  // namespace tenon::python::compat
