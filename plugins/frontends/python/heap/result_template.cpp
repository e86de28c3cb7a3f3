#include "python/heap/result_template.h"

#include "python/compat/object_layout.h"
#include "python/heap/type_traits.h"
#include "python/objects/graph_break.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

using Kind = ResultTemplate::Kind;
using Node = ResultTemplate::Node;

class Builder {
 public:
  Builder(const std::vector<Node>& nodes, PyObject* const* values, PyObject* const* outputs) : nodes_(nodes), values_(values), outputs_(outputs) {}

  std::vector<Ref> build() {
    built_.reserve(nodes_.size());
    for (const Node& node : nodes_) built_.push_back(make(node));
    // What has a hash of its own must be whole before it becomes a key.
    for (std::size_t at = 0; at < nodes_.size(); ++at)
      if (!is_hashed(nodes_[at].kind)) fill(nodes_[at], built_[at].get());
    for (std::size_t at = nodes_.size(); at-- > 0;)
      if (is_hashed(nodes_[at].kind)) fill(nodes_[at], built_[at].get());
    return std::move(built_);
  }

 private:
  static bool is_hashed(Kind kind) { return kind == Kind::dict || kind == Kind::set || kind == Kind::ordered_dict || kind == Kind::default_dict; }
  const Ref& child(const Node& node, std::size_t at) const { return built_[node.children[at]]; }

  Ref tuple(const Node& node) const {
    Ref made = checked(PyTuple_New(static_cast<Py_ssize_t>(node.children.size())));
    for (std::size_t at = 0; at < node.children.size(); ++at) PyTuple_SET_ITEM(made.get(), at, Ref(child(node, at)).release());
    return made;
  }

  /// A subclass of tuple: named tuples through the plain constructor of tuple, structure sequences through their own.
  Ref tuple_subclass(const Node& node) const {
    auto* type = reinterpret_cast<PyTypeObject*>(node.object.get());
    Ref arguments = checked(PyTuple_Pack(1, tuple(node).get()));
    PyTypeObject* maker = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_new != nullptr ? &PyTuple_Type : type;
    return checked(maker->tp_new(type, arguments.get(), nullptr));
  }

  /// An empty object of the node's class (or of `base` itself), past any `__new__` and `__init__` of its own.
  static Ref empty(PyTypeObject* base, const Node& node) {
    Ref nothing = checked(PyTuple_New(0));
    auto* type = node.object ? reinterpret_cast<PyTypeObject*>(node.object.get()) : base;
    return checked(base->tp_new(type, nothing.get(), nullptr));
  }

  static Ref function(const Node& node) {
    PyObject* parts = node.object.get();
    return checked(PyFunction_NewWithQualName(PyTuple_GET_ITEM(parts, 0), PyTuple_GET_ITEM(parts, 1), PyTuple_GET_ITEM(parts, 2)));
  }

  static Ref deque(const Node& node) {
    Ref made = empty(library_types().deque, node);
    Ref arguments = checked(Py_BuildValue("(()O)", node.detail.get()));
    checked(library_types().deque->tp_init(made.get(), arguments.get(), nullptr));
    return made;
  }

  static Ref exception(const Node& node) {
    auto* type = reinterpret_cast<PyTypeObject*>(node.object.get());
    PyTypeObject* base = type;
    while (PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
    return empty(base, node);
  }

  static Ref partial() {
    PyObject* any = reinterpret_cast<PyObject*>(&PyType_Type);  // replaced by the state
    return checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(library_types().partial), any));
  }

  Ref iterator(const Node& node) const {
    Ref made = checked(PyObject_GetIter(child(node, 0).get()));
    for (std::uint32_t taken = 0; taken < node.index; ++taken) checked(PyIter_Next(made.get()));
    return made;
  }

  Ref make(const Node& node) const {
    switch (node.kind) {
      case Kind::constant: return node.object;
      case Kind::source: return Ref::borrow(values_[node.index]);
      case Kind::output: return Ref::borrow(outputs_[node.index]);
      case Kind::tuple: return tuple(node);
      case Kind::tuple_subclass: return tuple_subclass(node);
      case Kind::frozen_set: return checked(PyFrozenSet_New(tuple(node).get()));
      case Kind::slice: return checked(PySlice_New(child(node, 0).get(), child(node, 1).get(), child(node, 2).get()));
      case Kind::method: return checked(PyMethod_New(child(node, 0).get(), child(node, 1).get()));
      case Kind::call: return checked(PyObject_CallObject(node.object.get(), tuple(node).get()));
      case Kind::iterator: return iterator(node);
      case Kind::list: return node.object ? empty(&PyList_Type, node) : checked(PyList_New(0));
      case Kind::dict: return node.object ? empty(&PyDict_Type, node) : checked(PyDict_New());
      case Kind::set: return node.object ? empty(&PySet_Type, node) : checked(PySet_New(nullptr));
      case Kind::ordered_dict: return empty(library_types().ordered_dict, node);
      case Kind::default_dict: return empty(library_types().default_dict, node);
      case Kind::deque: return deque(node);
      case Kind::cell: return checked(PyCell_New(nullptr));
      case Kind::partial: return partial();
      case Kind::function: return function(node);
      case Kind::instance: return empty(&PyBaseObject_Type, node);
      case Kind::exception: return exception(node);
    }
    return {};
  }

  void fill_pairs(const Node& node, PyObject* dict) const {
    const bool ordered = node.kind == Kind::ordered_dict;
    for (std::size_t at = 0; at + 1 < node.children.size(); at += 2) {
      PyObject *key = child(node, at).get(), *value = child(node, at + 1).get();
      // Past any __setitem__ of a subclass.
      checked(ordered ? library_types().ordered_dict->tp_as_mapping->mp_ass_subscript(dict, key, value) : PyDict_SetItem(dict, key, value));
    }
  }

  void fill_function(const Node& node, PyObject* function) const {
    if (node.children.empty()) return;
    checked(PyFunction_SetClosure(function, child(node, 0).get()));
  }

  void fill(const Node& node, PyObject* object) const {
    switch (node.kind) {
      case Kind::list:
        for (std::size_t at = 0; at < node.children.size(); ++at) checked(PyList_Append(object, child(node, at).get()));
        break;
      case Kind::set:
        for (std::size_t at = 0; at < node.children.size(); ++at) checked(PySet_Add(object, child(node, at).get()));
        break;
      case Kind::deque: {
        static PyObject* const append = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(library_types().deque), "append")).release();
        for (std::size_t at = 0; at < node.children.size(); ++at) checked(PyObject_CallFunctionObjArgs(append, object, child(node, at).get(), nullptr));
        break;
      }
      case Kind::dict:
      case Kind::ordered_dict:
      case Kind::default_dict: fill_pairs(node, object); break;
      case Kind::cell:
        if (!node.children.empty()) checked(PyCell_Set(object, child(node, 0).get()));
        break;
      case Kind::partial: checked(PyObject_CallMethod(object, "__setstate__", "((OOOO))", child(node, 0).get(), child(node, 1).get(), child(node, 2).get(), child(node, 3).get())); break;
      case Kind::function: fill_function(node, object); break;
      case Kind::call:
        if (node.detail) checked(PyObject_CallMethod(object, "__setstate__", "O", node.detail.get()));
        break;
      default: break;
    }
    // Past any __setattr__ of the class, as its state was taken.
    for (std::size_t at = 0; at < node.attributes.size(); ++at)
      checked(PyObject_GenericSetAttr(object, PyTuple_GET_ITEM(node.names.get(), at), built_[node.attributes[at]].get()));
    if (node.entries.empty()) return;
    Ref dict = checked(PyObject_GenericGetDict(object, nullptr));
    for (std::size_t at = 0; at < node.entries.size(); at += 2) checked(PyDict_SetItem(dict.get(), built_[node.entries[at]].get(), built_[node.entries[at + 1]].get()));
  }

  const std::vector<Node>& nodes_;
  PyObject* const* values_;
  PyObject* const* outputs_;
  std::vector<Ref> built_;
};

}  // namespace

void ResultTemplate::bind(const CheckProgram& program) {
  for (Node& node : nodes)
    if (node.kind == Kind::source) node.index = program.slot(sources[node.index]);
}

std::vector<Ref> ResultTemplate::build(PyObject* const* values, PyObject* const* outputs) const { return Builder(nodes, values, outputs).build(); }

Ref ResultTemplate::build_one(std::uint32_t node, PyObject* const* values, PyObject* const* outputs) const {
  if (nodes[node].kind == Kind::output) return Ref::borrow(outputs[nodes[node].index]);  // the common case: one tensor
  return std::move(build(values, outputs)[node]);
}

void ResultTemplate::place_iterators(const std::vector<Ref>& built) const {
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const Node& node = nodes[at];
    const bool over_older = node.kind == Kind::call && node.detail && !node.children.empty() && nodes[node.children[0]].kind == Kind::source;
    if (!over_older || !PyList_Check(built[node.children[0]].get())) continue;
    // An iterator that has passed more than its list now holds stays where `build` has set it, when the list was longer.
    const Py_ssize_t place = PyLong_AsSsize_t(node.detail.get());
    if (place <= PyList_GET_SIZE(built[node.children[0]].get())) checked(PyObject_CallMethod(built[at].get(), "__setstate__", "O", node.detail.get()));
  }
}

int ResultTemplate::traverse(visitproc visit, void* arg) const {
  for (const Node& node : nodes) {
    Py_VISIT(node.object.get());
    Py_VISIT(node.detail.get());
    Py_VISIT(node.names.get());
  }
  return 0;
}

}  // namespace tenon::python
