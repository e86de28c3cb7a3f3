// A module for tests: the evaluator with a recorder whose tensors and stand-ins are Python classes that the test supplies.
#include "python/capture/capture.h"
#include "python/decode/code.h"

namespace {

using namespace tenon::python;

/// Asks a Python object: `tensor_type`, `stand_in_type`, `scalar_type`, `make(real)`, `taken` (a container of callables), `call(f, args, kwargs)`.
class PythonRecorder : public Recorder {
 public:
  explicit PythonRecorder(PyObject* tracer) : tracer_(tracer) {
    if (tracer == Py_None) return;
    tensor_type_ = checked(PyObject_GetAttrString(tracer, "tensor_type"));
    stand_in_type_ = checked(PyObject_GetAttrString(tracer, "stand_in_type"));
    taken_ = checked(PyObject_GetAttrString(tracer, "taken"));
  }

  Role role(PyTypeObject* type) override {
    if (stand_in_type_.is(reinterpret_cast<PyObject*>(type))) return Role::stand_in;
    if (tensor_type_ && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(tensor_type_.get()))) return Role::tensor;
    return Role::other;
  }
  Ref input(PyObject* real, SourceId source, GuardSet& guards) override {
    guards.add_distinct(source);
    Ref stand_in = checked(PyObject_CallMethod(tracer_, "make", "O", real));
    inputs_.emplace_back(stand_in, source);
    return stand_in;
  }
  PyTypeObject* apparent_type(PyObject*) override { return reinterpret_cast<PyTypeObject*>(tensor_type_.get()); }
  bool takes(PyObject* callable) override {
    if (!taken_) return false;
    const int found = PySequence_Contains(taken_.get(), callable);
    if (found < 0) PyErr_Clear();
    return found == 1;
  }
  Ref call(PyObject* callable, PyObject* args, PyObject* kwargs) override {
    return checked(PyObject_CallMethod(tracer_, "call", "OOO", callable, args, kwargs ? kwargs : Py_None));
  }
  std::uint32_t output(PyObject* stand_in) override {
    outputs.push_back(Ref::borrow(stand_in));
    return static_cast<std::uint32_t>(outputs.size() - 1);
  }
  SourceId input_source(PyObject* stand_in) override {
    for (const auto& [object, source] : inputs_)
      if (object.is(stand_in)) return source;
    return {};
  }

  std::vector<Ref> outputs;

 private:
  PyObject* tracer_;
  Ref tensor_type_, stand_in_type_, taken_;
  std::vector<std::pair<Ref, SourceId>> inputs_;
};

/// Arguments in the form of vectorcall, from a tuple and a dict.
struct Call {
  std::vector<PyObject*> values;
  Ref names;
  CallArguments arguments;

  Call(PyObject* args, PyObject* kwargs) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) values.push_back(PyTuple_GET_ITEM(args, i));
    arguments.positional = values.size();
    if (kwargs != nullptr && kwargs != Py_None && PyDict_GET_SIZE(kwargs) > 0) {
      names = checked(PySequence_Tuple(kwargs));
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) values.push_back(PyDict_GetItem(kwargs, PyTuple_GET_ITEM(names.get(), i)));
    }
    arguments.values = values.data();
    arguments.keyword_names = names.get();
  }
};

constexpr const char* kCapsule = "tenon.segment";

void release_segment(PyObject* capsule) { delete static_cast<Segment*>(PyCapsule_GetPointer(capsule, kCapsule)); }

PyObject* strings(const std::vector<std::string>& all) {
  Ref list = checked(PyList_New(0));
  for (const std::string& each : all) checked(PyList_Append(list.get(), checked(PyUnicode_FromString(each.c_str())).get()));
  return list.release();
}

template <class Body>
PyObject* guarded(Body body) {
  try {
    return body();
  } catch (const PythonError&) {
    return nullptr;
  } catch (const std::exception& failure) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, failure.what());
    return nullptr;
  }
}

/// capture(callable, args, kwargs, tracer) -> (segment, guards, outputs, instructions) or (None, reason, function, code, line, hint)
PyObject* probe_capture(PyObject*, PyObject* arguments) {
  PyObject *callable, *args, *kwargs, *tracer;
  if (!PyArg_ParseTuple(arguments, "OO!OO", &callable, &PyTuple_Type, &args, &kwargs, &tracer)) return nullptr;
  return guarded([&]() -> PyObject* {
    Call call(args, kwargs);
    PythonRecorder recorder(tracer);
    auto result = capture({callable, nullptr, call.arguments}, recorder);
    if (auto* failed = std::get_if<CaptureBreak>(&result)) {
      const StackEntry place = failed->stack.empty() ? StackEntry() : failed->stack.back();
      return Py_BuildValue("(OsssiS)", Py_None, failed->reason.c_str(), place.function.c_str(), place.code.c_str(), place.line,
                           checked(PyUnicode_FromString(failed->hint.c_str())).get());
    }
    auto* segment = new Segment(std::move(std::get<Segment>(result)));
    Ref capsule = checked(PyCapsule_New(segment, kCapsule, release_segment));
    Ref outputs = checked(PyList_New(0));
    for (const Ref& output : recorder.outputs) checked(PyList_Append(outputs.get(), output.get()));
    Ref guards = Ref::steal(strings(segment->guards.describe()));
    return Py_BuildValue("(OOOn)", capsule.get(), guards.get(), outputs.get(), static_cast<Py_ssize_t>(segment->instructions));
  });
}

Segment* segment_of(PyObject* capsule) { return static_cast<Segment*>(PyCapsule_GetPointer(capsule, kCapsule)); }

/// check(segment, args, kwargs, times) -> bool
PyObject* probe_check(PyObject*, PyObject* arguments) {
  PyObject *capsule, *args, *kwargs;
  int times = 1;
  if (!PyArg_ParseTuple(arguments, "OO!O|i", &capsule, &PyTuple_Type, &args, &kwargs, &times)) return nullptr;
  return guarded([&]() -> PyObject* {
    Segment* segment = segment_of(capsule);
    if (segment == nullptr) throw PythonError();
    Call call(args, kwargs);
    bool holds = true;
    for (int i = 0; i < times; ++i) holds = segment->guards.check(call.arguments);
    return PyBool_FromLong(holds);
  });
}

/// explain(segment, args, kwargs) -> None or (source, guard, expected, found)
PyObject* probe_explain(PyObject*, PyObject* arguments) {
  PyObject *capsule, *args, *kwargs;
  if (!PyArg_ParseTuple(arguments, "OO!O", &capsule, &PyTuple_Type, &args, &kwargs)) return nullptr;
  return guarded([&]() -> PyObject* {
    Segment* segment = segment_of(capsule);
    if (segment == nullptr) throw PythonError();
    Call call(args, kwargs);
    auto failure = segment->guards.explain(call.arguments);
    if (!failure) Py_RETURN_NONE;
    return Py_BuildValue("(ssss)", failure->source.c_str(), failure->guard.c_str(), failure->expected.c_str(), failure->found.c_str());
  });
}

/// build(segment, outputs) -> the result, for the call that was checked last; `outputs` is a list of graph outputs
PyObject* probe_build(PyObject*, PyObject* arguments) {
  PyObject *capsule, *outputs;
  if (!PyArg_ParseTuple(arguments, "OO!", &capsule, &PyList_Type, &outputs)) return nullptr;
  return guarded([&]() -> PyObject* {
    Segment* segment = segment_of(capsule);
    if (segment == nullptr) throw PythonError();
    std::vector<PyObject*> given;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i) given.push_back(PyList_GET_ITEM(outputs, i));
    return complete(*segment, segment->guards.values(), given.data()).result.release();
  });
}

/// inputs(segment) -> the real tensors of the call that was checked last
PyObject* probe_inputs(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    Segment* segment = segment_of(capsule);
    if (segment == nullptr) throw PythonError();
    Ref list = checked(PyList_New(0));
    for (std::uint32_t slot : segment->input_slots) checked(PyList_Append(list.get(), segment->guards.values()[slot]));
    return list.release();
  });
}

/// signal(reason): raises the exception by which a stand-in breaks the graph
PyObject* probe_signal(PyObject*, PyObject* reason) {
  const char* text = PyUnicode_AsUTF8(reason);
  if (text != nullptr) set_break_signal(text);
  return nullptr;
}

PyObject* probe_reset(PyObject*, PyObject*) {
  forget_decoded_code();
  Py_RETURN_NONE;
}

PyMethodDef kMethods[] = {{"capture", probe_capture, METH_VARARGS, nullptr},
                          {"check", probe_check, METH_VARARGS, nullptr},
                          {"explain", probe_explain, METH_VARARGS, nullptr},
                          {"build", probe_build, METH_VARARGS, nullptr},
                          {"inputs", probe_inputs, METH_O, nullptr},
                          {"signal", probe_signal, METH_O, nullptr},
                          {"reset", probe_reset, METH_NOARGS, nullptr},
                          {nullptr, nullptr, 0, nullptr}};

PyModuleDef kModule = {PyModuleDef_HEAD_INIT, "evaluator_probe", nullptr, -1, kMethods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_evaluator_probe() { return PyModule_Create(&kModule); }
