#include "python/evaluator/attributes.h"

#include <fmt/format.h>

#include "python/compat/object_layout.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

bool is_data_descriptor(PyObject* found) { return Py_TYPE(found)->tp_descr_set != nullptr; }

bool is_one_of(PyObject* name, std::initializer_list<const char*> texts) {
  for (const char* text : texts)
    if (PyUnicode_CompareWithASCIIString(name, text) == 0) return true;
  return false;
}

PyTypeObject* thread_local_type() {
  static PyObject* const type = checked(PyObject_GetAttrString(checked(imported("_thread")).get(), "_local")).release();
  return reinterpret_cast<PyTypeObject*>(type);
}

/// An attribute of a threading.local, not of a subclass, which has an `__init__`: an item of the calling thread's dict. Empty where there is none.
std::optional<Ref> attribute_of_thread_local(Heap& heap, PyObject* owner, PyObject* name) {
  Ref dict = heap.enter(heap.sources().keyed(SourceKind::attribute, heap.source_of(owner), names().__dict__), checked(PyObject_GetAttr(owner, names().__dict__)).get());
  if (name == names().__dict__) return dict;
  if (Ref value = heap.dict_item(dict.get(), name)) return value;
  return std::nullopt;
}

/// What an alias (`list[int]`, `int | str`) is made of: a member that its class finds before it asks the class that the alias is of.
std::optional<Ref> part_of_alias(Heap& heap, PyObject* owner, PyObject* name) {
  const std::string_view type = Py_TYPE(owner)->tp_name;
  if ((type != "types.GenericAlias" && type != "types.UnionType") || !is_one_of(name, {"__args__", "__origin__"})) return std::nullopt;
  PyObject* member = compat::type_lookup(Py_TYPE(owner), name);
  if (member == nullptr || Py_TYPE(member) != &PyMemberDescr_Type) return std::nullopt;
  Ref value = checked(PyObject_GetAttr(owner, name));
  const SourceId source = heap.source_of(owner);
  return source ? heap.enter(heap.sources().keyed(SourceKind::member, source, member), value.get()) : heap.adopt(std::move(value));
}

/// What a super object, which may be older than the call, is made of.
Ref member_of_super(Heap& heap, PyObject* object, const char* name) {
  PyObject* member = compat::type_lookup(&PySuper_Type, checked(PyUnicode_InternFromString(name)).get());
  Ref value = checked(PyObject_GetAttrString(object, name));
  const SourceId source = heap.source_of(object);
  return source ? heap.enter(heap.sources().keyed(SourceKind::member, source, member), value.get()) : value;
}

/// Whether the next instructions read of an array's flags what follows from its layout: no guard looks at whose memory it has.
bool asks_for_layout_next(const Frame& frame) {
  const std::vector<Instruction>& instructions = frame.code->instructions;
  const Instruction& next = instructions[frame.next];
  if (next.op == Op::load_attr) return is_among(PyUnicode_AsUTF8(frame.code->name(next.arg)), " c_contiguous f_contiguous contiguous writeable fnc forc ");
  if (next.op != Op::load_const || instructions[frame.next + 1].op != Op::binary_subscr) return false;
  PyObject* key = frame.code->constant(next.arg);
  return PyUnicode_Check(key) && is_among(PyUnicode_AsUTF8(key), " C_CONTIGUOUS F_CONTIGUOUS WRITEABLE C F W ");
}

/// Torch's getters of what an autograd node has saved run the hooks of the program that unpack it.
bool unpacks_saved_tensors(PyObject* descriptor, PyObject* name) {
  if (Py_TYPE(descriptor) != &PyGetSetDescr_Type) return false;
  const std::string text = name_text(name);
  return text.starts_with("_saved_") || text == "saved_tensors";
}

/// What a module's own `__getattr__` gives (PEP 562). One that warns does that for real, at a break.
Ref ask_module(PyObject* module, PyObject* name) {
  if (PyDict_GetItemWithError(PyModule_GetDict(module), names().__getattr__) == nullptr) return checked(PyObject_GetAttr(module, name));
  Ref catching = checked(PyObject_GetAttrString(checked(imported("warnings")).get(), "catch_warnings")), how = checked(Py_BuildValue("{sOss}", "record", Py_True, "action", "always"));
  Ref scope = checked(PyObject_VectorcallDict(catching.get(), nullptr, 0, how.get())), issued = checked(PyObject_CallMethod(scope.get(), "__enter__", nullptr));
  Ref value = Ref::steal(PyObject_GetAttr(module, name)), exception = value ? Ref() : compat::take_exception();
  checked(PyObject_CallMethod(scope.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  if (PyList_GET_SIZE(issued.get()) > 0) throw GraphBreak(fmt::format("module '{}' warns of its attribute '{}'", PyModule_GetName(module), name_text(name)));
  if (value) return value;
  compat::set_exception(std::move(exception));
  throw PythonError();
}

/// What Python's own lookup says, with the words of `type`.
Ref missing_attribute(PyObject* owner, PyTypeObject* type, PyObject* name) {
  if (PyModule_Check(owner)) PyErr_Format(PyExc_AttributeError, "module '%s' has no attribute '%U'", PyModule_GetName(owner), name);
  else if (PyType_Check(owner)) PyErr_Format(PyExc_AttributeError, "type object '%.100s' has no attribute '%U'", reinterpret_cast<PyTypeObject*>(owner)->tp_name, name);
  else PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", type->tp_name, name);
  return compat::take_exception();
}

/// Any AttributeError that leaves a lookup says of which object and name, unless whoever raised it did.
void name_missing(PyObject* exception, PyObject* owner, PyObject* name) {
  static PyObject* const object = checked(PyUnicode_InternFromString("obj")).release();
  for (PyObject* part : {names().name, object})
    if (!checked(PyObject_GetAttr(exception, part)).is(Py_None)) return;
  checked(PyObject_SetAttr(exception, names().name, name));
  checked(PyObject_SetAttr(exception, object, owner));
}

}  // namespace

/// Turns a failed read into "not there", when that is what the exception says, which is kept for whoever raises it after all.
template <class Read>
std::optional<Ref> Attributes::unless_missing(Read read) {
  try {
    return read();
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw;
    missing_ = compat::take_exception();
    return std::nullopt;
  }
}

Ref Attributes::load(PyObject* owner, PyObject* name) {
  if (std::optional<Ref> found = find(owner, name)) return std::move(*found);
  Ref said = std::exchange(missing_, {});
  const bool stands_in = core_.is_stand_in(owner) || heap_.is_number(owner);
  Ref exception = said && !stands_in ? std::move(said) : missing_attribute(owner, core_.visible_type(owner), name);
  name_missing(exception.get(), owner, name);
  compat::set_exception(std::move(exception));
  throw PythonError();
}

std::optional<Ref> Attributes::find(PyObject* owner, PyObject* name) {
  missing_ = {};
  PyTypeObject* type = Py_TYPE(owner);
  const TypeTraits& traits = heap_.traits(type);
  if (traits.role == Recorder::Role::stand_in) {
    PyTypeObject* apparent = recorder_.apparent_type(owner);
    if (name == names().__class__) return Ref::borrow(as_object(apparent));
    if (name == names().flags && !asks_for_layout_next(*core_.frames().back())) throw GraphBreak("flags of an array, which say more than how it lies");
    core_.mark_position();
    if (heap_.traits(apparent).python_class) {
      heap_.guard_lookup(apparent);
      PyObject* of_class = heap_.type_attribute(apparent, name);
      // Of a class between (torch.nn.Parameter copies itself as a parameter), or the program's.
      if (of_class != nullptr && (of_class != compat::type_lookup(type, name) || !recorder_.is_own(of_class))) return attribute_of_tensor_class(owner, of_class, apparent, name);
      if (of_class == nullptr)
        if (PyObject* fallback = heap_.type_attribute(apparent, names().__getattr__); fallback != nullptr && is_python_function(fallback)) {
          if (std::optional<Ref> own = attribute_of_real_tensor(owner, name)) return own;
          return unless_missing([&] { return core_.call_now(fallback, {owner, name}); });
        }
    }
    if (std::optional<Ref> answer = of_autograd(owner, name)) return answer;
    if (name == names().__dict__) return dict_of_real_tensor(owner);
    if (std::optional<Ref> found = unless_missing([&] { return heap_.adopt(checked(PyObject_GetAttr(owner, name))); })) return found;
    return attribute_of_real_tensor(owner, name);
  }
  if (heap_.was_raised(owner)) {
    if (PyTraceBack_Check(owner)) throw Unbuildable(owner, "the traceback of an exception is read");
    if (name == names().__traceback__) return core_.exceptions().traceback_of(owner);
  }
  if (PyFrame_Check(owner) && !is_one_of(name, {"f_code", "f_globals", "f_builtins"})) throw GraphBreak("a frame is asked for its state");
  if (traits.atom) return unless_missing([&] { return heap_.adopt(checked(PyObject_GetAttr(owner, name))); });
  // Modules of a class of their own (torch.backends.cudnn) go the way of any instance.
  if (PyModule_CheckExact(owner)) return unless_missing([&] { return attribute_of_module(owner, name); });
  if (traits.python_class) heap_.guard_lookup(type);
  const bool looks_up_itself = PyType_Check(owner) && type->tp_getattro != PyType_Type.tp_getattro && is_python_function(heap_.type_attribute(type, names().__getattribute__));
  if (PyType_Check(owner) && !looks_up_itself) return unless_missing([&] { return attribute_of_type(reinterpret_cast<PyTypeObject*>(owner), name); });
  if (type == &PySuper_Type) return unless_missing([&] { return super_attribute(owner, name); });
  if (PyFunction_Check(owner)) return unless_missing([&] { return attribute_of_function(owner, name); });
  if (PyMethod_Check(owner)) return unless_missing([&] { return attribute_of_method(owner, name); });

  if (type->tp_getattro != PyObject_GenericGetAttr) {
    PyObject* getattribute = heap_.type_attribute(type, names().__getattribute__);
    if (is_python_function(getattribute)) {
      if (std::optional<Ref> found = unless_missing([&] { return core_.call_now(getattribute, {owner, name}); })) return found;
      PyObject* fallback = heap_.type_attribute(type, names().__getattr__);
      if (!is_python_function(fallback)) return std::nullopt;
      return unless_missing([&] { return core_.call_now(fallback, {owner, name}); });
    }
    // `__getattr__` alone gives a type this slot, too; everything else is C code that may read anything.
    const bool only_getattr = (traits.python_class && getattribute == compat::type_lookup(&PyBaseObject_Type, names().__getattribute__)) ||
                              (PyModule_Check(owner) && getattribute == compat::type_lookup(&PyModule_Type, names().__getattribute__));
    if (std::optional<Ref> part = part_of_alias(heap_, owner, name)) return part;
    if (!only_getattr) {
      if (type == thread_local_type() && heap_.source_of(owner) && !compat::type_lookup(type, name)) return attribute_of_thread_local(heap_, owner, name);
      if (heap_.source_of(owner)) throw GraphBreak(fmt::format("attribute '{}' of a {}, which looks it up in C code", name_text(name), type->tp_name));
      return unless_missing([&] { return heap_.adopt(checked(PyObject_GetAttr(owner, name))); });
    }
  }
  if (std::optional<Ref> found = find_generic(owner, name)) return found;
  PyObject* fallback = heap_.type_attribute(type, names().__getattr__);
  if (fallback == nullptr) return std::nullopt;
  if (!is_python_function(fallback)) throw GraphBreak(fmt::format("attribute '{}' of a {}: its __getattr__ is C code", name_text(name), type->tp_name));
  return unless_missing([&] { return core_.call_now(fallback, {owner, name}); });
}

Ref Attributes::generic(PyObject* owner, PyObject* name) {
  missing_ = {};
  if (std::optional<Ref> found = find_generic(owner, name)) return std::move(*found);
  Ref said = std::exchange(missing_, {});
  Ref exception = said ? std::move(said) : missing_attribute(owner, Py_TYPE(owner), name);
  name_missing(exception.get(), owner, name);
  compat::set_exception(std::move(exception));
  throw PythonError();
}

Ref Attributes::bind_special(PyObject* found, PyObject* owner, PyObject* name) {
  PyTypeObject* type = Py_TYPE(owner);
  return is_data_descriptor(found) ? data_descriptor(found, owner, type, name) : bind_descriptor(found, owner, type, name);
}

/// Plain misses, which modules with a `__getattr__` have at every parameter, cost no exception.
std::optional<Ref> Attributes::find_generic(PyObject* owner, PyObject* name) {
  PyTypeObject* type = Py_TYPE(owner);
  PyObject* found = heap_.type_attribute(type, name);
  const Ref held = Ref::borrow(found);  // what runs on the way may take it from the class
  if (name == names().__class__ && found == compat::type_lookup(&PyBaseObject_Type, name)) return Ref::borrow(reinterpret_cast<PyObject*>(core_.visible_type(owner)));
  if (found != nullptr && heap_.traits(found).python_class) heap_.guard_special_methods(Py_TYPE(found));  // what kind of descriptor it is, if any
  if (found != nullptr && is_data_descriptor(found)) return unless_missing([&] { return data_descriptor(found, owner, type, name); });
  if (PyObject* dict = heap_.attributes_of(owner))
    if (Ref value = heap_.dict_item(dict, name)) return value;
  if (found == nullptr) return std::nullopt;
  return unless_missing([&] { return bind_descriptor(found, owner, type, name); });
}

/// A descriptor of a class written in Python is an object with a state of its own, which its methods read.
void Attributes::make_descriptor_known(PyObject* found, PyTypeObject* type, PyObject* name) {
  if (heap_.is_born(found)) return;
  heap_.make_known(found, heap_.sources().keyed(SourceKind::type_attribute, heap_.sources().constant(reinterpret_cast<PyObject*>(type)), name));
}

Ref Attributes::data_descriptor(PyObject* found, PyObject* owner, PyTypeObject* type, PyObject* name, PyTypeObject* holder) {
  if (PyObject_TypeCheck(found, &PyProperty_Type)) {
    Ref getter = checked(PyObject_GetAttr(found, names().fget));
    if (getter.is(Py_None)) throw GraphBreak(fmt::format("the property '{}' cannot be read", name_text(name)));
    heap_.make_known(getter.get(), heap_.sources().constant(getter.get()));
    return core_.call_now(getter.get(), {owner});
  }
  PyObject* getter = heap_.type_attribute(Py_TYPE(found), names().__get__);
  if (is_python_function(getter)) {
    make_descriptor_known(found, holder ? holder : type, name);
    return core_.call_now(getter, {found, owner, reinterpret_cast<PyObject*>(type)});
  }
  if (getter == nullptr) throw GraphBreak(fmt::format("attribute '{}' has a setter and no getter", name_text(name)));
  if (name == names().__dict__) {
    if (PyObject* dict = heap_.attributes_of(owner)) return heap_.source_of(dict) ? Ref::borrow(dict) : heap_.adopt(Ref::borrow(dict));
  }
  if (unpacks_saved_tensors(found, name)) throw GraphBreak("a saved tensor is read, which its hooks unpack");
  const SourceId source = heap_.wrote_attribute(owner, found) ? SourceId{} : heap_.source_of(owner);
  Ref value = Ref::steal(Py_TYPE(found)->tp_descr_get(found, owner, reinterpret_cast<PyObject*>(type)));
  if (!value && source && compat::is_slot(found)) heap_.guards().add(GuardKind::slot_empty, source, found);
  if (!value) throw_python_error();
  return source ? heap_.enter(heap_.sources().keyed(SourceKind::member, source, found), value.get()) : heap_.adopt(std::move(value));
}

Ref Attributes::bind_descriptor(PyObject* found, PyObject* owner, PyTypeObject* type, PyObject* name, PyTypeObject* holder) {
  if (holder == nullptr) holder = type;
  PyObject* type_object = reinterpret_cast<PyObject*>(type);
  const auto definition = [&](Ref part) {
    heap_.make_known(part.get(), heap_.sources().constant(part.get()));
    return part;
  };
  if (PyFunction_Check(found)) {
    if (!heap_.is_born(found)) definition(Ref::borrow(found));
    return owner ? heap_.born(checked(PyMethod_New(found, owner))) : Ref::borrow(found);
  }
  if (Py_TYPE(found) == &PyStaticMethod_Type) return definition(checked(PyObject_GetAttr(found, names().dunder_func)));
  if (Py_TYPE(found) == &PyClassMethod_Type) {
    Ref function = definition(checked(PyObject_GetAttr(found, names().dunder_func)));
    // Until 3.12 it binds what it wraps, whatever that is.
    if (!PyFunction_Check(function.get()) && function.type()->tp_descr_get != nullptr) throw GraphBreak("a classmethod of a descriptor");
    return heap_.born(checked(PyMethod_New(function.get(), type_object)));
  }
  if (owner == nullptr && PyObject_TypeCheck(found, &PyProperty_Type)) return definition(Ref::borrow(found));
  const bool changeable = heap_.traits(holder).python_class && !heap_.is_born(as_object(holder)) && !heap_.wrote_along_bases(holder, name);
  const SourceId place = changeable ? heap_.sources().keyed(SourceKind::type_attribute, heap_.sources().constant(as_object(holder)), name) : SourceId{};
  if (Py_TYPE(found)->tp_descr_get != nullptr) {
    if (owner != nullptr && Py_TYPE(found) == library_types().cached_property) return cached_property(found, owner);
    PyObject* getter = heap_.type_attribute(Py_TYPE(found), names().__get__);
    if (is_python_function(getter)) {
      if (place) heap_.make_known(found, place);
      return core_.call_now(getter, {found, owner ? owner : Py_None, type_object});
    }
    Ref bound = checked(Py_TYPE(found)->tp_descr_get(found, owner, type_object));
    const bool of_definition = PyMethod_Check(bound.get()) && PyMethod_GET_FUNCTION(bound.get()) == found && !place;
    if (of_definition && !heap_.is_born(found)) definition(Ref::borrow(found));  // a function of a class of Cython
    return heap_.adopt(std::move(bound));
  }
  return place ? heap_.enter(place, found) : heap_.adopt(Ref::borrow(found));
}

/// functools.cached_property, without the lock that 3.11 holds around it.
Ref Attributes::cached_property(PyObject* property, PyObject* owner) {
  Ref function = checked(PyObject_GetAttr(property, names().func)), name = checked(PyObject_GetAttr(property, names().attrname));
  heap_.make_known(function.get(), heap_.sources().constant(function.get()));
  PyObject* dict = heap_.attributes_of(owner);
  if (dict == nullptr || !PyUnicode_Check(name.get())) throw GraphBreak("a cached property without a place for its value");
  Ref value = core_.call_now(function.get(), {owner});
  if (!heap_.source_of(dict)) heap_.adopt(Ref::borrow(dict));
  heap_.store_key(dict, name.get(), value.get());
  return value;
}

/// By the rules of any class.
std::optional<Ref> Attributes::attribute_of_tensor_class(PyObject* stand_in, PyObject* found, PyTypeObject* type, PyObject* name) {
  if (is_data_descriptor(found)) return unless_missing([&] { return data_descriptor(found, stand_in, type, name); });
  if (std::optional<Ref> own = attribute_of_real_tensor(stand_in, name)) return own;
  return unless_missing([&] { return bind_descriptor(found, stand_in, type, name); });
}

/// Attributes that somebody set on a tensor that is an input: stand-ins do not have them.
std::optional<Ref> Attributes::attribute_of_real_tensor(PyObject* stand_in, PyObject* name) {
  PyObject* real = heap_.real_of(stand_in);
  PyObject* dict = real ? heap_.attributes_of(real) : nullptr;
  if (dict == nullptr) return std::nullopt;
  Ref value = heap_.dict_item(dict, name);
  return value ? std::optional<Ref>(std::move(value)) : std::nullopt;
}

/// The `__dict__` of a stand-in is none of the program's.
Ref Attributes::dict_of_real_tensor(PyObject* stand_in) {
  PyObject* real = heap_.real_of(stand_in);
  PyObject* dict = real ? heap_.attributes_of(real) : nullptr;
  if (dict == nullptr) throw GraphBreak("the __dict__ of a tensor is read");
  return Ref::borrow(dict);
}

Ref Attributes::attribute_of_module(PyObject* module, PyObject* name) {
  PyObject* dict = heap_.attributes_of(module);
  // A module may be given another class.
  if (const SourceId source = heap_.source_of(module)) heap_.guards().add(GuardKind::type_is, source, as_object(Py_TYPE(module)));
  if (name == names().__dict__) return Ref::borrow(dict);
  if (Ref value = heap_.dict_item(dict, name)) return value;
  heap_.dict_item(dict, names().__getattr__);
  // What the module's `__getattr__` gives for a name is taken as fixed while the name stays missing.
  Ref value = ask_module(module, name);
  return heap_.enter(heap_.sources().constant(value.get()), value.get());
}

/// What a class keeps in C: its name, its bases and their order, the dict of its attributes.
Ref Attributes::part_of_class(PyTypeObject* type, PyObject* descriptor, PyObject* name) {
  PyObject* type_object = as_object(type);
  Ref value = checked(PyObject_GetAttr(type_object, name));
  if (Py_TYPE(value.get()) == &PyDictProxy_Type) {
    heap_.enter_class_dict(type);
    return heap_.born(value);
  }
  const bool may_change = heap_.traits(type).python_class && !heap_.is_born(type_object);
  return may_change ? heap_.enter(heap_.sources().keyed(SourceKind::member, heap_.sources().constant(type_object), descriptor), value.get()) : heap_.adopt(std::move(value));
}

Ref Attributes::attribute_of_type(PyTypeObject* type, PyObject* name) {
  PyObject* type_object = reinterpret_cast<PyObject*>(type);
  PyTypeObject* meta = Py_TYPE(type);
  if (name == names().__class__) return Ref::borrow(reinterpret_cast<PyObject*>(meta));
  if (heap_.traits(meta).python_class && heap_.source_of(type_object)) heap_.guards().add(GuardKind::type_is, heap_.source_of(type_object), as_object(meta));
  PyObject* of_meta = heap_.type_attribute(meta, name);
  if (of_meta != nullptr && is_data_descriptor(of_meta)) {
    if (is_one_of(name, {"__abstractmethods__", "__annotations__"})) throw GraphBreak(fmt::format("'{}' of a class", name_text(name)));
    if (Py_TYPE(of_meta) != &PyGetSetDescr_Type && Py_TYPE(of_meta) != &PyMemberDescr_Type) return data_descriptor(of_meta, type_object, meta, name);
    return part_of_class(type, of_meta, name);
  }
  PyObject* found = heap_.type_attribute(type, name);
  const Ref held = Ref::borrow(found);
  if (found != nullptr && PyType_IsSubtype(meta, library_types().enum_meta)) {
    Ref value = checked(PyObject_GetAttr(type_object, name));
    if (Py_TYPE(value.get()) == type) return value;  // a member: guarded through the type's attribute
  }
  if (found != nullptr) return bind_descriptor(found, nullptr, type, name);
  if (of_meta != nullptr) {
    if (heap_.traits(meta).python_class) return bind_descriptor(of_meta, type_object, meta, name);
    return heap_.adopt(checked(PyObject_GetAttr(type_object, name)));
  }
  if (PyType_IsSubtype(meta, library_types().enum_meta)) {
    Ref value = checked(PyObject_GetAttr(type_object, name));  // 3.11 finds members in EnumMeta.__getattr__
    return heap_.enter(heap_.sources().constant(value.get()), value.get());
  }
  PyObject* fallback = heap_.type_attribute(meta, names().__getattr__);
  if (is_python_function(fallback)) return core_.call_now(fallback, {type_object, name});
  PyErr_Format(PyExc_AttributeError, "type object '%.100s' has no attribute '%U'", type->tp_name, name);
  throw PythonError();
}

Ref Attributes::attribute_of_function(PyObject* function, PyObject* name) {
  const SourceId source = heap_.source_of(function);
  if (name == names().__dict__) {
    PyObject* dict = heap_.attributes_of(function);
    if (dict == nullptr) throw GraphBreak("the __dict__ of a function that cannot have one");
    return heap_.source_of(dict) ? Ref::borrow(dict) : heap_.adopt(Ref::borrow(dict));
  }
  if (PyObject* dict = heap_.attributes_of(function))
    if (Ref value = heap_.dict_item(dict, name)) return value;
  Ref value = checked(PyObject_GetAttr(function, name));
  if (!source) return heap_.adopt(std::move(value));
  if (PyCFunction_Check(value.get()) || Py_TYPE(value.get()) == compat::method_wrapper_type()) return heap_.adopt(std::move(value));
  return heap_.enter(heap_.sources().keyed(SourceKind::attribute, source, name), value.get());
}

Ref Attributes::attribute_of_method(PyObject* method, PyObject* name) {
  if (name == names().dunder_func) return heap_.part(SourceKind::method_function, method, PyMethod_GET_FUNCTION(method));
  if (name == names().__self__) return heap_.part(SourceKind::method_self, method, PyMethod_GET_SELF(method));
  Ref function = heap_.part(SourceKind::method_function, method, PyMethod_GET_FUNCTION(method));
  return load(function.get(), name);
}

Ref Attributes::super_attribute(PyObject* super_object, PyObject* name) {
  if (name == names().__class__) return Ref::borrow(as_object(&PySuper_Type));
  // The same walk as super's own, so that the functions found can be evaluated.
  Ref start = member_of_super(heap_, super_object, "__thisclass__");
  Ref self = member_of_super(heap_, super_object, "__self__");
  Ref self_class = member_of_super(heap_, super_object, "__self_class__");
  auto* type = reinterpret_cast<PyTypeObject*>(self_class.get());
  heap_.guard_bases(type);
  PyObject* order = type->tp_mro;
  Py_ssize_t at = 0;
  const Py_ssize_t count = PyTuple_GET_SIZE(order);
  while (at < count && PyTuple_GET_ITEM(order, at) != start.get()) ++at;
  for (++at; at < count; ++at) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, at));
    PyObject* found = PyDict_GetItemWithError(compat::type_dict(base), name);
    heap_.type_attribute(base, name);  // which changes, too, when a base that has none gets one
    if (found == nullptr) continue;
    PyObject* owner = self.is(self_class.get()) ? nullptr : self.get();
    if (owner != nullptr && is_data_descriptor(found)) return data_descriptor(found, owner, type, name, base);
    return bind_descriptor(found, owner, type, name, base);
  }
  return heap_.adopt(checked(PyObject_GetAttr(super_object, name)));
}

void Attributes::op_load_super_attr(Frame& f, const Instruction& i) {
  Ref self = core_.pop(), type = core_.pop(), callable = core_.pop();
  if (!callable.is(reinterpret_cast<PyObject*>(&PySuper_Type))) throw GraphBreak("'super' has been replaced");
  Arguments arguments;
  arguments.values = {type, self};
  Ref object = heap_.born(core_.calls().call_real(callable.get(), arguments));
  PyObject* name = f.code->name(i.arg);
  if (i.flags & kPushNullBefore) f.stack.emplace_back();
  core_.push(super_attribute(object.get(), name));
  if (i.flags & kPushNullAfter) f.stack.emplace_back();
}

}  // namespace tenon::python
