// Attributes: found, read, stored and deleted as Python does, with what is read guarded.
#pragma once

#include <optional>

#include "python/guards/recorder.h"
#include "python/heap/heap.h"
#include "python/segments/frame.h"

namespace tenon::python {

class Evaluator;

/// Asks calls, exceptions.
class Attributes {
 public:
  Attributes(Evaluator& core, Heap& heap, Recorder& recorder) : core_(core), heap_(heap), recorder_(recorder) {}

  Ref load(PyObject* owner, PyObject* name);
  /// Empty instead of an AttributeError.
  std::optional<Ref> find(PyObject* owner, PyObject* name);
  /// A special method that the class of `owner` was found to have, bound to it, whatever kind of descriptor it is.
  Ref bind_special(PyObject* found, PyObject* owner, PyObject* name);
  /// object.__getattribute__(owner, name), which a `__getattribute__` written in Python falls back to.
  Ref generic(PyObject* owner, PyObject* name);
  void store(PyObject* owner, PyObject* name, PyObject* value);
  void remove(PyObject* owner, PyObject* name);
  void generic_remove(PyObject* owner, PyObject* name);
  void generic_store(PyObject* owner, PyObject* name, PyObject* value);
  void op_load_super_attr(Frame& f, const Instruction& i);

 private:
  // attributes_of_leaves.cpp
  static bool names_gradient(PyObject* name);
  static bool asks_for_gradient(PyObject* name);
  std::optional<Ref> of_autograd(PyObject* stand_in, PyObject* name);
  void store_gradient(PyObject* owner, PyObject* value);
  static bool names_hooks(PyObject* name);
  void store_hooks(PyObject* owner, PyObject* name, PyObject* value);
  void ask_for_gradient(PyObject* owner, PyObject* wanted);
  bool only_drops_gradients() const;
  Ref super_attribute(PyObject* super_object, PyObject* name);
  template <class Read>
  std::optional<Ref> unless_missing(Read read);
  std::optional<Ref> find_generic(PyObject* owner, PyObject* name);
  Ref cached_property(PyObject* property, PyObject* owner);
  std::optional<Ref> attribute_of_tensor_class(PyObject* stand_in, PyObject* found, PyTypeObject* type, PyObject* name);
  std::optional<Ref> attribute_of_real_tensor(PyObject* stand_in, PyObject* name);
  Ref dict_of_real_tensor(PyObject* stand_in);
  Ref attribute_of_module(PyObject* module, PyObject* name);
  Ref attribute_of_type(PyTypeObject* type, PyObject* name);
  Ref part_of_class(PyTypeObject* type, PyObject* descriptor, PyObject* name);
  Ref attribute_of_function(PyObject* function, PyObject* name);
  Ref attribute_of_method(PyObject* method, PyObject* name);
  void make_descriptor_known(PyObject* found, PyTypeObject* type, PyObject* name);
  Ref bind_descriptor(PyObject* found, PyObject* owner, PyTypeObject* type, PyObject* name, PyTypeObject* holder = nullptr);
  Ref data_descriptor(PyObject* found, PyObject* owner, PyTypeObject* type, PyObject* name, PyTypeObject* holder = nullptr);

  Evaluator& core_;
  Heap& heap_;
  Recorder& recorder_;
  Ref missing_;  // the AttributeError by which code said that the attribute looked for last is missing; empty where none was run
};

}  // namespace tenon::python
