// What C functions do with their arguments: which they iterate, call back, look up and compare.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "python/evaluator/evaluator.h"
#include "python/objects/names.h"

namespace tenon::python {

/// The qualified name of a C callable; that of its type where it has none.
std::string name_of(PyObject* callable);
/// The object a bound C function belongs to, or null for plain functions and descriptors.
PyObject* self_of(PyObject* callable);

/// Positions of the arguments that a C callable iterates: from `first` up to `end`. All others it takes, or keeps, as they are.
struct Iterated {
  std::size_t first = 0, end = 0;
};

Iterated iterated_arguments(PyObject* callable, std::size_t positional);

/// Where the function is that C code calls back; none where it is given none.
std::optional<std::size_t> function_called_back(PyObject* callable, const Arguments& arguments);

/// Has the evaluator make Python-level iterators before C code asks for them.
void prepare_iterables(Evaluator& evaluator, PyObject* callable, Arguments& arguments);

/// Prepares what a method of a dict or set looks up: its first argument, or the items of all.
void prepare_lookups(Evaluator& evaluator, PyObject* self, PyObject* name, const Arguments& arguments);

/// Prepares what C code compares or hashes of the items that it is given.
void prepare_items(Evaluator& evaluator, PyObject* callable, PyObject* iterable);

}  // namespace tenon::python
