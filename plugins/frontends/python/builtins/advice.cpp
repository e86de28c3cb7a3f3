// What to do about calls of functions written in C that a capture cannot follow.
#include <string>
#include <string_view>

#include "python/builtins/c_arguments.h"
#include "python/evaluator/builtins.h"
#include "python/objects/hints.h"
#include "python/objects/names.h"
#include "python/segments/user_stack.h"

namespace tenon::python {
namespace {

struct Advice {
  std::string_view module;  // or the beginning of it
  std::string_view names;   // between blanks; empty: all
  const char* hint;
};

constexpr const char* kTimes = "take the time around the call of the compiled function, or pass it as an argument";
constexpr const char* kFiles = "read and write files outside of the compiled function, and pass what they hold as arguments";
constexpr const char* kSystem = "ask the system outside of the compiled function, and pass its answer as an argument";

constexpr Advice kAdvice[] = {
    {"builtins", " print ", "print outside of the compiled function, or return what is to be printed"},
    {"builtins", " open input ", kFiles},
    {"builtins", " exec eval compile ", "make the function outside of the compiled function, and pass it as an argument"},
    {"builtins", " breakpoint ", "call the function without tenon.compile to debug it"},
    {"_io", "", kFiles},
    {"io", "", kFiles},
    {"time", "", kTimes},
    {"datetime", "", kTimes},
    {"random", "", kDrawHint},
    {"_random", "", kDrawHint},
    {"posix", "", kSystem},
    {"_socket", "", kSystem},
    {"_thread", "", kConcurrentHint},
    {"_queue", "", kConcurrentHint},
    {"torch._C._distributed", "", "communicate outside of the compiled function: compile what computes between two exchanges"},
    {"torch._C", " _cuda_synchronize ", "synchronise outside of the compiled function: its results wait by themselves"},
};

/// The module of a function, or of the type of what a method belongs to.
std::string module_of(PyObject* callable) {
  const auto asked = [](PyObject* object) {
    const Ref name = Ref::steal(PyObject_GetAttr(object, names().__module__));
    if (!name) PyErr_Clear();
    return text_or_empty(name.get());
  };
  if (std::string of_function = asked(callable); !of_function.empty()) return of_function;
  if (PyObject* self = self_of(callable)) return asked(PyType_Check(self) ? self : reinterpret_cast<PyObject*>(Py_TYPE(self)));
  if (PyObject_TypeCheck(callable, &PyMethodDescr_Type)) return asked(reinterpret_cast<PyObject*>(PyDescr_TYPE(callable)));
  return {};
}

}  // namespace

const char* advice_on(PyObject* callable) {
  const std::string module = module_of(callable), name = " " + name_of(callable) + " ";
  for (const Advice& advice : kAdvice)
    if (module.starts_with(advice.module) && (advice.names.empty() || advice.names.find(name) != std::string_view::npos)) return advice.hint;
  return kAllowHint;
}

}  // namespace tenon::python
