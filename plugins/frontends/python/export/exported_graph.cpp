#include "python/export/exported_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <variant>

#include "core/abi/dlpack_types.h"
#include "core/ir/buffer.h"
#include "core/ir/printer.h"
#include "python/graph/graph_constants.h"
#include "python/library/torch_library.h"
#include "python/metadata/strides.h"
#include "python/metadata/tensor_spec.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/results/array_results.h"
#include "python/results/torch_results.h"
#include "python/session/errors.h"
#include "python/session/messages.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

void set_failure() {
  const TenonFailure* failure = tenon_last_error();
  set_error(ErrorClass::error, failure && failure->text ? failure->text : "libtenon failed without a reason");
}

/// What the type holds: the graph, in memory of its own or read from a file, and the program once it has been called.
class Exported {
 public:
  explicit Exported(ir::Graph graph) : graph_(std::move(graph)) {}
  Exported(TenonCapturedGraph* file) : file_(file) {
    const TenonGraph& read = *tenon_captured_graph(file);
    graph_ = ir::read_buffer(read.buffer, {read.constants, read.constant_count}).value();
    signature_ = tenon_captured_signature(file);
  }
  ~Exported() {
    if (program_) tenon_program_release(program_);
    if (file_) tenon_captured_release(file_);
  }
  Exported(const Exported&) = delete;

  ir::Graph& graph() { return graph_; }
  const std::string& signature() const { return signature_; }

  std::int32_t save(const char* signature, const char* path) const {
    const Crossing crossing(graph_);
    return tenon_export_save(&crossing.graph, signature, path);
  }

  std::int32_t compile(TenonSession* host, const std::vector<const char*>& backends) {
    auto crossing = std::make_unique<Crossing>(graph_);
    TenonCompileRequest request{};
    request.struct_size = sizeof request;
    request.graph = crossing->graph;
    request.backends = backends.data();
    request.backend_count = backends.size();
    request.release_constants = [](void* context) { delete static_cast<Crossing*>(context); };
    request.context = crossing.get();
    TenonProgram* made = nullptr;
    const std::int32_t code = tenon_compile(host, &request, &made);
    if (code != TENON_OK) return code;
    crossing.release();  // now the program's
    if (program_) tenon_program_release(program_);
    program_ = made;
    return code;
  }
  TenonProgram* program() const { return program_; }

 private:
  struct Crossing {
    explicit Crossing(const ir::Graph& from) : buffer(ir::write_buffer(from)), constants(from) {
      graph = {sizeof(TenonGraph), ir::bytes_of(buffer), constants.pointers.data(), constants.pointers.size()};
    }
    std::vector<std::uint8_t> buffer;
    GraphConstants constants;
    TenonGraph graph{};
  };

  ir::Graph graph_;
  std::string signature_ = "{}";
  TenonCapturedGraph* file_ = nullptr;  // whose bytes the graph borrows
  TenonProgram* program_ = nullptr;
};

struct ExportedGraph {
  PyObject_HEAD
  Exported* exported;
};

Exported& exported_of(PyObject* self) { return *reinterpret_cast<ExportedGraph*>(self)->exported; }

PyTypeObject g_exported_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

void free_exported(PyObject* self) {
  delete reinterpret_cast<ExportedGraph*>(self)->exported;
  Py_TYPE(self)->tp_free(self);
}

Ref wrap(std::unique_ptr<Exported> exported) {
  ExportedGraph* made = PyObject_New(ExportedGraph, &g_exported_type);
  if (!made) throw PythonError();
  made->exported = exported.release();
  return Ref::steal(reinterpret_cast<PyObject*>(made));
}

// ---- a call

/// An input as DLPack has it. Borrows the object.
struct InputTensor {
  TensorSpec spec;
  alignas(16) unsigned char scratch[16];
  DLTensor tensor;

  /// Why the object cannot be given; empty when it can.
  std::string take(PyObject* object) {
    auto read = read_spec(object);
    if (const auto* odd = std::get_if<std::string>(&read)) return *odd;
    spec = std::move(std::get<TensorSpec>(read));
    tensor = {const_cast<void*>(data_of(spec, object, scratch)), {kDLCPU, 0}, static_cast<std::int32_t>(spec.shape.size()), dlpack_type(spec.dtype),
              spec.shape.data(), spec.strides.data(), 0};
    return {};
  }
};

/// The result as an object of the kind that the program gives ("torch", "array", "scalar"). Strides of `given` are never null.
Ref object_of(const DLTensor& given, const std::string& kind) {
  const DType dtype = *dtype_of(given.dtype);
  const std::span<const std::int64_t> shape(given.shape, static_cast<std::size_t>(given.ndim)), strides(given.strides, shape.size());
  const char* from = static_cast<const char*>(given.data) + given.byte_offset;
  if (kind == "scalar") return checked(new_array_scalar(dtype, from));
  void* data = nullptr;
  const bool torch = kind == "torch";
  if (torch && !torch_library()) throw PythonError();
  Ref made = checked(torch ? new_torch_tensor(*torch_library(), dtype, shape, strides, data) : new_array(dtype, shape, strides, data));
  if (const std::size_t bytes = byte_count(dtype, shape)) std::memcpy(data, from, bytes);  // results have no gaps
  return made;
}

std::size_t count_results(const ir::Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count(graph.outputs(), ir::OutputKind::result, &ir::Output::kind));
}

/// The strings of a list. Throws PythonError where one is none.
std::vector<std::string> words_of(PyObject* list) {
  std::vector<std::string> words;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    const char* word = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
    if (!word) throw PythonError();
    words.emplace_back(word);
  }
  return words;
}

/// run(inputs, kinds): the results, in order; `kinds` of each.
PyObject* run(PyObject* self, PyObject* args) {
  const Delivery delivery;
  PyObject *inputs = nullptr, *kinds = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!:run", &PyList_Type, &inputs, &PyList_Type, &kinds)) return nullptr;
  try {
    Exported& exported = exported_of(self);
    const std::vector<std::string> wanted = words_of(kinds);
    if (!exported.program() || wanted.size() != count_results(exported.graph())) {
      set_error(ErrorClass::error, exported.program() ? fmt::format("the program gives {} results; kinds for {} given", count_results(exported.graph()), wanted.size()) : "the program is not compiled");
      return nullptr;
    }
    std::vector<InputTensor> tensors(static_cast<std::size_t>(PyList_GET_SIZE(inputs)));
    std::vector<const DLTensor*> pointers;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (std::string odd = tensors[i].take(PyList_GET_ITEM(inputs, static_cast<Py_ssize_t>(i))); !odd.empty()) {
        set_error(ErrorClass::error, fmt::format("{} cannot be given to an exported program", odd));
        return nullptr;
      }
      pointers.push_back(&tensors[i].tensor);
    }
    struct Results {
      std::vector<DLManagedTensorVersioned*> tensors;
      ~Results() {
        for (DLManagedTensorVersioned* tensor : tensors)
          if (tensor && tensor->deleter) tensor->deleter(tensor);
      }
    } results{std::vector<DLManagedTensorVersioned*>(static_cast<std::size_t>(PyList_GET_SIZE(kinds)), nullptr)};
    std::int32_t code = TENON_OK;
    {
      const GilReleased released;
      code = tenon_program_call(exported.program(), pointers.data(), pointers.size(), results.tensors.data(), results.tensors.size());
    }
    if (code != TENON_OK) {
      set_failure();
      return nullptr;
    }
    Ref list = checked(PyList_New(PyList_GET_SIZE(kinds)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(kinds); ++i)
      PyList_SET_ITEM(list.get(), i, object_of(results.tensors[static_cast<std::size_t>(i)]->dl_tensor, wanted[static_cast<std::size_t>(i)]).release());
    return list.release();
  } catch (const PythonError&) {
  } catch (const std::exception& failure) {
    set_error(ErrorClass::error, failure.what());
  }
  return nullptr;
}

PyObject* compile(PyObject* self, PyObject* names) {
  const Delivery delivery;
  TenonSession* host = session();
  Ref fast = Ref::steal(PySequence_Fast(names, "backends must be a sequence of names"));
  if (!host || !fast) return nullptr;
  std::vector<const char*> backends;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    backends.push_back(PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(fast.get(), i)));
    if (!backends.back()) return nullptr;
  }
  std::int32_t code = TENON_OK;
  {
    const GilReleased released;
    code = exported_of(self).compile(host, backends);
  }
  if (code == TENON_OK) Py_RETURN_NONE;
  set_host_error();
  return nullptr;
}

// ---- the rest

PyObject* save(PyObject* self, PyObject* args) {
  const char* signature = nullptr;
  PyObject* path = nullptr;
  if (!PyArg_ParseTuple(args, "sO&:save", &signature, PyUnicode_FSConverter, &path)) return nullptr;
  const std::int32_t code = exported_of(self).save(signature, PyBytes_AS_STRING(path));
  Py_DECREF(path);
  if (code == TENON_OK) Py_RETURN_NONE;
  set_failure();
  return nullptr;
}

/// name_outputs(names): for people, and for the command.
PyObject* name_outputs(PyObject* self, PyObject* names) {
  ir::Graph& graph = exported_of(self).graph();
  Py_ssize_t next = 0;
  for (const ir::Output& output : graph.outputs()) {
    if (output.kind != ir::OutputKind::result || !PyList_Check(names) || next >= PyList_GET_SIZE(names)) continue;
    const char* name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, next++));
    if (!name) return nullptr;
    graph.set_name(output.value, name);
  }
  Py_RETURN_NONE;
}

PyObject* text(PyObject* self, PyObject*) { return PyUnicode_FromString(ir::print_graph(exported_of(self).graph()).c_str()); }

PyObject* signature(PyObject* self, void*) { return PyUnicode_FromString(exported_of(self).signature().c_str()); }

PyObject* input_types(PyObject* self, void*) {
  const ir::Graph& graph = exported_of(self).graph();
  Ref list = Ref::steal(PyList_New(0));
  for (ir::ValueId input : graph.inputs()) {
    Ref item = Ref::steal(Py_BuildValue("(ss)", graph.value(input).name.c_str(), ir::print_type(graph, graph.type(input)).c_str()));
    if (!list || !item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.release();
}

PyObject* result_count(PyObject* self, void*) { return PyLong_FromSize_t(count_results(exported_of(self).graph())); }

PyObject* updates(PyObject* self, void*) {
  const ir::Graph& graph = exported_of(self).graph();
  Ref list = Ref::steal(PyList_New(0));
  for (const ir::Output& output : graph.outputs()) {
    if (output.kind != ir::OutputKind::update) continue;
    Ref index = Ref::steal(PyLong_FromUnsignedLong(graph.value(output.target).index));
    if (!list || !index || PyList_Append(list.get(), index.get()) != 0) return nullptr;
  }
  return list.release();
}

PyMethodDef kExportedMethods[] = {
    {"compile", compile, METH_O, "Compiles for the backends of these names; none: the configuration's."},
    {"run", run, METH_VARARGS, "run(inputs, kinds): the results in order."},
    {"save", save, METH_VARARGS, "save(signature, path)"},
    {"name_outputs", name_outputs, METH_O, "Names the results."},
    {"text", text, METH_NOARGS, "The graph in Tenon's text form."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef kExportedProperties[] = {
    {"signature", signature, nullptr, "What was saved with the graph, as JSON.", nullptr},
    {"inputs", input_types, nullptr, "Name and type of each input.", nullptr},
    {"result_count", result_count, nullptr, "How many results there are.", nullptr},
    {"updates", updates, nullptr, "The inputs that are written to, in the order of the outputs.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

Ref make_exported_graph(ir::Graph graph) { return wrap(std::make_unique<Exported>(std::move(graph))); }

Ref load_exported_graph(const char* path) {
  TenonSession* host = session();
  if (!host) return {};
  TenonCapturedGraph* file = nullptr;
  if (tenon_capture_file(host, path, "{}", &file) != TENON_OK) {
    set_failure();
    return {};
  }
  return wrap(std::make_unique<Exported>(file));
}

bool add_exported_graph_type(PyObject* module) {
  g_exported_type.tp_name = "tenon._tenon.ExportedGraph";
  g_exported_type.tp_doc = "A whole graph, apart from the program it was captured of.";
  g_exported_type.tp_basicsize = sizeof(ExportedGraph);
  g_exported_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  g_exported_type.tp_dealloc = free_exported;
  g_exported_type.tp_methods = kExportedMethods;
  g_exported_type.tp_getset = kExportedProperties;
  return PyModule_AddType(module, &g_exported_type) == 0;
}

}  // namespace tenon::python
