// What a tensor says of its place in torch's autograd graph: `grad`, `grad_fn`, `is_leaf`.
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"

namespace tenon::python {
namespace {

constexpr const char *kHooksBefore = "_backward_hooks", *kHooksAfter = "_post_accumulate_grad_hooks";

bool is_called(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

/// `.grad` of an input is what the program has made it, else the real tensor's own, and an input as well. Empty for anything else: the recorder
/// answers.
std::optional<Ref> gradient_of_leaf(Heap& heap, Recorder& recorder, PyObject* stand_in, PyObject* name) {
  if (Ref given = heap.gradient_of(stand_in)) return given;
  PyObject* real = heap.real_of(stand_in);
  if (real == nullptr && recorder.keeps_gradient(stand_in)) return Ref::borrow(Py_None);
  Ref leaf = Ref::steal(real ? interned_attribute(real, "is_leaf") : nullptr);
  PyErr_Clear();
  if (!leaf) return std::nullopt;
  if (!leaf.is(Py_True)) throw GraphBreak("the gradient of a tensor that is no leaf is read");
  Ref value = checked(PyObject_GetAttr(real, name));
  return heap.enter(heap.sources().keyed(SourceKind::attribute, heap.source_of(real), name), value.get());
}

/// The code of a method of torch's, without what it is decorated with.
PyObject* code_of_method(const char* module, const char* owner, const char* method) {
  Ref function = checked(PyObject_GetAttrString(checked(PyObject_GetAttrString(checked(imported(module)).get(), owner)).get(), method));
  while (Ref inner = Ref::steal(PyObject_GetAttrString(function.get(), "__wrapped__"))) function = std::move(inner);
  PyErr_Clear();
  return PyFunction_Check(function.get()) ? Py_NewRef(PyFunction_GET_CODE(function.get())) : nullptr;
}

/// `grad_fn` and `is_leaf` of what has no history in the graph: of an input they are read of the real tensor, and guarded. Empty for anything else.
std::optional<Ref> place_in_autograd(Heap& heap, Recorder& recorder, PyObject* stand_in, PyObject* name) {
  if (recorder.has_history(stand_in) || recorder.operates_on_any(stand_in)) return std::nullopt;
  const bool asks_for_node = is_called(name, "grad_fn");
  PyObject* real = heap.real_of(stand_in);
  if (real == nullptr) return Ref::borrow(asks_for_node ? Py_None : Py_True);
  Ref value = checked(PyObject_GetAttr(real, name));
  if (asks_for_node && !value.is(Py_None)) throw GraphBreak("the program reads a node of the autograd graph", kAutogradHint);
  return heap.enter(heap.sources().keyed(SourceKind::attribute, heap.source_of(real), name), value.get());
}

/// The hooks that the program has put on a leaf: of an input what it has given it, else those of the real tensor, guarded.
std::optional<Ref> hooks_of_leaf(Heap& heap, Recorder& recorder, PyObject* stand_in, PyObject* name) {
  if (!recorder.keeps_gradient(stand_in)) return std::nullopt;
  if (Ref given = heap.hooks_of(stand_in, is_called(name, kHooksAfter))) return given;
  PyObject* real = heap.real_of(stand_in);
  if (real == nullptr) return Ref::borrow(Py_None);
  Ref value = checked(PyObject_GetAttr(real, name));
  return heap.enter(heap.sources().keyed(SourceKind::attribute, heap.source_of(real), name), value.get());
}

}  // namespace

bool Attributes::names_gradient(PyObject* name) { return is_called(name, "grad"); }
bool Attributes::names_hooks(PyObject* name) { return is_called(name, kHooksBefore) || is_called(name, kHooksAfter); }
bool Attributes::asks_for_gradient(PyObject* name) { return is_called(name, "requires_grad"); }

/// Whether the program is where torch asks for a gradient only to drop it.
bool Attributes::only_drops_gradients() const {
  static PyObject* const of_optimizers = code_of_method("torch.optim.optimizer", "Optimizer", "zero_grad");
  static PyObject* const of_modules = code_of_method("torch.nn", "Module", "zero_grad");
  PyObject* here = core_.frame().code->object.get();
  return here == of_optimizers || here == of_modules;
}

std::optional<Ref> Attributes::of_autograd(PyObject* stand_in, PyObject* name) {
  if (names_gradient(name)) {
    if (!only_drops_gradients()) heap_.note_gradient_read(stand_in);
    return gradient_of_leaf(heap_, recorder_, stand_in, name);
  }
  if (is_called(name, "grad_fn") && recorder_.has_history(stand_in)) throw Unbuildable(stand_in, "the program reads a node of the autograd graph");
  if (is_called(name, "grad_fn") || is_called(name, "is_leaf")) return place_in_autograd(heap_, recorder_, stand_in, name);
  if (names_hooks(name)) return hooks_of_leaf(heap_, recorder_, stand_in, name);
  return std::nullopt;
}

/// What torch refuses is left to it: another shape, dtype or device than the tensor's.
void Attributes::store_gradient(PyObject* owner, PyObject* value) {
  if (!recorder_.keeps_gradient(owner)) throw GraphBreak("a gradient is given to a tensor that is no leaf");
  if (value != Py_None && !(core_.is_stand_in(value) && recorder_.take_gradient(owner, value))) throw GraphBreak("what is no gradient of a tensor is made one");
  heap_.store_gradient(owner, value);
}

void Attributes::store_hooks(PyObject* owner, PyObject* name, PyObject* value) {
  const bool computed = heap_.real_of(owner) == nullptr && recorder_.has_history(owner);
  if (!recorder_.keeps_gradient(owner) || computed) throw GraphBreak("a tensor that is no leaf is given hooks", kHookHint);
  heap_.store_hooks(owner, is_called(name, kHooksAfter), name, value);
}

void Attributes::ask_for_gradient(PyObject* owner, PyObject* wanted) {
  if (!PyBool_Check(wanted)) throw GraphBreak("what is no bool is assigned to `requires_grad`");
  recorder_.ask_for_gradient(owner, wanted == Py_True);
}

}  // namespace tenon::python
