#include "python/heap/result_template.h"

#include "python/compat/object_layout.h"
#include "python/evaluator/graph_break.h"
#include "python/heap/type_traits.h"

namespace tenon::python {
namespace {

using Kind = ResultTemplate::Kind;

class Builder {
 public:
  Builder(const std::vector<ResultTemplate::Node>& nodes, PyObject* const* values, PyObject* const* outputs) : nodes_(nodes), values_(values), outputs_(outputs) {}

  Ref build() {
    for (const ResultTemplate::Node& node : nodes_) built_.push_back(make(node));
    return built_.back();
  }

 private:
  const Ref& child(const ResultTemplate::Node& node, std::size_t at) const { return built_[node.children[at]]; }

  Ref list(const ResultTemplate::Node& node) const {
    Ref made = checked(PyList_New(static_cast<Py_ssize_t>(node.children.size())));
    for (std::size_t at = 0; at < node.children.size(); ++at) PyList_SET_ITEM(made.get(), at, Ref(child(node, at)).release());
    return made;
  }

  Ref tuple(const ResultTemplate::Node& node) const {
    Ref made = checked(PyTuple_New(static_cast<Py_ssize_t>(node.children.size())));
    for (std::size_t at = 0; at < node.children.size(); ++at) PyTuple_SET_ITEM(made.get(), at, Ref(child(node, at)).release());
    return made;
  }

  Ref fill(Ref dict, const ResultTemplate::Node& node) const {
    for (std::size_t at = 0; at + 1 < node.children.size(); at += 2) checked(PyObject_SetItem(dict.get(), child(node, at).get(), child(node, at + 1).get()));
    return dict;
  }

  /// A subclass of tuple: named tuples through the plain constructor of tuple, structure sequences through their own.
  Ref tuple_subclass(const ResultTemplate::Node& node) const {
    auto* type = reinterpret_cast<PyTypeObject*>(node.object.get());
    Ref arguments = checked(PyTuple_Pack(1, tuple(node).get()));
    PyTypeObject* maker = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && type->tp_new != nullptr ? &PyTuple_Type : type;
    return checked(maker->tp_new(type, arguments.get(), nullptr));
  }

  Ref instance(const ResultTemplate::Node& node) const {
    auto* type = reinterpret_cast<PyTypeObject*>(node.object.get());
    Ref nothing = checked(PyTuple_New(0));
    Ref made = checked(type->tp_new(type, nothing.get(), nullptr));
    // Past any __setattr__ of the class, as its state was taken.
    for (std::size_t at = 0; at < node.children.size(); ++at)
      checked(PyObject_GenericSetAttr(made.get(), PyTuple_GET_ITEM(node.names.get(), at), child(node, at).get()));
    return made;
  }

  Ref function(const ResultTemplate::Node& node) const {
    PyObject* parts = node.object.get();
    Ref made = checked(PyFunction_NewWithQualName(PyTuple_GET_ITEM(parts, 0), PyTuple_GET_ITEM(parts, 1), PyTuple_GET_ITEM(parts, 2)));
    if (!child(node, 0).is(Py_None)) checked(PyFunction_SetDefaults(made.get(), child(node, 0).get()));
    if (!child(node, 1).is(Py_None)) checked(PyFunction_SetKwDefaults(made.get(), child(node, 1).get()));
    if (!child(node, 2).is(Py_None)) checked(PyFunction_SetClosure(made.get(), child(node, 2).get()));
    return made;
  }

  Ref make(const ResultTemplate::Node& node) const {
    switch (node.kind) {
      case Kind::constant: return node.object;
      case Kind::source: return Ref::borrow(values_[node.index]);
      case Kind::output: return Ref::borrow(outputs_[node.index]);
      case Kind::list: return list(node);
      case Kind::tuple: return tuple(node);
      case Kind::tuple_subclass: return tuple_subclass(node);
      case Kind::dict: return fill(checked(PyDict_New()), node);
      case Kind::ordered_dict: return fill(checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(library_types().ordered_dict))), node);
      case Kind::default_dict: return fill(checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(library_types().default_dict), node.object.get())), node);
      case Kind::deque: return checked(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(library_types().deque), list(node).get(), node.object.get(), nullptr));
      case Kind::set: return checked(PySet_New(list(node).get()));
      case Kind::frozen_set: return checked(PyFrozenSet_New(list(node).get()));
      case Kind::slice: return checked(PySlice_New(child(node, 0).get(), child(node, 1).get(), child(node, 2).get()));
      case Kind::instance: return instance(node);
      case Kind::cell: return checked(PyCell_New(node.children.empty() ? nullptr : child(node, 0).get()));
      case Kind::function: return function(node);
      case Kind::method: return checked(PyMethod_New(child(node, 0).get(), child(node, 1).get()));
    }
    return {};
  }

  const std::vector<ResultTemplate::Node>& nodes_;
  PyObject* const* values_;
  PyObject* const* outputs_;
  std::vector<Ref> built_;
};

}  // namespace

void ResultTemplate::bind(const CheckProgram& program) {
  for (Node& node : nodes)
    if (node.kind == Kind::source) node.index = program.slot(sources[node.index]);
}

Ref ResultTemplate::build(PyObject* const* values, PyObject* const* outputs) const {
  const Node& root = nodes.back();
  if (root.kind == Kind::output) return Ref::borrow(outputs[root.index]);  // the common case: one tensor
  return Builder(nodes, values, outputs).build();
}

}  // namespace tenon::python
