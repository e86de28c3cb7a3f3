// Real tensors inside of what C code is given: the program must see stand-ins instead.
#include <string_view>

#include "python/heap/heap.h"

namespace tenon::python {
namespace {

constexpr int kDeepestHeld = 8;  // levels of nesting that are followed

/// Tells of objects that hand on what they hold: containers, their views, iterators and what those walk over.
bool may_hand_on(const TypeTraits& traits, PyObject* object) {
  return traits.container != Container::none || PyIter_Check(object) || PyDictViewSet_Check(object) || PyDictValues_Check(object) ||
         std::string_view(Py_TYPE(object)->tp_name) == "itertools._tee_dataobject";
}

struct TensorSearch {
  Heap& heap;
  int depth;
};

int find_tensor(PyObject* object, void* argument) {
  const TensorSearch& above = *static_cast<TensorSearch*>(argument);
  const TypeTraits& traits = above.heap.traits(object);
  if (traits.role == Recorder::Role::tensor) return 1;
  if (traits.role == Recorder::Role::scalar) return above.heap.source_of(object) ? 1 : 0;
  if (traits.atom || traits.identity || traits.role != Recorder::Role::other) return 0;
  TensorSearch inner{above.heap, above.depth + 1};
  if (PyExceptionInstance_Check(object)) return find_tensor(reinterpret_cast<PyBaseExceptionObject*>(object)->args, &inner);
  const traverseproc traverse = Py_TYPE(object)->tp_traverse;
  if (traverse == nullptr || !may_hand_on(traits, object)) return 0;
  return above.depth >= kDeepestHeld ? 1 : traverse(object, find_tensor, &inner);
}

}  // namespace

bool Heap::holds_tensor(PyObject* object) {
  TensorSearch from{*this, 0};
  return find_tensor(object, &from) != 0;
}

Ref Heap::substitute(PyObject* object, int depth) {
  const TypeTraits& traits = types_.of(object);
  if (traits.role == Recorder::Role::tensor || traits.role == Recorder::Role::scalar) return adopt(Ref::borrow(object));
  if (!traits.exact || depth >= kDeepestHeld) return Ref::borrow(object);
  if (traits.container == Container::dict) {
    Ref copy = checked(PyDict_New());
    bool changed = false;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(object, &position, &key, &value)) {
      Ref replaced = substitute(value, depth + 1);
      changed |= !replaced.is(value);
      checked(PyDict_SetItem(copy.get(), key, replaced.get()));
    }
    return changed ? copy : Ref::borrow(object);
  }
  if (traits.container != Container::list && traits.container != Container::tuple) return Ref::borrow(object);
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  const bool is_list = traits.container == Container::list;
  Ref copy = checked(is_list ? PyList_New(size) : PyTuple_New(size));
  bool changed = false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    Ref replaced = substitute(PySequence_Fast_GET_ITEM(object, i), depth + 1);
    changed |= !replaced.is(PySequence_Fast_GET_ITEM(object, i));
    if (is_list) PyList_SET_ITEM(copy.get(), i, replaced.release());
    else PyTuple_SET_ITEM(copy.get(), i, replaced.release());
  }
  return changed ? copy : Ref::borrow(object);
}

}  // namespace tenon::python
