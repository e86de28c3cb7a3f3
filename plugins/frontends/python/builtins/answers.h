// Python functions that the evaluator does not look into: those it answers itself, and those that end a graph.
#pragma once

#include <optional>

#include "python/evaluator/builtins.h"
#include "python/objects/ref.h"

namespace tenon::python {

class Evaluator;
struct Arguments;

inline constexpr const char* kKeptFromCompilers = "a function that torch keeps away from compilers (torch.compiler.disable) is called";

/// reprlib.recursive_repr keeps the addresses of objects that are being shown: the function below is called.
std::optional<Ref> call_past_recursion_guard(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// torch keeps functions of its own optimisers away from its own compiler, as soon as that is imported: such a one is called. Breaks for others.
std::optional<Ref> call_past_disabling(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// functools.singledispatch keeps what it found in a cache of weak references: it is asked for real, under guards on its registry.
std::optional<Ref> dispatch_on_class(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// The standard library's functions that make a class, or finish one (dataclasses, named tuples, enumerations), run for real (class_makers.cpp):
/// what they make is born in the capture. Breaks where they would run functions of the program.
std::optional<Ref> make_class_for_real(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// The metaclass of torch.autograd.Function numbers each class from a counter of torch's own: it runs for real on a class that is born in the
/// capture. Nobody but torch sees the numbers, which need only differ.
std::optional<Ref> number_autograd_function(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// inspect.signature of a Python function or of a method.
std::optional<Ref> inspect_signature(Evaluator& evaluator, PyObject* signature, Arguments arguments);
/// inspect.getattr_static: what is in the dicts of an object and its classes.
std::optional<Ref> static_attribute(Evaluator& evaluator, Arguments arguments);
/// re.compile and the module's functions make a pattern: for real, as it depends on its text and flags alone.
std::optional<Ref> compile_pattern(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// np.errstate.__enter__ and __exit__: the recorder handles errors of what is in between.
std::optional<Ref> enter_error_state(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> leave_error_state(Evaluator& evaluator, Arguments arguments);
/// torch.distributions' lazy property: of a class it is an object that only its class is asked of.
std::optional<Ref> read_lazy_property(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// A function that np.errstate decorates.
Ref call_in_error_state(Evaluator& evaluator, PyObject* function, Arguments& arguments);

/// logging.Logger.isEnabledFor: as the logger's cache says, which is filled here if need be.
std::optional<Ref> is_logged(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// importlib.util.find_spec: of a module that is imported, or that there is none of that name, which each call asks again.
std::optional<Ref> find_module(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// What a card is able to, which its properties say for the life of the process: of the current one where none is named, which is guarded.
std::optional<Ref> ask_of_card(Evaluator& evaluator, PyObject* function, Arguments arguments);
/// What C code of torch does, as the package's function of that name does it; breaks with `why_not` where that gives NotImplemented.
Ref call_in_python(Evaluator& evaluator, const char* name, Arguments arguments, const char* why_not, const char* of = "tenon._torch_in_python", const char* hint = kOutsideHint);

/// A function that is of no use in pieces (copy.deepcopy with its memo): evaluated to its end, or the call itself breaks.
std::optional<Ref> call_whole(Evaluator& evaluator, PyObject* function, Arguments arguments);

}  // namespace tenon::python
