#include "python/stand_ins/late_text.h"

#include <algorithm>
#include <new>

#include "python/objects/imported.h"
#include "python/objects/object_type.h"
#include "python/stand_ins/stand_in_uses.h"
#include "python/stand_ins/stand_ins.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

struct TextStandIn {
  PyObject_HEAD
  LateText text;
};

PyObject* needs(PyObject* a, const char* use) {
  return guarded([&]() -> Ref {
    StandInUses::active().need_text(a, use);
    __builtin_unreachable();  // as in symbolic_scalar.cpp
  });
}

PyObject* either(PyObject* a, PyObject* b) { return is_late_text(a) ? a : b; }

PyObject* add(PyObject* a, PyObject* b) {
  const auto is_text = [](PyObject* object) { return PyUnicode_CheckExact(object) || (is_late_text(object) && late_text_of(object).type == &PyUnicode_Type); };
  if (!is_text(a) || !is_text(b)) return needs(either(a, b), "addition");
  return guarded([&]() -> Ref {
    static PyObject* const function = checked(PyObject_GetAttrString(checked(imported("operator")).get(), "add")).release();
    Ref sum = StandInUses::active().late_text(function, checked(PyTuple_Pack(2, a, b)).get());
    if (!sum) StandInUses::active().need_text(either(a, b), "addition");
    return sum;
  });
}

PyObject* other(PyObject* a, PyObject* b) { return needs(either(a, b), "an operator"); }
PyObject* item(PyObject* a, PyObject*) { return needs(a, "an item"); }
PyObject* compare(PyObject* a, PyObject*, int) { return needs(a, "a comparison"); }
PyObject* text(PyObject* a) { return needs(a, "the text"); }
PyObject* format(PyObject* a, PyObject*) { return needs(a, "the text"); }
PyObject* iterate(PyObject* a) { return needs(a, "iteration"); }
Py_ssize_t length(PyObject* a) {
  needs(a, "the length");
  return -1;
}
int contains(PyObject* a, PyObject*) {
  needs(a, "'in'");
  return -1;
}
int truth(PyObject* a) {
  needs(a, "the truth");
  return -1;
}
Py_hash_t hash(PyObject* a) {
  needs(a, "the hash");
  return -1;
}
PyObject* attribute(PyObject* a, PyObject* name) {
  auto* type = reinterpret_cast<PyObject*>(late_text_of(a).type);
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0) return Py_NewRef(type);
  // What str does not have either (`__torch_function__`, `__array__`) says nothing of the text.
  if (!PyObject_HasAttr(type, name)) return PyObject_GenericGetAttr(a, name);
  return needs(a, "an attribute");
}

void destroy(PyObject* self) {
  reinterpret_cast<TextStandIn*>(self)->text.~LateText();
  Py_TYPE(self)->tp_free(self);
}

PyNumberMethods number_methods() {
  PyNumberMethods n{};
  n.nb_add = add;
  n.nb_multiply = n.nb_remainder = n.nb_subtract = n.nb_true_divide = n.nb_floor_divide = n.nb_divmod = other;
  n.nb_power = [](PyObject* a, PyObject* b, PyObject*) { return other(a, b); };
  n.nb_negative = n.nb_absolute = n.nb_positive = n.nb_int = n.nb_float = [](PyObject* a) { return needs(a, "the value"); };
  n.nb_bool = truth;
  return n;
}

PyMethodDef kMethods[] = {{"__format__", format, METH_O, nullptr}, kUfuncMethod, {nullptr, nullptr, 0, nullptr}};

bool is_input(PyObject* object) { return is_symbolic_int(object) || is_symbolic_scalar(object) || (is_late_text(object) && late_text_of(object).source); }

void collect(PyObject* object, std::vector<PyObject*>& inputs) {
  if (is_input(object)) {
    if (std::ranges::find(inputs, object) == inputs.end()) inputs.push_back(object);
  } else if (is_late_text(object)) {
    collect(late_text_of(object).arguments.get(), inputs);
  } else if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(object); ++at) collect(PyTuple_GET_ITEM(object, at), inputs);
  }
}

}  // namespace

PyTypeObject* late_text_type() {
  return static_type<TextStandIn>("Text", [](PyTypeObject& type) {
    static PyNumberMethods numbers = number_methods();
    static PySequenceMethods sequence{};
    static PyMappingMethods mapping{};
    sequence.sq_contains = contains;
    sequence.sq_length = mapping.mp_length = length;
    mapping.mp_subscript = item;
    type.tp_doc = "Stands for a str that is made of numbers which vary.";
    type.tp_dealloc = destroy;
    type.tp_as_number = &numbers;
    type.tp_as_sequence = &sequence;
    type.tp_as_mapping = &mapping;
    type.tp_hash = hash;
    type.tp_repr = type.tp_str = text;
    type.tp_iter = iterate;
    type.tp_getattro = attribute;
    type.tp_richcompare = compare;
    type.tp_methods = kMethods;
  });
}

bool is_late_text(PyObject* object) { return Py_TYPE(object) == late_text_type(); }

const LateText& late_text_of(PyObject* text) { return reinterpret_cast<TextStandIn*>(text)->text; }

Ref make_late_text(LateText text) {
  auto* made = PyObject_New(TextStandIn, late_text_type());
  if (!made) throw PythonError();
  new (&made->text) LateText(std::move(text));
  return Ref::steal(reinterpret_cast<PyObject*>(made));
}

std::vector<PyObject*> inputs_of_text(PyObject* text) {
  std::vector<PyObject*> inputs;
  collect(text, inputs);
  return inputs;
}

Ref text_with(const LateText& text, const std::vector<std::pair<PyObject*, PyObject*>>& inputs) {
  Ref arguments = with_replaced(text.arguments.get(), [&](PyObject* item) -> Ref {
    if (const auto found = std::ranges::find(inputs, item, &std::pair<PyObject*, PyObject*>::first); found != inputs.end()) return Ref::borrow(found->second);
    return is_late_text(item) ? text_with(late_text_of(item), inputs) : Ref();
  });
  return checked(PyObject_CallObject(text.function.get(), arguments.get()));
}

}  // namespace tenon::python
