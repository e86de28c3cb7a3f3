#include "python/call/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/ir/buffer.h"
#include "core/ops/build/node_builder.h"
#include "python/call/program/interrupt_watch.h"
#include "python/opaque/python_backend.h"
#include "python/compat/waiting_signals.h"
#include "python/graph/error_alarms.h"
#include "python/graph/graph_constants.h"
#include "python/graph/graph_of_ops.h"
#include "python/graph/traced_graph.h"
#include "python/library/torch_modes.h"
#include "python/library/torch_state.h"
#include "python/objects/gil.h"
#include "python/objects/graph_break.h"
#include "python/session/errors.h"
#include "python/session/session.h"

namespace tenon::python {
namespace {

/// The value as a result of a node: what is an input has a layout of its own.
ir::ValueId row_major_result(ops::NodeBuilder& builder, ir::ValueId value) {
  if (builder.graph().value(value).kind == ir::ValueKind::result) return value;
  return builder.one("reshape", {value}, {{"shape", ir::Shape(builder.graph().type(value).shape)}});
}

/// The dimensions along which a tensor shows one element.
std::vector<std::int64_t> shown_along(const TensorOutput& output) {
  std::vector<std::int64_t> dims;
  for (std::size_t d = 0; d < output.shape.size(); ++d)
    if (output.shape[d] > 1 && output.strides[d] == 0) dims.push_back(static_cast<std::int64_t>(d));
  return dims;
}

ir::ValueId element_along(ops::NodeBuilder& builder, ir::ValueId value, std::span<const std::int64_t> dims) {
  for (std::int64_t dim : dims) value = builder.one("slice", {value}, {{"dim", ir::Dim(dim)}, {"end", ir::Dim(1)}, {"start", ir::Dim(0)}, {"step", ir::Dim(1)}});
  return value;
}

/// The value to compute for one result, such that its row-major memory is what eager execution leaves in the tensor.
ir::ValueId laid_out(ops::NodeBuilder& builder, ir::ValueId value, const TensorOutput& output) {
  if (output.lies_in_rows()) return row_major_result(builder, value);
  if (const auto once = shown_along(output); !once.empty()) return row_major_result(builder, element_along(builder, value, once));
  ir::Shape order;
  for (std::int64_t dim : output.order.empty() ? memory_order(output.shape, output.strides) : output.order) order.push_back(dim);
  return builder.one("permute", {value}, {{"dims", order}});
}

/// Makes the nodes that read a frozen input read a constant. It stays an input, which nothing reads then.
void make_constant(ir::Graph& graph, ir::ValueId input, ir::Constant constant) {
  const ir::Type type = constant.type;
  const ConstantId id = graph.add_constant(std::move(constant));
  const std::vector<NodeId> readers(graph.nodes().begin(), graph.nodes().end());
  const NodeId made = graph.add_node("constant", {}, {{"index", ir::Dim(id.value)}}, {type}, {}, {}, readers.front());
  const ir::ValueId value = graph.node(made).results.front();
  for (NodeId reader : readers) std::ranges::replace(graph.mutable_node(reader).operands, input, value);
}

/// Of a result in fresh memory that is not in row-major order; over its sizes where these vary.
ir::Shape dense_strides_of(const TensorOutput& output) {
  ir::Shape strides(output.strides.begin(), output.strides.end());
  ir::Dim stride = 1;
  for (std::size_t at = output.order.size(); at-- > 0;) {  // none where no size varies
    const auto dim = static_cast<std::size_t>(output.order[at]);
    strides[dim] = stride;
    stride = stride * output.varying_shape[dim];
  }
  return strides;
}

/// The graph as libtenon runs it. After the outputs there may be two more: a bool that is true where branches
/// go as assumed, and an alarm, which is true where NumPy may have to warn.
ir::Graph graph_to_submit(const CapturedGraph& captured) {
  ir::Graph graph = captured.graph().clone();
  for (std::size_t i = 0; i < captured.frozen.size() && !graph.nodes().empty(); ++i)
    if (captured.frozen[i]) make_constant(graph, graph.inputs()[i], captured.frozen[i]->constant(graph.value(graph.inputs()[i]).name));
  ops::NodeBuilder builder(graph);
  std::vector<ir::Output> outputs(graph.outputs().begin(), graph.outputs().end());
  for (const TensorOutput& output : captured.tensors) {
    if (output.kind != TensorOutput::Kind::fresh) continue;
    ir::ValueId& value = outputs[output.index].value;
    if (is_complex(output.dtype) && !output.lies_in_rows())  // laid out by the host: no op takes complex numbers
      graph.set_strides(value, dense_strides_of(output));
    else
      value = laid_out(builder, value, output);
  }
  for (const TensorUpdate& update : captured.updates)
    if (update.output) outputs[*update.output].value = row_major_result(builder, outputs[*update.output].value);
  graph.set_outputs(std::move(outputs));
  if (!captured.assumptions.empty()) {
    ir::ValueId all = builder.to_device(captured.assumptions.front(), {});
    for (ir::ValueId one : std::span(captured.assumptions).subspan(1)) all = builder.one("logical_and", {all, builder.to_device(one, {})});
    graph.add_output({row_major_result(builder, all), ir::OutputKind::result, {}});
  }
  if (captured.uses_numpy())
    if (const auto alarm = add_error_alarm(graph, captured.error_handlings)) graph.add_output({*alarm, ir::OutputKind::result, {}});
  return graph;
}

/// Whether the graph is on devices, which torch serves where nobody else does.
bool serve_devices(const ir::Graph& graph) {
  bool any = false;
  for (std::uint32_t t = 0; t < graph.types().size(); ++t) {
    const ir::Device device = graph.types()[ir::TypeId(t)].device;
    if (device.is_host() || device.kind == 0) continue;
    let_python_serve(device.kind);
    any = true;
  }
  return any;
}

/// Counts and tells which calls the library makes again itself.
void tell_opaque_calls(TenonSession* host, const CapturedGraph& captured) {
  std::map<std::string, int> by_target;
  for (const auto& call : captured.opaque_calls) ++by_target[call->target()];
  for (const auto& [target, count] : by_target) {
    counters().opaque_nodes += count;
    const std::string event = fmt::format(R"({{"kind":"opaque_node","phase":"compile","target":"{}","nodes":{}}})", target, count);
    tenon_session_emit(host, event.c_str());
  }
}

/// The object with more members in front of its own.
std::string with_members(const std::string& object, const std::string& members) {
  const std::string_view rest = std::string_view(object).substr(object.find('{') + 1);
  return fmt::format("{{{}{}{}", members, rest.find(':') == rest.npos ? "" : ", ", rest);
}

/// The options with the present sizes added, by which backends without dynamic shapes compile first, with what NumPy's warnings need, and with how exact
/// torch's flags let products be.
std::string options_for(const CapturedGraph& captured, const std::string& options, Float32Rounding rounding) {
  std::string members;
  const auto add = [&](const std::string& member) { members += (members.empty() ? "" : ", ") + member; };
  if (captured.uses_numpy()) add("\"quiet_comparisons\": true");
  if (captured.is_on_device()) add(fmt::format("\"tf32_products\": {}, \"tf32_convolutions\": {}", rounding.products, rounding.convolutions));
  if (captured.numbers) {
    std::string sizes;
    for (std::size_t i = 0; i < captured.graph().symbols().size() && i < captured.numbers->sources().size(); ++i)
      if (captured.numbers->sources()[i].kind != NumberSource::Kind::data)
        sizes += fmt::format("{}\"{}\": {}", sizes.empty() ? "" : ", ", captured.graph().symbols()[i].name, captured.numbers->values()[i]);
    add(fmt::format("\"sizes\": {{{}}}", sizes));
  }
  return members.empty() ? options : with_members(options, members);
}

}  // namespace

Program::Program(Program&& other) noexcept
    : native_(std::exchange(other.native_, nullptr)), callable_(std::move(other.callable_)), of_ops_(other.of_ops_), given_(std::move(other.given_)), places_(std::move(other.places_)) {}

Program& Program::operator=(Program&& other) noexcept {
  std::swap(native_, other.native_);
  std::swap(callable_, other.callable_);
  std::swap(of_ops_, other.of_ops_);
  std::swap(given_, other.given_);
  std::swap(places_, other.places_);
  return *this;
}

Program::~Program() {
  if (native_) tenon_program_release(native_);
}

std::optional<Program> compile_natively(const CapturedGraph& captured, const Settings& settings, Float32Rounding rounding) {
  TenonSession* host = session();
  if (!host) return std::nullopt;
  Program program;
  try {
    const ir::Graph graph = graph_to_submit(captured);
    const std::vector<std::uint8_t> buffer = ir::write_buffer(graph);
    auto constants = std::make_unique<GraphConstants>(graph);
    std::vector<const char*> backends;
    for (const std::string& name : settings.backends) backends.push_back(name.c_str());
    TenonCompileRequest request{};
    request.struct_size = sizeof request;
    request.graph = {sizeof(TenonGraph), ir::bytes_of(buffer), constants->pointers.data(), constants->pointers.size()};
    request.backends = backends.data();
    request.backend_count = backends.size();
    if (serve_devices(graph) || !captured.opaque_calls.empty()) {
      request.own_backends = &kPythonBackend;
      request.own_backend_count = 1;
    }
    const std::string options = options_for(captured, settings.options, rounding);
    request.options = options.c_str();
    request.release_constants = [](void* context) { delete static_cast<GraphConstants*>(context); };
    request.context = constants.get();
    InterruptWatch watch;
    request.cancelled = &InterruptWatch::asked;
    request.cancel_context = &watch;
    int32_t code = TENON_OK;
    {
      const GilReleased released;
      code = tenon_compile(host, &request, &program.native_);
    }
    if (code == TENON_OK) {
      constants.release();  // now the program's
      tell_opaque_calls(host, captured);
      return program;
    }
    if (!compat::has_interrupt()) set_host_error();
  } catch (const std::exception& failure) {
    set_error(ErrorClass::error, fmt::format("the captured graph could not be submitted: {}", failure.what()));
  }
  return std::nullopt;
}

Ref Program::call(std::span<PyObject* const> inputs) const {
  std::vector<PyObject*> given;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!of_ops_ || given_[i]) given.push_back(inputs[i]);
  return Ref::steal(PyObject_Vectorcall(callable_.get(), given.data(), given.size(), nullptr));
}

namespace {

/// A callable gives the new values of inputs last.
std::vector<std::uint32_t> places_of_outputs(const ir::Graph& graph) {
  const auto is_update = [](const ir::Output& output) { return output.kind == ir::OutputKind::update; };
  auto result = std::uint32_t{0}, update = static_cast<std::uint32_t>(std::ranges::count_if(graph.outputs(), std::not_fn(is_update)));
  std::vector<std::uint32_t> places;
  for (const ir::Output& output : graph.outputs()) places.push_back(is_update(output) ? update++ : result++);
  return places;
}

bool grad_mode_is_on() {
  const auto state = torch_state();
  return state && state->grad_enabled();
}

}  // namespace

std::optional<Program> compile_with_callable(const CapturedGraph& captured, const Settings& settings, const std::string& name,
                                             std::span<PyObject* const> inputs) {
  Program program;
  try {
    program.of_ops_ = is_of_ops(captured);
    for (PyObject* input : inputs) program.given_.push_back(input != nullptr);
    program.places_ = places_of_outputs(captured.graph());
    Ref traced = program.of_ops_ ? graph_of_ops(captured, name, program.given_) : make_traced_graph(captured, name);
    Ref examples = checked(PyList_New(0));
    for (PyObject* input : inputs)
      if (input) checked(PyList_Append(examples.get(), input));
    const compat::SignalsPass own_code;
    const bool mode = grad_mode_is_on();
    const GradMode without_gradients(mode && !program.of_ops_, mode);  // it runs without, and compilers look
    program.callable_ = Ref::steal(PyObject_CallFunctionObjArgs(settings.callable.get(), traced.get(), examples.get(), nullptr));
  } catch (const PythonError&) {
  }
  if (!PyErr_Occurred()) return program;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return std::nullopt;  // an interrupt is no failure
  set_error_from_current(ErrorClass::compile, fmt::format("the backend '{}' failed to compile {}", settings.name, name));
  return std::nullopt;
}

}  // namespace tenon::python
