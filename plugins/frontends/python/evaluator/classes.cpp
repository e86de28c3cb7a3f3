// Classes that the program makes: they live as long as the capture, and cannot leave it.
#include <fmt/format.h>

#include "python/builtins/handlers.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/heap/names.h"

namespace tenon::python {

Ref Evaluator::run_class_body(PyObject* body) {
  if (!PyFunction_Check(body)) throw GraphBreak("a class body that is no function");
  Ref space = heap_.born(checked(PyDict_New()));
  std::unique_ptr<Frame> frame = bind(body, {});
  frame->class_namespace = space;
  frame->completion = Completion::stop;
  const std::size_t base = frames_.size();
  push_frame(std::move(frame));
  run(base);
  return space;
}

/// Creation runs what it finds of these, without the evaluator.
Ref Evaluator::make_class(PyObject* name, PyObject* bases, PyObject* space) {
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bases); ++at) {
    PyObject* base = PyTuple_GET_ITEM(bases, at);
    if (!PyType_Check(base) || Py_TYPE(base) != &PyType_Type) throw GraphBreak("a class with a metaclass is made");
    if (heap_.type_attribute(reinterpret_cast<PyTypeObject*>(base), names().__init_subclass__) != compat::type_lookup(&PyBaseObject_Type, names().__init_subclass__))
      throw GraphBreak("a class is made whose base has an __init_subclass__");
  }
  Py_ssize_t position = 0;
  PyObject *key, *value;
  while (PyDict_Next(space, &position, &key, &value)) {
    PyObject* hook = heap_.traits(value).python_class ? heap_.type_attribute(Py_TYPE(value), names().__set_name__) : nullptr;
    if (is_python_function(hook)) throw GraphBreak("a class is made whose attributes have a __set_name__");
    if (is_stand_in(value)) throw GraphBreak("a class is made that has a tensor");
  }
  Ref arguments = checked(PyTuple_Pack(3, name, bases, space));
  Ref type = heap_.born(checked(PyType_Type.tp_new(&PyType_Type, arguments.get(), nullptr)));
  heap_.keep_alive(type);
  return type;
}

Handled build_class(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.named() != 0 || arguments.positional() < 2) throw GraphBreak("a class statement with named arguments");
  const auto count = static_cast<Py_ssize_t>(arguments.positional()) - 2;
  Ref bases = checked(PyTuple_New(count));
  for (Py_ssize_t at = 0; at < count; ++at) PyTuple_SET_ITEM(bases.get(), at, Ref(arguments.values[at + 2]).release());
  for (Py_ssize_t at = 0; at < count; ++at)
    if (!PyType_Check(arguments[at + 2]) || Py_TYPE(arguments[at + 2]) != &PyType_Type) throw GraphBreak("a class with a metaclass is made");
  Ref space = evaluator.run_class_body(arguments[0]);
  return evaluator.make_class(arguments[1], bases.get(), space.get());
}

Handled type_call(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty() || !PyType_Check(arguments[0])) throw GraphBreak("type.__call__ without a class");
  Ref type = arguments.values.front();
  arguments.values.erase(arguments.values.begin());
  return evaluator.construct_plain(reinterpret_cast<PyTypeObject*>(type.get()), std::move(arguments), Completion::stop);
}

}  // namespace tenon::python
