#include "python/call/gradients/function_node.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "python/call/program/run_frame.h"
#include "python/library/torch_library.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/sequences.h"
#include "python/results/device_results.h"
#include "python/results/torch_results.h"
#include "python/session/errors.h"

namespace tenon::python {
namespace {

bool is_tensor(const CapturedGraph& segment, std::uint32_t input) { return segment.inputs[input].kind == TensorKind::torch; }

/// What one call leaves to its backward besides the tensors that torch keeps for it.
struct CallBackward {
  PyObject_HEAD
  struct State {
    std::shared_ptr<SegmentBackward> backward;
    std::size_t node = 0;  // of the segment
    std::vector<std::int64_t> symbols;
    std::vector<Ref> inputs;  // of the segment, by number: those that get a gradient, and no tensors that are kept
    std::vector<Ref> inner;   // by value inside the segment that gets a gradient: what leads to its node
  } state;
};

PyTypeObject* call_backward_type();

Ref new_call(std::shared_ptr<SegmentBackward> backward, std::size_t node, std::span<const std::int64_t> symbols, PyObject* const* inputs, std::vector<Ref> inner) {
  auto* made = PyObject_GC_New(CallBackward, call_backward_type());
  if (!made) throw PythonError();
  new (&made->state) CallBackward::State{std::move(backward), node, {symbols.begin(), symbols.end()}, {}, std::move(inner)};
  const SegmentBackward& segment = *made->state.backward;
  const rewrite::BackwardGraph& part = segment.node(node).part;
  std::vector<Ref>& held = made->state.inputs;
  held.resize(segment.gradients().forward.inputs().size());
  for (std::size_t w = 0; w < segment.gradients().wanted.size(); ++w)
    if (const std::uint32_t i = segment.gradients().wanted[w]; part.gradients[w]) held[i] = Ref::borrow(inputs[i]);
  for (std::uint32_t i : part.kept_inputs)
    if (!is_tensor(segment.segment(), i)) held[i] = Ref::borrow(inputs[i]);
  PyObject_GC_Track(reinterpret_cast<PyObject*>(made));
  return Ref::steal(reinterpret_cast<PyObject*>(made));
}

Ref of_autograd(const char* function, PyObject* args) {
  Ref found = checked(PyObject_GetAttrString(checked(imported("tenon._autograd")).get(), function));
  return checked(PyObject_Call(found.get(), args, nullptr));
}

/// A tensor where the output is to be; `data` gets its first element.
Ref new_tensor(const TensorOutput& output, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, void*& data) {
  return checked(output.device.is_host() ? new_torch_tensor(*known_torch_library(), output.dtype, sizes, strides, data)
                                         : new_device_tensor(output.device, output.dtype, sizes, strides, data));
}

/// A tensor of its type and shape, all in one element.
Ref placeholder(const TensorOutput& output, std::span<const std::int64_t> symbols) {
  const std::size_t rank = output.shape.size();
  std::vector<std::int64_t> sizes(2 * rank, 0), strides(rank, 0);
  if (output.varying_shape.empty()) std::ranges::copy(output.shape, sizes.begin());
  else evaluate_layout(output, symbols, sizes.data());
  void* data = nullptr;
  return new_tensor(output, {sizes.data(), rank}, strides, data);
}

/// The nodes of a run while they are made, each after what it hands gradients to.
class NewFunctionNodes {
 public:
  NewFunctionNodes(const std::shared_ptr<SegmentBackward>& backward, const NodesOfRun& run) : backward_(backward), gradients_(backward->gradients()), run_(run) {}

  void add_all() {
    for (std::size_t n = 0; n < gradients_.nodes.size(); ++n) of_autograd("add_node", arguments(n).get());
  }

 private:
  /// (call, kept tensors, results, which of them are for nodes alone, order, *what gets a gradient), as tenon._autograd.add_node takes them.
  Ref arguments(std::size_t n) {
    const GradientNode& made = gradients_.nodes[n];
    std::vector<Ref> kept, results, unseen, order, inputs, inner;
    for (std::uint32_t i : made.part.kept_inputs)
      if (is_tensor(backward_->segment(), i)) kept.push_back(Ref::borrow(run_.inputs[i]));
    for (std::uint32_t t : made.kept_tensors) kept.push_back(Ref::borrow(run_.tensors[t]));
    for (std::size_t w = 0; w < gradients_.wanted_count(); ++w) {
      if (!made.part.gradients[w]) continue;
      if (gradients_.is_input(w)) inputs.push_back(Ref::borrow(run_.inputs[gradients_.wanted[w]]));
      else if (!gradients_.is_inner(w)) inner.push_back(Ref::borrow(run_.outer[w - gradients_.wanted.size()]));
      else inner.push_back(leading_to(gradients_.inner_tensor(w)));
    }
    for (std::uint32_t t : made.results) {
      results.push_back(is_unseen(t) ? unseen_[t] = placeholder(backward_->segment().tensors[t], run_.symbols) : Ref::borrow(run_.tensors[t]));
      unseen.push_back(Ref::borrow(is_unseen(t) ? Py_True : Py_False));
    }
    if (made.part.reads_result) kept.push_back(results[0]);
    for (std::uint32_t number : made.order) order.push_back(checked(PyLong_FromUnsignedLong(number)));
    inputs.insert(inputs.end(), inner.begin(), inner.end());
    std::vector<Ref> all = {new_call(backward_, n, run_.symbols, run_.inputs, std::move(inner)), tuple_of(kept), tuple_of(results), tuple_of(unseen), tuple_of(order)};
    all.insert(all.end(), inputs.begin(), inputs.end());
    return tuple_of(all);
  }

  bool is_unseen(std::uint32_t tensor) const { return backward_->segment().tensors[tensor].kind == TensorOutput::Kind::unseen; }

  /// What has the node of an inner value: not the tensor itself, which the program may write.
  Ref leading_to(std::uint32_t tensor) {
    if (is_unseen(tensor)) return unseen_.at(tensor);
    if (!run_.tensors[tensor]) run_.make_view(tensor);
    return of_autograd("leading_to", checked(PyTuple_Pack(1, run_.tensors[tensor])).get());
  }

  const std::shared_ptr<SegmentBackward>& backward_;
  const SegmentGradients& gradients_;
  const NodesOfRun& run_;
  std::unordered_map<std::uint32_t, Ref> unseen_;
};

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

/// The tensors of the function; empty where one is given. `inputs`: by graph input, null where it reads nothing.
std::vector<Ref> run_function(const GraphFunction& function, std::span<PyObject* const> inputs, std::span<const std::int64_t> symbols) {
  if (function.callable()) return function.call(inputs);
  SmallArray<void*, 24> data(function.input_count() + function.output_count() + 1);
  SmallArray<ScalarMemory, 4> scalars(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    data[i] = inputs[i] ? const_cast<void*>(data_of(function.captured().inputs[i], inputs[i], scalars[i].bytes)) : nullptr;
  std::vector<Ref> made(function.captured().tensors.size());
  function.make_tensors(data.data() + inputs.size(), symbols, [&](std::size_t i, const TensorOutput& output, auto shape, auto strides, void*& memory) {
    made[i] = new_tensor(output, shape, strides, memory);
  });
  bool done = false;
  {
    const GilReleased released;
    done = function.run(data.data(), symbols);
  }
  if (done) return made;
  set_host_error();
  throw PythonError();
}

bool requires_grad(PyObject* tensor) { return checked(PyObject_GetAttrString(tensor, "requires_grad")).get() == Py_True; }

/// What a call of gradients() or again() is given: the tensors that torch has kept, and a gradient for each result, None where there is none.
struct Given {
  std::vector<PyObject*> kept_inputs, kept_tensors, tangents;
  PyObject* result = nullptr;  // as torch gives it, where gradients are computed with it: what leads to the node
  std::vector<TangentHistory> histories;

  Given(const CallBackward::State& state, PyObject* const* args, Py_ssize_t count) {
    if (count != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1])) {
      PyErr_SetString(PyExc_TypeError, "a backward takes two tuples");
      throw PythonError();
    }
    const GradientNode& node = state.backward->node(state.node);
    Py_ssize_t next = 0;
    for (std::uint32_t i : node.part.kept_inputs) kept_inputs.push_back(is_tensor(state.backward->segment(), i) ? PyTuple_GET_ITEM(args[0], next++) : state.inputs[i].get());
    for (std::size_t t = 0; t < node.kept_tensors.size(); ++t) kept_tensors.push_back(PyTuple_GET_ITEM(args[0], next++));
    if (node.part.reads_result) result = PyTuple_GET_ITEM(args[0], next);
    for (Py_ssize_t t = 0; t < PyTuple_GET_SIZE(args[1]); ++t) {
      PyObject* tangent = PyTuple_GET_ITEM(args[1], t);
      histories.push_back(tangent == Py_None ? TangentHistory::none : requires_grad(tangent) ? TangentHistory::tracked : TangentHistory::untracked);
      tangents.push_back(tangent == Py_None ? nullptr : tangent);
    }
  }
};

Ref none_for_nothing(const Ref& tensor) { return tensor ? tensor : Ref::borrow(Py_None); }

/// gradients(kept, tangents): one for each input that gets one.
PyObject* gradients(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return reported([&]() -> Ref {
    const CallBackward::State& state = state_of(self);
    state.backward->require_as_at_call();
    const Given given(state, args, count);
    BackwardRequest request{{}, std::vector<bool>(state.backward->gradients().wanted_count(), true), state.backward->rounding()};
    for (TangentHistory h : given.histories) request.tangents.push_back(h == TangentHistory::none ? TangentLayout::none : TangentLayout::row_major);
    std::vector<PyObject*> inputs = given.kept_inputs;
    inputs.insert(inputs.end(), given.kept_tensors.begin(), given.kept_tensors.end());
    inputs.insert(inputs.end(), given.tangents.begin(), given.tangents.end());
    const SegmentBackward::Function& function = state.backward->function(state.node, request, inputs);
    const std::vector<Ref> made = run_function(function.function, inputs, state.symbols);
    std::vector<Ref> by_input;
    for (std::size_t w = 0; w < function.gradients.size(); ++w)
      if (state.backward->node(state.node).part.gradients[w]) by_input.push_back(none_for_nothing(function.gradients[w] ? made[*function.gradients[w]] : Ref()));
    return tuple_of(by_input);
  });
}

/// Nodes of the gradients that torch does not differentiate, on the way to all that these were computed for, or beside others.
void add_refusing_nodes(const GraphFunction& function, const std::vector<Ref>& made, const CallBackward::State& state) {
  const std::vector<TensorOutput>& tensors = function.captured().tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].refusal.empty()) continue;
    std::vector<Ref> arguments = {made[t], checked(PyUnicode_FromString(tensors[t].refusal.c_str()))};
    if (tensors[t].refusal_beside) {
      of_autograd("add_refusal_beside", tuple_of(arguments).get());
      continue;
    }
    for (const std::vector<Ref>* tracked : {&state.inputs, &state.inner})
      std::ranges::copy_if(*tracked, std::back_inserter(arguments), [&](const Ref& tensor) { return !tensors[t].refusal_ends && tensor && requires_grad(tensor.get()); });
    of_autograd("add_refusing_node", tuple_of(arguments).get());
  }
}

/// again(kept, tangents): the same, as results of nodes of torch's autograd graph.
PyObject* again(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return reported([&]() -> Ref {
    const CallBackward::State& state = state_of(self);
    state.backward->require_as_at_call();
    const Given given(state, args, count);
    const GradientNode& node = state.backward->node(state.node);
    std::vector<PyObject*> inputs(state.inputs.size(), nullptr), tensors;
    for (std::size_t k = 0; k < given.kept_inputs.size(); ++k) inputs[node.part.kept_inputs[k]] = given.kept_inputs[k];
    inputs.insert(inputs.end(), given.tangents.begin(), given.tangents.end());
    inputs.insert(inputs.end(), given.kept_tensors.begin(), given.kept_tensors.end());
    SegmentBackward::Again& again = state.backward->again(state.node, given.histories, inputs);
    if (!again.function) return Ref::steal(gradients(self, args, count));
    const KeptRuns kept_runs(again.runs);
    std::vector<Ref> made = run_function(*again.function, inputs, state.symbols);
    for (std::uint32_t t : again.runs.tensors) made[t] = KeptRuns::owner(made[t].get());
    for (const Ref& tensor : made) tensors.push_back(tensor.get());
    const std::size_t count_of_gradients = node.whole.captured->tensors.size();
    for (std::size_t k = 0; k < given.kept_tensors.size(); ++k) tensors[count_of_gradients + k] = given.kept_tensors[k];
    for (std::size_t i = 0; i < state.inputs.size(); ++i)
      if (state.inputs[i]) inputs[i] = state.inputs[i].get();
    std::vector<PyObject*> outer;
    for (const Ref& leading : state.inner) outer.push_back(leading.get());
    if (given.result) outer.push_back(given.result);
    add_nodes(again.backward, {.inputs = inputs.data(), .tensors = tensors.data(), .symbols = state.symbols, .make_view = {}, .outer = outer.data()});
    add_refusing_nodes(*again.function, made, state);
    return tuple_of(std::vector<Ref>(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(count_of_gradients)));
  });
}

/// has_functions(): whether there are gradients where no result has one.
PyObject* has_functions(PyObject* self, PyObject*) {
  return reported([&] { return Ref::borrow(state_of(self).backward->gradients().has_functions ? Py_True : Py_False); });
}

/// asked_once(): whether torch lets go of what is kept. It always does where the result is: an attribute that leads back to its node would keep that.
PyObject* asked_once(PyObject* self, PyObject*) {
  return reported([&] {
    const rewrite::BackwardGraph& part = state_of(self).backward->node(state_of(self).node).part;
    return Ref::borrow(part.asked_once || part.reads_result ? Py_True : Py_False);
  });
}

/// refuse_written(text): raises where the program has kept a tensor by itself that was written.
PyObject* refuse_written(PyObject* self, PyObject* text) {
  return reported([&] {
    state_of(self).backward->refuse_written(PyUnicode_AsUTF8(text));
    return Ref::borrow(Py_None);
  });
}

PyMethodDef kMethods[] = {
    {"refuse_written", refuse_written, METH_O, nullptr},
    {"asked_once", asked_once, METH_NOARGS, nullptr},
    {"has_functions", has_functions, METH_NOARGS, nullptr},
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
      for (const Ref& tensor : state_of(self).inner) Py_VISIT(tensor.get());
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

void add_function_nodes(const std::shared_ptr<SegmentBackward>& backward, const NodesOfRun& run) { NewFunctionNodes(backward, run).add_all(); }

}  // namespace tenon::python
