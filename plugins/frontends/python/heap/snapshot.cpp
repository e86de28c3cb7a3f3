#include "python/heap/snapshot.h"

#include <fmt/format.h>

#include <unordered_map>

#include "python/compat/object_layout.h"
#include "python/heap/names.h"

namespace tenon::python {
namespace {

using Kind = ResultTemplate::Kind;

class Writer {
 public:
  Writer(Heap& heap, Recorder& recorder) : heap_(heap), recorder_(recorder) {}

  std::uint32_t write(PyObject* object) {
    if (const auto seen = done_.find(object); seen != done_.end()) {
      if (seen->second == kOpen) throw GraphBreak("the result contains itself");
      return seen->second;
    }
    done_[object] = kOpen;
    const std::uint32_t node = classify(object);
    done_[object] = node;
    return node;
  }

  ResultTemplate result;

 private:
  static constexpr std::uint32_t kOpen = ~0u;

  std::uint32_t add(ResultTemplate::Node node) {
    result.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(result.nodes.size() - 1);
  }
  std::uint32_t constant(PyObject* object) { return add({Kind::constant, Ref::borrow(object), 0, {}, {}}); }
  std::uint32_t from_source(SourceId source) {
    result.sources.push_back(source);
    return add({Kind::source, {}, static_cast<std::uint32_t>(result.sources.size() - 1), {}, {}});
  }

  std::uint32_t classify(PyObject* object) {
    const TypeTraits& traits = heap_.traits(object);
    if (traits.role == Recorder::Role::stand_in) {
      if (const SourceId source = recorder_.input_source(object)) return from_source(source);
      return add({Kind::output, {}, recorder_.output(object), {}, {}});
    }
    if (traits.atom) return constant(object);
    if (const SourceId source = heap_.source_of(object))
      return heap_.sources()[source].kind == SourceKind::constant ? constant(object) : from_source(source);
    if (traits.role == Recorder::Role::scalar) return constant(object);
    if (traits.identity && !heap_.is_born(object)) return constant(object);
    if (traits.container != Container::none) return container(object, traits);
    return other(object, traits);
  }

  std::uint32_t sequence(Kind kind, PyObject* items, Ref detail = {}) {
    ResultTemplate::Node node{kind, std::move(detail), 0, {}, {}};
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(items); ++at) node.children.push_back(write(PySequence_Fast_GET_ITEM(items, at)));
    return add(std::move(node));
  }

  std::uint32_t pairs(Kind kind, PyObject* dict, Ref detail = {}) {
    ResultTemplate::Node node{kind, std::move(detail), 0, {}, {}};
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &position, &key, &value)) {
      node.children.push_back(write(key));
      node.children.push_back(write(value));
    }
    return add(std::move(node));
  }

  std::uint32_t container(PyObject* object, const TypeTraits& traits) {
    PyTypeObject* type = Py_TYPE(object);
    const auto type_object = Ref::borrow(reinterpret_cast<PyObject*>(type));
    if (!traits.exact && traits.container != Container::tuple) return subclass(object);
    switch (traits.container) {
      case Container::list: return sequence(Kind::list, object);
      case Container::tuple: return sequence(traits.exact ? Kind::tuple : Kind::tuple_subclass, object, traits.exact ? Ref() : type_object);
      case Container::set:
      case Container::frozen_set: {
        Ref items = checked(PySequence_List(object));
        return sequence(traits.container == Container::set ? Kind::set : Kind::frozen_set, items.get());
      }
      case Container::deque: {
        Ref items = checked(PySequence_List(object));
        return sequence(Kind::deque, items.get(), checked(PyObject_GetAttr(object, names().maxlen)));
      }
      default: break;
    }
    if (type == library_types().ordered_dict) {
      // Its order is its own, not the dict's below it.
      Ref items = checked(PyObject_CallMethod(object, "items", nullptr));
      Ref list = checked(PySequence_List(items.get()));
      ResultTemplate::Node node{Kind::ordered_dict, {}, 0, {}, {}};
      for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list.get()); ++at) {
        PyObject* pair = PyList_GET_ITEM(list.get(), at);
        keep_.push_back(Ref::borrow(pair));
        node.children.push_back(write(PyTuple_GET_ITEM(pair, 0)));
        node.children.push_back(write(PyTuple_GET_ITEM(pair, 1)));
      }
      return add(std::move(node));
    }
    if (type == library_types().default_dict) return pairs(Kind::default_dict, object, checked(PyObject_GetAttr(object, names().default_factory)));
    return pairs(Kind::dict, object);
  }

  std::uint32_t subclass(PyObject* object) { throw GraphBreak(fmt::format("the result holds a {}, which cannot be built again", Py_TYPE(object)->tp_name)); }

  std::uint32_t other(PyObject* object, const TypeTraits& traits) {
    if (PySlice_Check(object)) {
      auto* slice = reinterpret_cast<PySliceObject*>(object);
      ResultTemplate::Node node{Kind::slice, {}, 0, {write(slice->start), write(slice->stop), write(slice->step)}, {}};
      return add(std::move(node));
    }
    if (PyMethod_Check(object)) {
      ResultTemplate::Node node{Kind::method, {}, 0, {write(PyMethod_GET_FUNCTION(object)), write(PyMethod_GET_SELF(object))}, {}};
      return add(std::move(node));
    }
    if (PyCell_Check(object)) {
      ResultTemplate::Node node{Kind::cell, {}, 0, {}, {}};
      if (PyObject* value = PyCell_GET(object)) node.children.push_back(write(value));
      return add(std::move(node));
    }
    if (PyFunction_Check(object)) return function(object);
    const bool plain = traits.python_class && Py_TYPE(object)->tp_new == PyBaseObject_Type.tp_new && !heap_.is_born(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (!plain) return subclass(object);
    return instance(object);
  }

  std::uint32_t function(PyObject* object) {
    auto* parts = reinterpret_cast<PyFunctionObject*>(object);
    if (parts->func_dict != nullptr && PyDict_GET_SIZE(parts->func_dict) > 0) return subclass(object);
    const auto part = [&](PyObject* value) { return write(value ? value : Py_None); };
    ResultTemplate::Node node{Kind::function, checked(PyTuple_Pack(3, parts->func_code, parts->func_globals, parts->func_qualname)), 0,
                              {part(parts->func_defaults), part(parts->func_kwdefaults), part(parts->func_closure)}, {}};
    return add(std::move(node));
  }

  std::uint32_t instance(PyObject* object) {
    ResultTemplate::Node node{Kind::instance, Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object))), 0, {}, {}};
    std::vector<Ref> attribute_names;
    if (PyObject* dict = compat::instance_dict(object)) {
      Py_ssize_t position = 0;
      PyObject *key, *value;
      while (PyDict_Next(dict, &position, &key, &value)) {
        attribute_names.push_back(Ref::borrow(key));
        node.children.push_back(write(value));
      }
    }
    collect_slots(object, attribute_names, node.children);
    node.names = checked(PyTuple_New(static_cast<Py_ssize_t>(attribute_names.size())));
    for (std::size_t at = 0; at < attribute_names.size(); ++at) PyTuple_SET_ITEM(node.names.get(), at, attribute_names[at].release());
    return add(std::move(node));
  }

  /// Attributes in `__slots__`: member descriptors along the bases.
  void collect_slots(PyObject* object, std::vector<Ref>& attribute_names, std::vector<std::uint32_t>& children) {
    PyObject* order = Py_TYPE(object)->tp_mro;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(order); ++at) {
      Py_ssize_t position = 0;
      PyObject *key, *member;
      while (PyDict_Next(compat::type_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, at))), &position, &key, &member)) {
        if (Py_TYPE(member) != &PyMemberDescr_Type) continue;
        Ref value = Ref::steal(Py_TYPE(member)->tp_descr_get(member, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
        if (!value) {
          PyErr_Clear();
          continue;
        }
        keep_.push_back(value);
        attribute_names.push_back(Ref::borrow(key));
        children.push_back(write(value.get()));
      }
    }
  }

  Heap& heap_;
  Recorder& recorder_;
  std::unordered_map<PyObject*, std::uint32_t> done_;
  std::vector<Ref> keep_;  // objects made here must outlive `done_`, which knows them by address
};

}  // namespace

ResultTemplate snapshot(Heap& heap, Recorder& recorder, PyObject* result) {
  Writer writer(heap, recorder);
  const std::uint32_t root = writer.write(result);
  if (root + 1 != writer.result.nodes.size()) {
    // The result is a part of something else in it only if it was written before: it is always last.
    throw GraphBreak("the result contains itself");
  }
  return std::move(writer.result);
}

}  // namespace tenon::python
