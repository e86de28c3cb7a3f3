#include "python/call/program.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "core/ir/buffer.h"
#include "core/ops/node_builder.h"
#include "python/call/errors.h"
#include "python/call/session.h"
#include "python/call/traced_graph.h"
#include "python/evaluator/graph_break.h"

namespace tenon::python {
namespace {

DLDataType dl_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(size_of(dtype) * 8);
  if (is_bool(dtype)) return {kDLBool, 8, 1};
  if (dtype == DType::bf16) return {kDLBfloat, bits, 1};
  if (is_float(dtype)) return {kDLFloat, bits, 1};
  if (is_complex(dtype)) return {kDLComplex, bits, 1};
  return {static_cast<std::uint8_t>(is_signed_int(dtype) ? kDLInt : kDLUInt), bits, 1};
}

/// The constants of a graph as DLPack tensors. Their bytes are kept alive by `owners` until the program is released.
struct Constants {
  std::vector<std::shared_ptr<const void>> owners;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<DLTensor> tensors;
  std::vector<const DLTensor*> pointers;
};

std::unique_ptr<Constants> constants_of(const ir::Graph& graph) {
  auto constants = std::make_unique<Constants>();
  const std::size_t count = graph.constants().size();
  constants->shapes.resize(count);
  constants->tensors.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ir::Constant& constant = graph.constants()[i];
    for (const ir::Dim& dim : constant.type.shape) constants->shapes[i].push_back(dim.constant());
    constants->owners.push_back(constant.owner);
    constants->tensors[i] = {const_cast<void*>(constant.data), {kDLCPU, 0}, static_cast<std::int32_t>(constants->shapes[i].size()),
                             dl_type(constant.type.dtype), constants->shapes[i].data(), nullptr, 0};
    constants->pointers.push_back(&constants->tensors[i]);
  }
  return constants;
}

/// The value to compute for one result, such that its row-major memory is what eager execution leaves in the tensor.
ir::ValueId laid_out(ops::NodeBuilder& builder, ir::ValueId value, const TensorOutput& output) {
  const bool plain = is_row_major(output.shape, output.strides);
  if (plain && builder.graph().value(value).kind == ir::ValueKind::result) return value;
  if (plain) return builder.one("reshape", {value}, {{"shape", ir::Shape(output.shape.begin(), output.shape.end())}});
  ir::Shape order;
  for (std::int64_t dim : memory_order(output.shape, output.strides)) order.push_back(dim);
  return builder.one("permute", {value}, {{"dims", order}});
}

ir::Graph graph_to_submit(const CapturedGraph& captured) {
  ir::Graph graph = captured.graph.clone();
  ops::NodeBuilder builder(graph);
  std::vector<ir::Output> outputs(graph.outputs().begin(), graph.outputs().end());
  for (const TensorOutput& output : captured.tensors)
    if (output.kind == TensorOutput::Kind::fresh) outputs[output.index].value = laid_out(builder, outputs[output.index].value, output);
  graph.set_outputs(std::move(outputs));
  return graph;
}

}  // namespace

Program::Program(Program&& other) noexcept : x_native(std::exchange(other.x_native, nullptr)), x_callable(std::move(other.x_callable)) {}

Program& Program::operator=(Program&& other) noexcept {
  std::swap(x_native, other.x_native);
  std::swap(x_callable, other.x_callable);
  return *this;
}

Program::~Program() {
  if (x_native) tenon_program_release(x_native);
}

std::optional<Program> compile_natively(const CapturedGraph& captured, const Settings& settings) {
  TenonSession* host = session();
  if (!host) return std::nullopt;
  Program program;
  try {
    const ir::Graph graph = graph_to_submit(captured);
    const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
    std::unique_ptr<Constants> constants = constants_of(graph);
    std::vector<const char*> backends;
    for (const std::string& name : settings.backends) backends.push_back(name.c_str());
    TenonCompileRequest request{};
    request.struct_size = sizeof request;
    request.graph = {sizeof(TenonGraph), ir::bytes_of(buffer), constants->pointers.data(), constants->pointers.size()};
    request.backends = backends.data();
    request.backend_count = backends.size();
    request.options = settings.options.c_str();
    request.release_constants = [](void* context) { delete static_cast<Constants*>(context); };
    request.context = constants.get();
    int32_t code = TENON_OK;
    Py_BEGIN_ALLOW_THREADS;
    code = tenon_compile(host, &request, &program.x_native);
    Py_END_ALLOW_THREADS;
    if (code == TENON_OK) {
      constants.release();  // now the program's
      return program;
    }
    set_host_error();
  } catch (const std::exception& failure) {
    set_error(ErrorClass::error, fmt::format("the captured graph could not be submitted: {}", failure.what()));
  }
  return std::nullopt;
}

std::optional<Program> compile_with_callable(const CapturedGraph& captured, const Settings& settings, const std::string& name,
                                             PyObject* const* inputs) {
  Program program;
  try {
    Ref traced = make_traced_graph(captured, name);
    Ref examples = checked(PyList_New(static_cast<Py_ssize_t>(captured.inputs.size())));
    for (std::size_t i = 0; i < captured.inputs.size(); ++i) PyList_SET_ITEM(examples.get(), static_cast<Py_ssize_t>(i), Py_NewRef(inputs[i]));
    program.x_callable = Ref::steal(PyObject_CallFunctionObjArgs(settings.callable.get(), traced.get(), examples.get(), nullptr));
    if (program.x_callable && !PyCallable_Check(program.x_callable.get()))
      PyErr_Format(PyExc_TypeError, "it gave %s, not a callable", Py_TYPE(program.x_callable.get())->tp_name);
  } catch (const PythonError&) {
  }
  if (!PyErr_Occurred()) return program;
  set_error_from_current(ErrorClass::compile, fmt::format("the backend '{}' failed to compile {}", settings.name, name));
  return std::nullopt;
}

}  // namespace tenon::python
