#include "python/call/traced_graph.h"

#include <structmember.h>

#include <unordered_map>

#include "core/ir/printer.h"
#include "python/evaluator/graph_break.h"

namespace tenon::python {
namespace {

struct ValueRef {
  PyObject_HEAD
  PyObject* name;
};

void free_value_ref(PyObject* self) {
  Py_XDECREF(reinterpret_cast<ValueRef*>(self)->name);
  Py_TYPE(self)->tp_free(self);
}

PyObject* print_value_ref(PyObject* self) { return Py_NewRef(reinterpret_cast<ValueRef*>(self)->name); }

PyMemberDef kValueRefMembers[] = {{"name", T_OBJECT_EX, offsetof(ValueRef, name), READONLY, "The value's name."}, {nullptr, 0, 0, 0, nullptr}};

PyTypeObject g_value_ref = {PyVarObject_HEAD_INIT(nullptr, 0)};

/// All attributes are plain Python objects in `fields`.
struct TracedGraph {
  PyObject_HEAD
  PyObject* fields;
};

void free_traced_graph(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_XDECREF(reinterpret_cast<TracedGraph*>(self)->fields);
  Py_TYPE(self)->tp_free(self);
}

int traverse_traced_graph(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<TracedGraph*>(self)->fields);
  return 0;
}

int clear_traced_graph(PyObject* self) {
  Py_CLEAR(reinterpret_cast<TracedGraph*>(self)->fields);
  return 0;
}

PyObject* text_of(PyObject* self, PyObject*) { return Py_XNewRef(PyDict_GetItemString(reinterpret_cast<TracedGraph*>(self)->fields, "_text")); }

PyMethodDef kTracedGraphMethods[] = {{"text", text_of, METH_NOARGS, "The graph in Tenon's text form."}, {nullptr, nullptr, 0, nullptr}};

PyTypeObject g_traced_graph = {PyVarObject_HEAD_INIT(nullptr, 0)};

Ref text(const std::string& value) { return checked(PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()))); }

/// Translates the trace: every stand-in becomes the reference of its value.
class Translation {
 public:
  explicit Translation(const CapturedGraph& captured) : x_captured(captured) {}

  Ref inputs() {
    Ref list = checked(PyList_New(0));
    for (std::size_t i = 0; i < x_captured.inputs.size(); ++i) {
      const ir::ValueId value = x_captured.graph.inputs()[i];
      const std::string& name = x_captured.graph.value(value).name;
      define(x_captured.trace.inputs[i].get(), name);
      Ref entry = checked(Py_BuildValue("(sss)", name.c_str(), ir::print_type(x_captured.graph, x_captured.graph.type(value)).c_str(), name.c_str()));
      checked(PyList_Append(list.get(), entry.get()));
    }
    return list;
  }

  Ref calls() {
    Ref list = checked(PyList_New(0));
    for (std::size_t i = 0; i < x_captured.trace.calls.size(); ++i) checked(PyList_Append(list.get(), call(i).get()));
    return list;
  }

  Ref outputs() {
    Ref list = checked(PyList_New(0));
    for (const Ref& output : x_captured.trace.outputs) checked(PyList_Append(list.get(), translate(output.get()).get()));
    return list;
  }

 private:
  Ref call(std::size_t index) {
    const TracedCall& traced = x_captured.trace.calls[index];
    Ref args = translate(traced.args.get());
    Ref kwargs = traced.kwargs ? translate(traced.kwargs.get()) : checked(PyDict_New());
    Ref types = checked(PyList_New(0));
    Ref results = define_results(traced.result.get(), short_name(x_captured.op_names[index]), types.get());
    Ref location = checked(Py_BuildValue("(siss)", traced.location.file.c_str(), traced.location.line, traced.location.function.c_str(),
                                         traced.location.code.c_str()));
    Ref type_texts = checked(PyList_AsTuple(types.get()));
    return checked(PyTuple_Pack(6, results.get(), traced.callable.get(), args.get(), kwargs.get(), type_texts.get(), location.get()));
  }

  static std::string short_name(const std::string& op) {
    std::string name = op.substr(op.rfind('.') + 1);
    while (!name.empty() && name.front() == '_') name.erase(0, 1);
    while (!name.empty() && name.back() == '_') name.pop_back();
    return name.empty() ? "value" : name;
  }

  Ref define(PyObject* stand_in, const std::string& wish) {
    std::string name = wish;
    for (int& n = x_taken[wish]; n > 0 || x_names_taken.contains(name); ++n) {
      name = wish + "_" + std::to_string(n + 1);
      if (!x_names_taken.contains(name)) break;
    }
    x_names_taken.emplace(name, 1);
    ValueRef* made = PyObject_New(ValueRef, &g_value_ref);
    if (!made) throw PythonError();
    made->name = text(name).release();
    Ref reference = Ref::steal(reinterpret_cast<PyObject*>(made));
    x_references[stand_in] = reference;
    return reference;
  }

  /// Results that an earlier call gave keep their name; a call that gives only such has nothing to define.
  Ref define_results(PyObject* result, const std::string& name, PyObject* types) {
    if (PyList_CheckExact(result) || PyTuple_Check(result)) {
      Ref tuple = checked(PyTuple_New(PySequence_Fast_GET_SIZE(result)));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i)
        PyTuple_SET_ITEM(tuple.get(), i, define_results(PySequence_Fast_GET_ITEM(result, i), name, types).release());
      return tuple;
    }
    auto type = x_captured.trace.types.find(result);
    checked(PyList_Append(types, text(type == x_captured.trace.types.end() ? "" : type->second).get()));
    if (auto known = x_references.find(result); known != x_references.end()) return known->second;
    return define(result, name);
  }

  Ref translate(PyObject* object) {
    if (auto known = x_references.find(object); known != x_references.end()) return known->second;
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
      Ref list = checked(PyList_New(PySequence_Fast_GET_SIZE(object)));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
        PyList_SET_ITEM(list.get(), i, translate(PySequence_Fast_GET_ITEM(object, i)).release());
      return PyList_CheckExact(object) ? list : checked(PyList_AsTuple(list.get()));
    }
    if (PyDict_CheckExact(object)) {
      Ref dict = checked(PyDict_New());
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t position = 0; PyDict_Next(object, &position, &key, &value);) checked(PyDict_SetItem(dict.get(), key, translate(value).get()));
      return dict;
    }
    return Ref::borrow(object);
  }

  const CapturedGraph& x_captured;
  std::unordered_map<PyObject*, Ref> x_references;
  std::unordered_map<std::string, int> x_taken, x_names_taken;
};

void set(PyObject* dict, const char* name, const Ref& value) { checked(PyDict_SetItemString(dict, name, value.get())); }

}  // namespace

Ref make_traced_graph(const CapturedGraph& captured, const std::string& name) {
  Ref fields = checked(PyDict_New());
  Translation translation(captured);
  set(fields.get(), "name", text(name));
  set(fields.get(), "inputs", translation.inputs());
  set(fields.get(), "calls", translation.calls());
  set(fields.get(), "outputs", translation.outputs());
  set(fields.get(), "updates", checked(PyList_New(0)));
  Ref ops = checked(PyList_New(0));
  for (const std::string& op : captured.op_names) checked(PyList_Append(ops.get(), text(op).get()));
  set(fields.get(), "op_names", ops);
  set(fields.get(), "_text", text(ir::print_graph(captured.graph)));
  TracedGraph* made = PyObject_GC_New(TracedGraph, &g_traced_graph);
  if (!made) throw PythonError();
  made->fields = fields.release();
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return Ref::steal(reinterpret_cast<PyObject*>(made));
}

bool add_traced_graph_types(PyObject* module) {
  g_value_ref.tp_name = "tenon._tenon.ValueRef";
  g_value_ref.tp_doc = "A value of a traced graph, by name.";
  g_value_ref.tp_basicsize = sizeof(ValueRef);
  g_value_ref.tp_flags = Py_TPFLAGS_DEFAULT;
  g_value_ref.tp_dealloc = free_value_ref;
  g_value_ref.tp_repr = print_value_ref;
  g_value_ref.tp_members = kValueRefMembers;
  g_traced_graph.tp_name = "tenon._tenon.TracedGraph";
  g_traced_graph.tp_doc = "The calls of one capture. Tensors among arguments, results and outputs are ValueRef objects.";
  g_traced_graph.tp_basicsize = sizeof(TracedGraph);
  g_traced_graph.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
  g_traced_graph.tp_dealloc = free_traced_graph;
  g_traced_graph.tp_traverse = traverse_traced_graph;
  g_traced_graph.tp_clear = clear_traced_graph;
  g_traced_graph.tp_methods = kTracedGraphMethods;
  g_traced_graph.tp_dictoffset = offsetof(TracedGraph, fields);
  return PyModule_AddType(module, &g_value_ref) == 0 && PyModule_AddType(module, &g_traced_graph) == 0;
}

}  // namespace tenon::python
