#include "python/graph/traced_graph.h"

#include <unordered_map>
#include <utility>

#include "core/ir/printer.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/stand_ins/array_stand_in.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

Ref class_of_package(const char* name) { return checked(PyObject_GetAttrString(checked(imported("tenon._traced")).get(), name)); }

using Types = std::unordered_map<PyObject*, std::string>;

/// A trace, of a whole graph or of a branch, with names and types of its inputs.
struct Traced {
  const CapturedGraph& whole;
  const Trace& trace;
  const std::vector<std::string>& op_names;
  const Types& types;
  std::vector<std::pair<std::string, std::string>> inputs;
  std::string name, text;
};

Ref make_object(const Traced& traced);

/// Translates the trace: every stand-in becomes the reference of its value.
class Translation {
 public:
  explicit Translation(const Traced& traced) : traced_(traced) {}

  Ref inputs() {
    Ref list = checked(PyList_New(0));
    for (std::size_t i = 0; i < traced_.inputs.size(); ++i) {
      const auto& [name, type] = traced_.inputs[i];
      define(traced_.trace.inputs[i].get(), name);
      Ref entry = checked(Py_BuildValue("(sss)", name.c_str(), type.c_str(), name.c_str()));
      checked(PyList_Append(list.get(), entry.get()));
    }
    return list;
  }

  Ref calls() {
    Ref list = checked(PyList_New(0));
    for (std::size_t i = 0; i < traced_.trace.calls.size(); ++i) checked(PyList_Append(list.get(), call(i).get()));
    return list;
  }

  /// (copy, name of the input, function that copies) for each input that the calls write.
  Ref copies() {
    Ref list = checked(PyList_New(0));
    for (const Trace::Copy& copy : traced_.trace.copies) {
      const std::string& name = input_name(copy.input);
      Ref made = define(copy.copy.get(), name);
      checked(PyList_Append(list.get(), checked(PyTuple_Pack(3, made.get(), make_text(name).get(), copy.function.get())).get()));
    }
    return list;
  }

  Ref updates() {
    Ref list = checked(PyList_New(0));
    for (const Trace::Copy& copy : traced_.trace.copies)
      if (copy.updates)
        checked(PyList_Append(list.get(), checked(PyTuple_Pack(2, make_text(input_name(copy.input)).get(), translate(copy.copy.get()).get())).get()));
    return list;
  }

  /// (symbol, the program's name for it, input of which it is a size or None, dimension) for each number that varies.
  Ref numbers() {
    Ref list = checked(PyList_New(0));
    const CapturedGraph& whole = traced_.whole;
    for (std::size_t symbol = 0; whole.numbers && symbol < whole.numbers->sources().size(); ++symbol) {
      const auto [input, dimension] = size_of_input(SymbolId{static_cast<std::uint32_t>(symbol)});
      const std::string& name = whole.numbers->sources()[symbol].name;
      Ref entry = checked(Py_BuildValue("(sszn)", whole.recording->graph.symbols()[symbol].name.c_str(), name.c_str(), input, static_cast<Py_ssize_t>(dimension)));
      checked(PyList_Append(list.get(), entry.get()));
    }
    return list;
  }

  Ref outputs() {
    Ref list = checked(PyList_New(0));
    for (const Ref& output : traced_.trace.outputs) checked(PyList_Append(list.get(), translate(output.get()).get()));
    return list;
  }

 private:
  const std::string& input_name(std::uint32_t input) const { return traced_.inputs[input].first; }

  Ref call(std::size_t index) {
    const TracedCall& traced = traced_.trace.calls[index];
    Ref args = traced.branches.empty() ? translate(traced.args.get()) : choice(traced, index);
    Ref kwargs = traced.kwargs ? translate(traced.kwargs.get()) : checked(PyDict_New());
    Ref types = checked(PyList_New(0));
    Ref results = define_results(traced.result.get(), wished_name(traced, traced_.op_names[index]), types.get());
    Ref location = checked(Py_BuildValue("(siss)", traced.location->file.c_str(), traced.location->line, traced.location->function.c_str(),
                                         traced.location->code.c_str()));
    Ref type_texts = checked(PyList_AsTuple(types.get()));
    return checked(PyTuple_Pack(6, results.get(), unwrapped_array_method(traced.callable.get()), args.get(), kwargs.get(), type_texts.get(), location.get()));
  }

  /// The arguments of tenon.cond: the condition, a graph for each branch, the operands of both.
  Ref choice(const TracedCall& traced, std::size_t index) {
    Ref then = branch(*traced.branches[0], "then_" + std::to_string(index)), otherwise = branch(*traced.branches[1], "otherwise_" + std::to_string(index));
    Ref condition = translate(PyTuple_GET_ITEM(traced.args.get(), 0)), operands = translate(PyTuple_GET_ITEM(traced.args.get(), 1));
    return checked(PyTuple_Pack(4, condition.get(), then.get(), otherwise.get(), operands.get()));
  }

  Ref branch(const BranchTrace& branch, std::string name) {
    Traced traced{traced_.whole, branch.trace, branch.op_names, traced_.types, {}, std::move(name), ""};
    for (const Ref& input : branch.trace.inputs) {
      Ref outer = checked(PyObject_Str(translate(input.get()).get()));
      const auto type = traced_.types.find(input.get());
      traced.inputs.emplace_back(PyUnicode_AsUTF8(outer.get()), type == traced_.types.end() ? "" : type->second);
    }
    return make_object(traced);
  }

  /// The program's own name of what a call gives, else one by the operation.
  static std::string wished_name(const TracedCall& traced, const std::string& op) {
    if (traced.gives_number) return "number";
    return traced.variable.empty() || PyTuple_Check(traced.result.get()) || PyList_CheckExact(traced.result.get()) ? short_name(op) : traced.variable;
  }

  static std::string short_name(const std::string& op) {
    std::string name = op.substr(op.rfind('.') + 1);
    while (!name.empty() && name.front() == '_') name.erase(0, 1);
    while (!name.empty() && name.back() == '_') name.pop_back();
    return name.empty() ? "value" : name;
  }

  Ref define(PyObject* stand_in, const std::string& wish) {
    std::string name = wish;
    for (int& n = taken_[wish]; n > 0 || names_taken_.contains(name); ++n) {
      name = wish + "_" + std::to_string(n + 1);
      if (!names_taken_.contains(name)) break;
    }
    names_taken_.emplace(name, 1);
    Ref reference = make_value_reference(name);
    references_[stand_in] = reference;
    return reference;
  }

  /// Results that an earlier call gave keep their name; a call that gives only such, or no tensor, has nothing to define.
  Ref define_results(PyObject* result, const std::string& name, PyObject* types) {
    if (PyList_CheckExact(result) || PyTuple_Check(result)) {
      Ref tuple = checked(PyTuple_New(PySequence_Fast_GET_SIZE(result)));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i)
        PyTuple_SET_ITEM(tuple.get(), i, define_results(PySequence_Fast_GET_ITEM(result, i), name, types).release());
      return tuple;
    }
    auto type = traced_.types.find(result);
    if (type == traced_.types.end()) return Ref::borrow(Py_None);
    checked(PyList_Append(types, make_text(type->second).get()));
    if (auto known = references_.find(result); known != references_.end()) return known->second;
    return define(result, name);
  }

  /// The input that has a symbol for a size, and which; null where there is none.
  std::pair<const char*, std::size_t> size_of_input(SymbolId symbol) const {
    const ir::Graph& graph = traced_.whole.recording->graph;
    for (ir::ValueId input : graph.inputs()) {
      const ir::Shape& shape = graph.type(input).shape;
      for (std::size_t d = 0; d < shape.size(); ++d)
        if (shape[d].as_symbol() == symbol) return {graph.value(input).name.c_str(), d};
    }
    return {nullptr, 0};
  }

  /// A number that varies: an int as an expression over symbols, a float as the input that it is; empty for other objects, and for a number that
  /// the graph computes.
  Ref number(PyObject* object) const {
    const CapturedGraph& whole = traced_.whole;
    if (is_symbolic_int(object)) {
      Ref type = checked(PyObject_GetAttrString(checked(imported("tenon._render")).get(), "Number"));
      return checked(PyObject_CallOneArg(type.get(), make_text(ir::print_dim(whole.recording->graph, *integer_of(object))).get()));
    }
    if (!is_symbolic_scalar(object) || !scalar_of(object).step) return {};
    for (std::size_t i = 0; i < whole.input_steps.size(); ++i)
      if (whole.input_steps[i] == scalar_of(object).step) return make_value_reference(whole.recording->graph.value(whole.recording->graph.inputs()[i]).name);
    return {};
  }

  Ref translate(PyObject* object) {
    if (auto known = references_.find(object); known != references_.end()) return known->second;
    if (Ref varying = number(object)) return varying;
    if (PySlice_Check(object)) {
      const auto* slice = reinterpret_cast<PySliceObject*>(object);
      return checked(PySlice_New(translate(slice->start).get(), translate(slice->stop).get(), translate(slice->step).get()));
    }
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

  const Traced& traced_;
  std::unordered_map<PyObject*, Ref> references_;
  std::unordered_map<std::string, int> taken_, names_taken_;
};

Ref make_object(const Traced& traced) {
  Translation translation(traced);  // of the inputs before what uses them
  Ref inputs = translation.inputs(), copies = translation.copies(), numbers = translation.numbers(), calls = translation.calls();
  Ref outputs = translation.outputs(), updates = translation.updates(), ops = checked(PyList_New(0));
  for (const std::string& op : traced.op_names) checked(PyList_Append(ops.get(), make_text(op).get()));
  return make_traced_graph({traced.name, traced.text, std::move(inputs), std::move(copies), std::move(numbers), std::move(calls), std::move(outputs), std::move(updates), std::move(ops)});
}

}  // namespace

Ref make_text(const std::string& value) { return checked(PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()))); }

Ref make_value_reference(const std::string& name) { return checked(PyObject_CallOneArg(class_of_package("ValueRef").get(), make_text(name).get())); }

Ref make_traced_graph(const TracedParts& parts) {
  return checked(PyObject_CallFunctionObjArgs(class_of_package("TracedGraph").get(), make_text(parts.name).get(), parts.inputs.get(), parts.copies.get(), parts.numbers.get(),
                                              parts.calls.get(), parts.outputs.get(), parts.updates.get(), parts.op_names.get(), make_text(parts.text).get(),
                                              parts.is_backward ? Py_True : Py_False, nullptr));
}

Ref make_traced_graph(const CapturedGraph& captured, const std::string& name) {
  const Recording& recording = *captured.recording;
  Traced traced{captured, recording.trace, recording.op_names, recording.trace.types, {}, name, ir::print_graph(recording.graph)};
  for (std::size_t i = 0; i < recording.graph.inputs().size(); ++i) {
    const ir::ValueId input = recording.graph.inputs()[i];
    const bool number = captured.input_steps[i].has_value();
    traced.inputs.emplace_back(recording.graph.value(input).name, number ? "float" : ir::print_type(recording.graph, recording.graph.type(input)));
  }
  return make_object(traced);
}

}  // namespace tenon::python
