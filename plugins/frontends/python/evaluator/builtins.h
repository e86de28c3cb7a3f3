// What the evaluator asks of the builtins: how functions written in C are called in a capture, and Python functions that are not evaluated as
// they are written. The builtins are written with the evaluator, and define what is declared here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "python/objects/hints.h"
#include "python/objects/ref.h"

namespace tenon::python {

class Evaluator;
struct Arguments;
struct Builtin;
class WarningState;
/// A result; empty where a frame was pushed, or, of a question for a special case, where it is none.
using Handled = std::optional<Ref>;

/// A Python function that the evaluator does not look into.
struct FunctionRule {
  const char* reason = nullptr;  // the graph breaks here, with this reason
  const char* hint = kOutsideHint;
  bool answers_is_compiling = false;  // the call gives CaptureOptions::is_compiling
  Handled (*handler)(Evaluator&, Arguments) = nullptr;
  Handled (*closure_handler)(Evaluator&, PyObject* function, Arguments) = nullptr;  // the same, for one that needs the function
  Ref (*instead)(Evaluator&, PyObject* function, Arguments&) = nullptr;  // the Python function to call instead, with the arguments as that takes them
};

/// The rule for a Python function, or null for one that is evaluated like any other.
const FunctionRule* rule_of_function(PyObject* function);
/// The rule of the module that a Python function comes from, where none of that is evaluated, or null.
const FunctionRule* rule_of_module(PyObject* function);

/// The hint of a graph break at a call of what is written in C (a function, a type, an object), by where that comes from. Sets no exception.
const char* advice_on(PyObject* callable);

/// The entry of a C function, class or descriptor, or null when it is not in the table (then it is foreign, and breaks).
const Builtin* find_builtin(PyObject* callable);
/// Whether the object is a C function, bound or not, or a descriptor of one.
bool is_builtin_callable(PyObject* object);
/// Calls one.
Handled call_builtin(Evaluator& evaluator, PyObject* callable, Arguments arguments);
/// add() and pop() of a set of this capture in which a number varies, or is going to; empty for others.
Handled call_set_method(Evaluator& evaluator, PyObject* set, std::string_view name, const Arguments& arguments);
/// Whether calling an instance of this C type has no effect and calls no Python code by itself (operator.itemgetter, …).
bool is_pure_callable(PyTypeObject* type);
/// Whether the object is an operator.attrgetter, itemgetter or methodcaller, which the evaluator calls by their parts.
bool is_getter(PyObject* callable);
Ref call_getter(Evaluator& evaluator, PyObject* getter, Arguments& arguments);
/// The plain function inside a compiled one, borrowed, or null: calling a compiled function in a capture calls what it wraps.
PyObject* compiled_function_inside(PyObject* callable);
Handled builtin_isinstance(Evaluator&, Arguments&);

/// Calls the method of the built-in base class (`append`, `__setitem__`, `__ior__`, …) of a container that is older than the call, for real
/// and in the journal. Guards what the method depends on, as little as that is: an append needs no guard.
Ref change_older(Evaluator& evaluator, PyObject* container, const char* method, Arguments arguments);

/// An iterator for C code that asks the elements: its steps run in the evaluator, so that real tensors do not reach it.
Ref iterator_over_elements(Evaluator& evaluator, Ref iterator);
/// An iterator over an object that has `__getitem__` only, whose steps run in the evaluator.
Ref iterator_by_index(Evaluator& evaluator, PyObject* owner);
/// What `reversed` gives for an object that has `__getitem__` and `__len__` only, likewise.
Ref reverse_iterator_by_index(Evaluator& evaluator, PyObject* owner);
/// The type that the program sees of one of these two, or null for other objects.
PyTypeObject* type_of_index_iterator(PyObject* object);

/// `sizes[slice]` of a torch.Size; nothing where no size varies.
Handled slice_of_sizes(Evaluator& evaluator, PyObject* sizes, PyObject* slice);
/// Its sum with a tuple, on either side, or a multiple; nothing for other operators and operands, and where no size varies.
Handled operator_of_sizes(Evaluator& evaluator, int operation, PyObject* left, PyObject* right);
/// torch.Size(sequence); nothing for other classes and arguments, and where no size varies.
Handled make_sizes(Evaluator& evaluator, PyTypeObject* type, const Arguments& arguments);
/// Breaks before a call that a library makes while the graph runs, and that may warn, where what the program has done to the module warnings
/// since `at_start` is done after the graph, or where the program holds the list that records it.
void require_warnings_in_order(Evaluator& evaluator, const WarningState& at_start, const std::string& function);

/// The tensor that a call of torch.Tensor or torch.FloatTensor makes of numbers or sizes; nothing for other classes and arguments.
Handled make_legacy_tensor(Evaluator& evaluator, PyTypeObject* type, const Arguments& arguments);

}  // namespace tenon::python
