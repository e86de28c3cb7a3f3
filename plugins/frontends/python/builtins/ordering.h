// sorted, min, max and list.sort over objects that say in Python how they compare: the comparisons run in the evaluator.
#pragma once

#include "python/evaluator/evaluator.h"

namespace tenon::python {

/// Whether ordering the object (or what a tuple or list of them holds) runs a comparison that is written in Python.
bool has_python_ordering(Evaluator& evaluator, PyObject* value, int depth = 0);

/// The result of `sorted`, `min` or `max` over such objects; empty for anything else, which the real function may do.
std::optional<Ref> order_by_evaluating(Evaluator& evaluator, PyObject* function, Arguments& arguments);

/// Sorts a list that was born in the call, when that needs the evaluator.
bool sort_by_evaluating(Evaluator& evaluator, PyObject* list, const Arguments& arguments);

}  // namespace tenon::python
