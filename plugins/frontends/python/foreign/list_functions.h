// Functions of torch that do the same to each tensor of a list (`torch._foreach_add_`): which function they stand for, and how it is called.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "python/foreign/foreign_names.h"

namespace tenon::python {

/// The arguments of a call on lists as the function of each tensor takes them: positional ones, and those that only go by name. Borrowed.
struct ListCall {
  std::vector<PyObject*> positional;
  std::vector<std::pair<const char*, PyObject*>> named;
};

bool is_of_lists(const ForeignFunction& function);

/// What torch calls for each tensor; empty where it has no such function.
Ref function_of_each(const ForeignFunction& function);

/// Nothing where an argument is not known.
std::optional<ListCall> list_call(const ForeignFunction& function, PyObject* args, PyObject* kwargs);

bool is_list_argument(PyObject* object);

/// The length that all lists share; nothing where they differ, or where there is none.
std::optional<Py_ssize_t> common_length(const ListCall& call);

}  // namespace tenon::python
