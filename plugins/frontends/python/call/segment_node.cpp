#include "python/call/segment_node.h"

#include <utility>

#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/sequences.h"
#include "python/results/tensor_updates.h"
#include "python/session/errors.h"

namespace tenon::python {
namespace {

/// The inputs, tensors and numbers of a captured graph: what its gradients are made from.
CapturedGraph outline(const CapturedGraph& captured) {
  CapturedGraph made;
  made.inputs = captured.inputs;
  made.input_steps = captured.input_steps;
  made.tensors = captured.tensors;
  made.opaque_calls = captured.opaque_calls;
  made.gradients = captured.gradients;
  made.numbers = captured.numbers;
  return made;
}

bool is_tensor(const CapturedGraph& segment, std::uint32_t input) { return segment.inputs[input].kind == TensorKind::torch; }

/// What one call leaves to its backward besides the tensors that torch keeps for it.
struct CallBackward {
  PyObject_HEAD
  struct State {
    std::shared_ptr<SegmentBackward> backward;
    std::size_t node = 0;  // of the segment
    std::vector<std::int64_t> symbols;
    std::vector<Ref> inputs;              // of the segment
    std::vector<std::uint32_t> versions;  // of these, as they were
  } state;
};

PyTypeObject* call_backward_type();

Ref new_call(std::shared_ptr<SegmentBackward> backward, std::size_t node, std::span<const std::int64_t> symbols, std::span<const Ref> inputs) {
  auto* made = PyObject_GC_New(CallBackward, call_backward_type());
  if (!made) throw PythonError();
  new (&made->state) CallBackward::State{std::move(backward), node, {symbols.begin(), symbols.end()}, {inputs.begin(), inputs.end()}, {}};
  const CapturedGraph& segment = made->state.backward->segment();
  for (std::uint32_t i = 0; i < made->state.inputs.size(); ++i) made->state.versions.push_back(is_tensor(segment, i) ? version_of(segment.inputs[i], made->state.inputs[i].get()) : 0);
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return Ref::steal(reinterpret_cast<PyObject*>(made));
}

/// (call, kept tensors, results, order, *inputs that get a gradient), as tenon._autograd.add_node takes them.
Ref node_arguments(const std::shared_ptr<SegmentBackward>& backward, std::size_t node, std::span<const Ref> inputs, PyObject* const* tensors,
                   std::span<const std::int64_t> symbols) {
  const SegmentGradients& gradients = backward->gradients();
  const GradientNode& made = gradients.nodes[node];
  std::vector<Ref> kept, results, arguments;
  for (std::uint32_t i : made.kept_inputs)
    if (is_tensor(backward->segment(), i)) kept.push_back(inputs[i]);
  for (std::uint32_t t : made.kept_tensors) kept.push_back(Ref::borrow(tensors[t]));
  for (std::uint32_t t : made.results) results.push_back(Ref::borrow(tensors[t]));
  std::vector<Ref> order;
  for (std::uint32_t number : made.order) order.push_back(checked(PyLong_FromUnsignedLong(number)));
  arguments = {new_call(backward, node, symbols, inputs), tuple_of(kept), tuple_of(results), tuple_of(order)};
  for (std::size_t w = 0; w < gradients.wanted.size(); ++w)
    if (made.gradients[w]) arguments.push_back(inputs[gradients.wanted[w]]);
  return tuple_of(arguments);
}

/// Runs a method. What it throws becomes an exception of the program.
template <class Body>
PyObject* reported(Body body) noexcept {
  try {
    return body().release();
  } catch (const PythonError&) {
  } catch (const GraphBreak& stop) {
    set_error(ErrorClass::error, stop.reason());
  } catch (const std::exception& failure) {
    set_error(ErrorClass::error, failure.what());
  }
  return nullptr;
}

const CallBackward::State& state_of(PyObject* self) { return reinterpret_cast<CallBackward*>(self)->state; }

void require_tuples(const char* method, PyObject* const* args, Py_ssize_t count) {
  if (count == 2 && PyTuple_Check(args[0]) && PyTuple_Check(args[1])) return;
  PyErr_Format(PyExc_TypeError, "%s() takes two tuples", method);
  throw PythonError();
}

/// gradients(kept, tangents): one for each input that gets one.
PyObject* gradients(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return reported([&]() -> Ref {
    const CallBackward::State& state = state_of(self);
    const GradientNode& node = state.backward->gradients().nodes[state.node];
    require_tuples("gradients", args, count);
    std::vector<PyObject*> given;
    Py_ssize_t next = 0;
    for (std::uint32_t i : node.kept_inputs) given.push_back(is_tensor(state.backward->segment(), i) ? PyTuple_GET_ITEM(args[0], next++) : state.inputs[i].get());
    for (; next < PyTuple_GET_SIZE(args[0]); ++next) given.push_back(PyTuple_GET_ITEM(args[0], next));
    for (Py_ssize_t t = 0; t < PyTuple_GET_SIZE(args[1]); ++t) given.push_back(PyTuple_GET_ITEM(args[1], t));
    return tuple_of(state.backward->function(state.node).run(given, state.symbols));  // by wanted input, which is their order
  });
}

/// again(kept, tangents): the same, as results of nodes of torch's autograd graph.
PyObject* again(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return reported([&]() -> Ref {
    require_tuples("again", args, count);
    const CallBackward::State& state = state_of(self);
    const GradientNode& node = state.backward->gradients().nodes[state.node];
    const CapturedGraph& segment = state.backward->segment();
    for (std::uint32_t i = 0; i < state.inputs.size(); ++i)
      if (is_tensor(segment, i) && version_of(segment.inputs[i], state.inputs[i].get()) != state.versions[i]) {
        PyErr_SetString(PyExc_RuntimeError, "one of the variables needed for gradient computation has been modified by an inplace operation");
        throw PythonError();
      }
    std::vector<Ref> inputs = state.inputs;
    const Py_ssize_t kept = PyTuple_GET_SIZE(args[0]);
    for (Py_ssize_t t = kept - std::ssize(node.kept_tensors); t < kept; ++t) inputs.push_back(Ref::borrow(PyTuple_GET_ITEM(args[0], t)));
    for (Py_ssize_t t = 0; t < PyTuple_GET_SIZE(args[1]); ++t) inputs.push_back(Ref::borrow(PyTuple_GET_ITEM(args[1], t)));
    std::vector<PyObject*> given, tensors;
    for (const Ref& input : inputs) given.push_back(input.get());
    SegmentBackward::Again& again = state.backward->again(state.node);
    const std::vector<Ref> made = again.function.run(given, state.symbols);
    for (const Ref& tensor : made) tensors.push_back(tensor.get());
    if (again.backward) add_nodes(again.backward, inputs, tensors.data(), state.symbols);
    std::vector<Ref> wanted;  // the function gives all gradients
    for (std::size_t w = 0; w < state.backward->gradients().wanted.size(); ++w)
      if (node.gradients[w]) wanted.push_back(made[w]);
    return tuple_of(wanted);
  });
}

PyMethodDef kMethods[] = {
    {"gradients", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(gradients)), METH_FASTCALL, nullptr},
    {"again", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(again)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject* call_backward_type() {
  static PyTypeObject type = [] {
    PyTypeObject made = {PyVarObject_HEAD_INIT(nullptr, 0)};
    made.tp_name = "tenon._tenon.CallBackward";
    made.tp_doc = "The backward of one call of a compiled segment.";
    made.tp_basicsize = sizeof(CallBackward);
    made.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    made.tp_methods = kMethods;
    made.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
      for (const Ref& input : state_of(self).inputs) Py_VISIT(input.get());
      return 0;
    };
    made.tp_dealloc = [](PyObject* self) {
      PyObject_GC_UnTrack(self);
      reinterpret_cast<CallBackward*>(self)->state.~State();
      PyObject_GC_Del(self);
    };
    return made;
  }();
  static const int ready = PyType_Ready(&type);
  checked(ready);
  return &type;
}

}  // namespace

SegmentBackward::SegmentBackward(const CapturedGraph& captured, const Settings& settings) : gradients_(captured.gradients), segment_(outline(captured)) {
  for (const GradientNode& node : gradients_->nodes) nodes_.push_back({GraphFunction(node.backward, settings), nullptr});
}

SegmentBackward::Again& SegmentBackward::again(std::size_t node) {
  std::unique_ptr<Again>& again = nodes_[node].again;
  if (!again) {
    const Settings& settings = nodes_[node].function.settings();
    const std::shared_ptr<CapturedGraph> captured = gradients_with_gradients(segment_, gradients_->nodes[node]);
    auto backward = captured->gradients ? std::make_shared<SegmentBackward>(*captured, settings) : nullptr;
    again = std::make_unique<Again>(GraphFunction(captured, settings), std::move(backward));
  }
  return *again;
}

bool are_kept_tensors_hooked() {
  static PyObject* const hooks = [] {
    Ref native = checked(PyObject_GetAttrString(torch_library()->module.get(), "_C"));
    Ref autograd = checked(PyObject_GetAttrString(native.get(), "_autograd"));
    return checked(PyObject_GetAttrString(autograd.get(), "_top_saved_tensors_default_hooks")).release();
  }();
  return !checked(PyObject_CallOneArg(hooks, Py_False)).is(Py_None);
}

void add_nodes(const std::shared_ptr<SegmentBackward>& backward, std::span<const Ref> inputs, PyObject* const* tensors, std::span<const std::int64_t> symbols) {
  static PyObject* const add = checked(PyObject_GetAttrString(checked(imported("tenon._autograd")).get(), "add_node")).release();
  for (std::size_t node = 0; node < backward->gradients().nodes.size(); ++node)
    checked(PyObject_Call(add, node_arguments(backward, node, inputs, tensors, symbols).get(), nullptr));
}

}  // namespace tenon::python
